/* What the tests of programs on a terminal share: the master is read here as the terminal thread would. */
#ifndef ABX_TEST_PTY_FIXTURE_H
#define ABX_TEST_PTY_FIXTURE_H

#include "prim/pty_child.h"

#include "process_fixture.h"
#include "without_cgroups.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

enum { SCREEN_BYTES = 32 * 1024, SCREENS_MAX = 256 };

/* One program's terminal. They outlive their programs' entries, which tell when they are dropped. */
struct screen {
    struct loop *loop;
    struct process *process; /* a reference */
    int master;
    struct loop_fd *watch; /* NULL: read to EIO */
    struct loop_defer drained;
    char text[SCREEN_BYTES];
    size_t len;
    unsigned reaped, released, dropped;
};

static struct fixture fixture;
static struct screen screens[SCREENS_MAX];
static size_t screen_count;

static inline int set_up(void **state)
{
    (void)state;
    fixture_open(&fixture, 512);
    screen_count = 0;
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    fixture_close(&fixture);
    return 0;
}

static inline void drained_if_so(void *ctx)
{
    struct screen *screen = ctx;
    if (screen->reaped == 1 && screen->watch == NULL && process_state(screen->process) == PROCESS_EXITED)
        process_terminal_drained(screen->process);
}

static inline void on_readable(void *ctx, int events)
{
    struct screen *screen = ctx;
    (void)events;
    for (;;) {
        ssize_t len = read(screen->master, screen->text + screen->len, SCREEN_BYTES - 1 - screen->len);
        if (len < 0 && errno == EAGAIN)
            return;
        if (len < 0) {
            assert_int_equal(errno, EIO);
            loop_fd_free(screen->watch);
            screen->watch = NULL;
            drained_if_so(screen);
            return;
        }
        assert_true(len > 0);
        screen->len += (size_t)len;
        screen->text[screen->len] = '\0';
    }
}

static inline void on_reaped(void *ctx)
{
    struct screen *screen = ctx;
    screen->reaped++;
    loop_defer_start(screen->loop, &screen->drained, drained_if_so, screen);
}

static inline size_t kept_bytes(const void *ctx)
{
    return ((const struct screen *)ctx)->len;
}

static inline void on_release(void *ctx)
{
    ((struct screen *)ctx)->released++;
}

static inline void on_dropped(void *ctx)
{
    ((struct screen *)ctx)->dropped++;
}

static inline struct screen *screen_new(const struct fixture *on)
{
    assert_true(screen_count < SCREENS_MAX);
    struct screen *screen = &screens[screen_count++];
    memset(screen, 0, sizeof(*screen));
    screen->loop = on->loop;
    screen->master = -1;
    return screen;
}

static inline struct process *try_on(struct fixture *on, struct screen *screen, const struct process_spec *spec,
                                     struct err *err)
{
    const struct terminal_size size = {.cols = 133, .rows = 37};
    const struct process_terminal hooks = {.slave = -1,
                                           .ctx = screen,
                                           .on_reaped = on_reaped,
                                           .kept_bytes = kept_bytes,
                                           .on_release = on_release,
                                           .on_dropped = on_dropped};
    return pty_child_start(on->table, spec, &hooks, size, &screen->master, err);
}

static inline struct screen *open_on(struct fixture *on, const struct process_spec *spec)
{
    struct err err = {0};
    struct screen *screen = screen_new(on);
    struct process *process = try_on(on, screen, spec, &err);
    if (process == NULL)
        fail_msg("%s", err.text);
    screen->process = process_ref(process);
    assert_true(fcntl(screen->master, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(screen->master, F_GETFD) & FD_CLOEXEC);
    screen->watch = loop_fd_new(on->loop, screen->master, LOOP_READABLE, on_readable, screen);
    assert_non_null(screen->watch);
    return screen;
}

static inline struct process_spec terminal_spec(struct fixture *of, const char *command)
{
    struct process_spec spec = spec_of(of, command);
    spec.kind = PROCESS_TERMINAL;
    spec.capture_bytes = 0;
    return spec;
}

static inline struct screen *open_screen(const char *command)
{
    struct process_spec spec = terminal_spec(&fixture, command);
    return open_on(&fixture, &spec);
}

static inline void close_screen(struct screen *screen)
{
    loop_fd_free(screen->watch);
    loop_defer_stop(&screen->drained);
    close(screen->master);
    process_unref(screen->process);
}

/* The program's own end is the terminal's, as nothing else holds the slave. */
static inline struct screen *run_screen(const char *command, struct process_exit *out_exit)
{
    struct screen *screen = open_screen(command);
    *out_exit = run_to_end(&fixture, screen->process);
    return screen;
}

static inline void wait_for(struct screen *screen, const char *text)
{
    while (strstr(screen->text, text) == NULL)
        loop_turn(screen->loop, true);
}

static inline void type(struct screen *screen, const char *text)
{
    screen->len = 0;
    screen->text[0] = '\0';
    assert_int_equal(write(screen->master, text, strlen(text)), strlen(text));
}

/* Whether the program sleeps until a key comes; also where the kernel does not tell. */
static inline bool waits_for_key(const struct process *process)
{
    char path[64];
    long number = -1;
    unsigned long first = 1;
    snprintf(path, sizeof(path), "/proc/%d/syscall", (int)process_pid(process));
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return true;
    if (fscanf(file, "%ld %lx", &number, &first) < 1)
        number = -1;
    fclose(file);
    return number == SYS_pselect6 || (number == SYS_read && first == 0);
}

/* GNU readline overlooks a signal that comes after its prompt and just before it waits. */
static inline void wait_for_prompt(struct screen *screen)
{
    while (strstr(screen->text, "# ") == NULL && strstr(screen->text, "$ ") == NULL)
        loop_turn(screen->loop, true);
    while (!waits_for_key(screen->process))
        turn_for_ms(&fixture, 1);
}

static inline struct screen *open_shell(void)
{
    static char *argv[] = {"bash", "--norc", "-i", NULL};
    struct process_spec spec = terminal_spec(&fixture, NULL);
    spec.argv = argv;
    struct screen *screen = open_on(&fixture, &spec);
    wait_for_prompt(screen);
    return screen;
}

#define PTY_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
