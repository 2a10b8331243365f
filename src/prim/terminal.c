/* The life of a terminal: made for prim/terminals, run and read on the terminal thread, drained at its program's end.
 */
#include "prim/terminal_foreground.h"
#include "prim/terminal_internal.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

struct terminal *terminal_new(int master, struct terminal_view *view, loop_fn on_drained, void *ctx)
{
    struct terminal *terminal = calloc(1, sizeof(*terminal));
    if (terminal == NULL)
        return NULL;
    terminal->references = 1;
    terminal->master = master;
    terminal->view = terminal_view_ref(view);
    terminal->on_drained = on_drained;
    terminal->ctx = ctx;
    terminal_output_init(&terminal->output);
    terminal_queue_init(&terminal->queue);
    list_init(&terminal->clients);
    return terminal;
}

static void on_ready(void *ctx, int events)
{
    struct terminal *terminal = terminal_ref(ctx);
    (void)events;
    /* Output first, whatever happened: input whose echo finds no room is echoed to nobody. */
    terminal_output_read(terminal);
    terminal_queue_pump(terminal);
    terminal_watch(terminal);
    terminal_tell(terminal);
    terminal_unref(terminal);
}

void terminal_watch(struct terminal *terminal)
{
    if (terminal->watch != NULL)
        loop_fd_set(terminal->watch, (terminal_output_wanted(terminal) ? LOOP_READABLE : 0) |
                                         (terminal_queue_wanted(terminal) ? LOOP_WRITABLE : 0));
}

void terminal_run(struct terminal *terminal, struct loop *loop)
{
    terminal->loop = loop;
    terminal->watch = loop_fd_new(loop, terminal->master, LOOP_READABLE, on_ready, terminal);
    if (terminal->watch != NULL)
        return;
    close(terminal->master);
    terminal->master = -1;
    terminal->output.hung_up = true;
}

struct terminal *terminal_ref(struct terminal *terminal)
{
    terminal->references++;
    return terminal;
}

void terminal_unref(struct terminal *terminal)
{
    if (terminal == NULL || --terminal->references > 0)
        return;
    assert(list_empty(&terminal->clients)); /* each holds a reference */
    terminal_queue_clear(terminal);
    terminal_output_deinit(&terminal->output);
    loop_defer_stop(&terminal->tell);
    loop_fd_free(terminal->watch);
    if (terminal->master >= 0)
        close(terminal->master);
    terminal_view_unref(terminal->view);
    free(terminal);
}

void terminal_ended(struct terminal *terminal, const struct terminal_exit *exit)
{
    assert(terminal->loop != NULL && !terminal->ended);
    terminal->exit = *exit;
    terminal->ended = true;
    terminal_queue_clear(terminal);
    terminal_output_finish(terminal);
}

void terminal_release(struct terminal *terminal)
{
    struct terminal_output *output = &terminal->output;
    ring_deinit(&output->ring);
    output->withheld = 0;
    atomic_store_explicit(&terminal->view->kept_bytes, 0, memory_order_relaxed);
    terminal_note_all(terminal, TERMINAL_DUE_OUTPUT, NULL);
}

struct terminal_size terminal_size(const struct terminal *terminal)
{
    return terminal_view_size(terminal->view);
}

uint64_t terminal_offset(const struct terminal *terminal)
{
    return terminal->output.ring.end;
}

const struct terminal_exit *terminal_exit(const struct terminal *terminal)
{
    return terminal->drained ? &terminal->exit : NULL;
}

/* --- what clients do to the program, but input */

void terminal_resize(struct terminal_client *client, struct terminal_size size)
{
    struct terminal *terminal = client->terminal;
    struct terminal_size old = terminal_size(terminal);
    if (client->read_only || terminal->ended || (size.cols == old.cols && size.rows == old.rows))
        return;
    struct winsize window = {.ws_col = (unsigned short)size.cols, .ws_row = (unsigned short)size.rows};
    if (terminal->master < 0 || ioctl(terminal->master, TIOCSWINSZ, &window) != 0)
        return;
    terminal_view_set_size(terminal->view, size);
    terminal_view_touch(terminal->view);
    terminal_note_all(terminal, TERMINAL_DUE_RESIZED, client);
}

/* A terminal goes on telling the number of a group that has ended, which may be another one's by now. */
static bool foreground_lives(int master, pid_t group)
{
    pid_t session = tcgetsid(master); /* of a master both tell of its slave */
    int proc_fd = proc_open();
    bool lives = session > 0 && proc_fd >= 0 && terminal_foreground_lives(proc_fd, group, session);
    if (proc_fd >= 0)
        close(proc_fd);
    return lives;
}

/* Only three signals go by the terminal (drivers/tty/pty.c, pty_signal): EINVAL for the others. */
static int signal_foreground(int master, int signal)
{
    if (ioctl(master, TIOCSIG, signal) == 0)
        return 0;
    if (errno != EINVAL)
        return -1;
    pid_t group = tcgetpgrp(master);
    if (group <= 1 || group == getpgrp() || !foreground_lives(master, group)) {
        errno = ESRCH;
        return -1;
    }
    return kill(-group, signal);
}

int terminal_signal(struct terminal_client *client, int signal, struct err *err)
{
    struct terminal *terminal = client->terminal;
    if (client->read_only)
        return err_set(err, ERR_PERMISSION_DENIED, "this client is read-only: it sends no signals");
    if (terminal->ended || terminal->master < 0)
        return err_set(err, ERR_ALREADY_EXITED, "the terminal's program has ended");
    if (signal_foreground(terminal->master, signal) == 0) {
        terminal_view_touch(terminal->view);
        return 0;
    }
    if (errno == EPERM)
        return err_set_errno(err, ERR_PERMISSION_DENIED, errno, "the program in the foreground takes no signals of us");
    return err_set(err, ERR_ALREADY_EXITED, "nothing runs in the foreground of the terminal");
}
