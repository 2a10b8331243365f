/* A program on a new pseudo-terminal: the pair is made here, the start is the process table's; called by
 * prim/terminals. */
#include "prim/pty_child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

struct pair {
    int master, slave;
};

static void pair_close(struct pair *pair)
{
    if (pair->master >= 0)
        close(pair->master);
    if (pair->slave >= 0)
        close(pair->slave);
}

/* By the master itself; by name where the kernel (before 4.13) or what stands for one knows no such call. */
static int open_slave(int master)
{
    enum { FLAGS = O_RDWR | O_NOCTTY | O_CLOEXEC };
    char name[32];
    unsigned number;
    int slave = ioctl(master, TIOCGPTPEER, FLAGS);
    if (slave >= 0 || (errno != EINVAL && errno != ENOTTY && errno != ENOSYS))
        return slave;
    if (ioctl(master, TIOCGPTN, &number) != 0)
        return -1;
    snprintf(name, sizeof(name), "/dev/pts/%u", number);
    return open(name, FLAGS);
}

/* Erasing a character takes all its bytes then. What else a terminal is like is for the program to say. */
static int set_up(const struct pair *pair, struct terminal_size size)
{
    const struct winsize window = {.ws_col = (unsigned short)size.cols, .ws_row = (unsigned short)size.rows};
    struct termios modes;
    if (tcgetattr(pair->slave, &modes) != 0)
        return -1;
    modes.c_iflag |= IUTF8;
    return tcsetattr(pair->slave, TCSANOW, &modes) == 0 ? ioctl(pair->master, TIOCSWINSZ, &window) : -1;
}

static int open_error(int errno_value, struct err *err)
{
    switch (errno_value) {
    case ENOSPC: /* kernel.pty.max, or the max of this mount */
    case EMFILE:
    case ENFILE:
    case ENOMEM:
        return err_set_errno(err, ERR_TOO_MANY_TERMINALS, errno_value, "the system has no room for another terminal");
    default:
        return err_set_errno(err, ERR_UNAVAILABLE, errno_value, "cannot open a pseudo-terminal (/dev/ptmx)");
    }
}

static int pair_open(struct pair *pair, struct terminal_size size, struct err *err)
{
    const int unlocked = 0;
    *pair = (struct pair){.master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK), .slave = -1};
    if (pair->master >= 0 && ioctl(pair->master, TIOCSPTLCK, &unlocked) == 0)
        pair->slave = open_slave(pair->master);
    if (pair->slave >= 0 && set_up(pair, size) == 0)
        return 0;
    open_error(errno, err);
    pair_close(pair);
    return -1;
}

struct process *pty_child_start(struct process_table *table, const struct process_spec *spec,
                                const struct process_terminal *terminal, struct terminal_size size, int *out_master,
                                struct err *err)
{
    struct pair pair;
    struct process_terminal with_slave = *terminal;
    struct process_spec on_terminal = *spec;
    if (pair_open(&pair, size, err) != 0)
        return NULL;
    with_slave.slave = pair.slave;
    on_terminal.terminal = &with_slave;
    struct process *process = process_start(table, &on_terminal, err);
    if (process != NULL) {
        *out_master = pair.master;
        pair.master = -1;
    }
    pair_close(&pair); /* of the slave too: as long as we held it, the program's end would never show as EIO */
    return process;
}
