/* The files that are being written, for replace.c and file_write.c: a short list, as there is one entry a thread. */
#include "prim/file_lock.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct file_lock *first; /* who holds and who waits, in the order of asking */

/* Another one for the same file that holds it, or that waits for it. */
static struct file_lock *find_other(const struct file_lock *lock, bool held)
{
    struct file_lock *at = first;
    while (at && (at == lock || at->held != held || at->ino != lock->ino || at->dev != lock->dev ||
                  strcmp(at->name, lock->name) != 0))
        at = at->next;
    return at;
}

static void enlist(struct file_lock *lock)
{
    struct file_lock **end = &first;
    while (*end)
        end = &(*end)->next;
    *end = lock;
}

static void delist(struct file_lock *lock)
{
    struct file_lock **at = &first;
    while (*at != lock)
        at = &(*at)->next;
    *at = lock->next;
}

static int name_file(struct file_lock *lock, int dir_fd, const char *name, struct err *err)
{
    struct stat dir;
    if (fstat(dir_fd, &dir) != 0)
        return err_set_errno(err, err_from_errno(errno), errno, "cannot use the directory of %.100s", name);
    *lock = (struct file_lock){
        .name = name, .dev = dir.st_dev, .ino = dir.st_ino, .turn = (pthread_cond_t)PTHREAD_COND_INITIALIZER};
    return 0;
}

int file_lock_try(struct file_lock *lock, int dir_fd, const char *name, struct err *err)
{
    if (name_file(lock, dir_fd, name, err) != 0)
        return -1;
    pthread_mutex_lock(&mutex); /* held for a moment only, never while files are touched */
    lock->held = !find_other(lock, true);
    if (lock->held)
        enlist(lock);
    pthread_mutex_unlock(&mutex);
    return lock->held ? 0 : err_set(err, ERR_BUSY, "%.100s is being written", name);
}

/* Who comes just when it is free may go before one that was woken and does not run yet: strict turns would cost a
 * switch of threads for each write (a lock convoy). */
int file_lock_take(struct file_lock *lock, int dir_fd, const char *name, struct err *err)
{
    if (name_file(lock, dir_fd, name, err) != 0)
        return -1;
    pthread_mutex_lock(&mutex);
    enlist(lock);
    while (find_other(lock, true))
        pthread_cond_wait(&lock->turn, &mutex);
    lock->held = true;
    pthread_mutex_unlock(&mutex);
    return 0;
}

void file_lock_release(struct file_lock *lock)
{
    if (!lock->held)
        return;
    pthread_mutex_lock(&mutex);
    delist(lock);
    lock->held = false;
    struct file_lock *next = find_other(lock, false);
    if (next)
        pthread_cond_signal(&next->turn);
    pthread_mutex_unlock(&mutex);
}
