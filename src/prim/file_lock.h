/* One writer at a time for a file of this server's clients: by its directory and name, as the file itself is replaced
 * by every write. For replace and file_write. */
#ifndef ABX_PRIM_FILE_LOCK_H
#define ABX_PRIM_FILE_LOCK_H

#include "base/err.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* Embedded by its holder, at an address that stays; zero it first. */
struct file_lock {
    struct file_lock *next;
    const char *name; /* borrowed */
    dev_t dev;
    ino_t ino;
    pthread_cond_t turn;
    bool held;
};

/* Waits until nobody holds `name` (borrowed until the release) in that directory. Whoever holds one asks for no other,
 * nor for parents_lock, so that nobody waits in a circle. -1: the directory cannot be looked at. */
int file_lock_take(struct file_lock *lock, int dir_fd, const char *name, struct err *err) ABX_MUST_USE;
/* The same without waiting: ERR_BUSY where somebody holds it. */
int file_lock_try(struct file_lock *lock, int dir_fd, const char *name, struct err *err) ABX_MUST_USE;
/* Harmless where it is not held. */
void file_lock_release(struct file_lock *lock);

#endif
