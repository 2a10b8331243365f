/* Characters that interrupt a program which reads nothing; part of prim/terminal.
 *
 * The line discipline (n_tty) acts on them as they come, but when the program's input is full it takes no more, and a
 * Ctrl-C waits behind it for ever. A terminal whose input is full does what n_tty does with such a character: drops
 * what was typed before. */
#include "prim/terminal_internal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { UNHEARD_MS = 250 };

struct interrupt {
    struct chunk *chunk;
    size_t at; /* in its bytes */
    int signal;
};

static struct terminal_interrupts interrupts_of(const struct termios *modes)
{
    return (struct terminal_interrupts){.any = (modes->c_lflag & ISIG) != 0,
                                        .is = {modes->c_cc[VINTR], modes->c_cc[VQUIT], modes->c_cc[VSUSP]}};
}

/* The first of these bytes that interrupts; 0: none, else its signal. */
static int find_in_bytes(const char *bytes, size_t len, const struct terminal_interrupts *wanted, size_t *out_at)
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGTSTP};
    int signal = 0;
    for (size_t i = 0; wanted->any && i < sizeof(signals) / sizeof(signals[0]); i++) {
        const char *found = wanted->is[i] == _POSIX_VDISABLE ? NULL : memchr(bytes, wanted->is[i], len);
        if (found == NULL)
            continue;
        len = *out_at = (size_t)(found - bytes);
        signal = signals[i];
    }
    return signal;
}

static struct chunk *chunk_of(struct list *node)
{
    return LIST_ENTRY(node, struct chunk, node);
}

/* The oldest that was not searched to its end; the list itself where there is none. */
static struct list *first_unsearched(struct list *chunks)
{
    struct list *node = chunks->prev;
    while (node != chunks && chunk_of(node)->searched < chunk_of(node)->len)
        node = node->prev;
    return node->next;
}

/* The first that waits, as the program has its terminal set now (a master tells its slave's modes). Each byte is looked
 * at once, unless the program sets its terminal otherwise: this is called for every message of a client. */
static bool find_interrupt(struct terminal *terminal, struct termios *out_modes, struct interrupt *out)
{
    struct terminal_queue *queue = &terminal->queue;
    if (tcgetattr(terminal->master, out_modes) != 0)
        return false;
    struct terminal_interrupts wanted = interrupts_of(out_modes);
    if (memcmp(&wanted, &queue->searched_for, sizeof(wanted)) != 0) {
        LIST_EACH (&queue->chunks, node)
            chunk_of(node)->searched = 0;
        queue->searched_for = wanted;
    }
    for (struct list *node = first_unsearched(&queue->chunks); node != &queue->chunks; node = node->next) {
        struct chunk *chunk = chunk_of(node);
        size_t from = chunk->searched > chunk->done ? chunk->searched : chunk->done, at;
        int signal = find_in_bytes(chunk->bytes + from, chunk->len - from, &wanted, &at);
        if (signal != 0) {
            *out = (struct interrupt){chunk, from + at, signal};
            return true;
        }
        chunk->searched = chunk->len;
    }
    return false;
}

static int open_slave(int master)
{
    return ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

/* What the kernel has of the input: on its way to the slave, and in the slave's own buffer. */
static void flush_kernel(int master)
{
    tcflush(master, TCOFLUSH);
    int slave = open_slave(master);
    if (slave < 0)
        return;
    tcflush(slave, TCIFLUSH);
    close(slave);
}

static void drop_until(struct terminal *terminal, const struct interrupt *interrupt)
{
    struct terminal_queue *queue = &terminal->queue;
    struct chunk *chunk = NULL;
    while ((chunk = terminal_queue_first(queue)) != interrupt->chunk)
        terminal_queue_advance(queue, chunk, chunk->len - chunk->done);
    if (interrupt->at > chunk->done)
        terminal_queue_advance(queue, chunk, interrupt->at - chunk->done);
}

void terminal_interrupt_stalled(struct terminal *terminal)
{
    struct interrupt interrupt;
    struct termios modes;
    if (terminal->master < 0 || !find_interrupt(terminal, &modes, &interrupt))
        return;
    if (modes.c_lflag & NOFLSH) {
        /* All else keeps its place; the character is used up. */
        struct chunk *chunk = interrupt.chunk;
        ioctl(terminal->master, TIOCSIG, interrupt.signal);
        memmove(chunk->bytes + chunk->done + 1, chunk->bytes + chunk->done, interrupt.at - chunk->done);
        chunk->searched = interrupt.at + 1;
        terminal_queue_advance(&terminal->queue, chunk, 1);
        return;
    }
    drop_until(terminal, &interrupt);
    flush_kernel(terminal->master);
    terminal->queue.unechoed = 0;
    terminal_queue_pump(terminal); /* the kernel itself echoes it and signals */
}

bool terminal_interrupt_refused(struct terminal *terminal, const char *bytes, size_t len)
{
    struct termios modes;
    size_t at;
    if (tcgetattr(terminal->master, &modes) != 0 || (modes.c_lflag & NOFLSH))
        return false;
    struct terminal_interrupts wanted = interrupts_of(&modes);
    if (find_in_bytes(bytes, len, &wanted, &at) == 0)
        return false;
    terminal_queue_clear(terminal);
    flush_kernel(terminal->master);
    terminal->queue.unechoed = 0;
    (void)!write(terminal->master, bytes + at, 1);
    return true;
}

/* --- one that the kernel took, but has not acted on */

/* Bytes that wait for the program in the slave's buffer (whole lines, unless it reads characters). Where there seems to
 * be nothing, poll() first waits for what is on its way there (n_tty_poll, tty_buffer_flush_work). */
static int unread_bytes(int master)
{
    struct pollfd slave = {.fd = open_slave(master), .events = POLLIN};
    int bytes = 0;
    if (slave.fd < 0)
        return 0;
    if (poll(&slave, 1, 0) <= 0 || ioctl(slave.fd, FIONREAD, &bytes) != 0)
        bytes = 0;
    close(slave.fd);
    return bytes;
}

/* Most input has none, and needs no system call then. (What interrupts need not be one, but who sets it to a letter?)
 */
static bool has_control(const char *bytes, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)bytes[i] < ' ' && strchr("\r\n\t\033", bytes[i]) == NULL)
            return true;
    return false;
}

/* Had n_tty seen it, it would have dropped what was unread then; so as much as that is there only where it has not. */
static void on_unheard(void *ctx)
{
    struct terminal *terminal = terminal_ref(ctx);
    struct terminal_queue *queue = &terminal->queue;
    if (terminal->master >= 0 && unread_bytes(terminal->master) >= queue->unread_bytes) {
        terminal_queue_clear(terminal);
        flush_kernel(terminal->master);
        queue->unechoed = 0;
        (void)!write(terminal->master, &queue->interrupt, 1);
    }
    terminal_watch(terminal);
    terminal_tell(terminal);
    terminal_unref(terminal);
}

void terminal_interrupt_watch(struct terminal *terminal, const char *bytes, size_t len)
{
    struct terminal_queue *queue = &terminal->queue;
    struct termios modes;
    size_t at;
    if (!has_control(bytes, len) || tcgetattr(terminal->master, &modes) != 0 || (modes.c_lflag & NOFLSH))
        return;
    struct terminal_interrupts wanted = interrupts_of(&modes);
    if (find_in_bytes(bytes, len, &wanted, &at) == 0)
        return;
    queue->unread_bytes = unread_bytes(terminal->master);
    queue->interrupt = bytes[at];
    if (queue->unread_bytes > 0)
        loop_timer_start(terminal->loop, &queue->unheard, UNHEARD_MS, on_unheard, terminal);
}
