/* Files on their way from the walk of a search to its threads, and what was found on its way back, in order. For search
 * and search_walk. */
#ifndef ABX_PRIM_SEARCH_QUEUE_H
#define ABX_PRIM_SEARCH_QUEUE_H

#include "prim/confine.h"
#include "prim/dir_scan.h"
#include "prim/search_hits.h"
#include "prim/search_pattern.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

/* A directory that is open while files of it are to be searched. */
struct search_dir {
    atomic_uint users;
    int fd;
    dev_t dev;
    struct dir_scan scan;
    char path[]; /* absolute; "" for the root */
};
/* Gives up a use; the last one closes and frees it. */
void search_dir_drop(struct search_dir *dir);

enum { SEARCH_CHUNK_FILES = 32, SEARCH_CHUNKS = 64, SEARCH_THREADS_MAX = 8 };

/* Some files of one directory that follow each other. */
struct search_chunk {
    struct search_dir *dir;                /* one use of it */
    const char *names[SEARCH_CHUNK_FILES]; /* in dir->scan */
    unsigned count;
    bool done;
    struct search_found found;
};

struct search_queue {
    const struct confine *confine;
    const struct search_pattern *pattern;
    struct search_limits limits;
    atomic_ullong unreadable; /* files and directories that this user may not read */
    unsigned context, threads_max;

    pthread_mutex_t lock; /* for all that follows */
    pthread_cond_t changed;
    struct search_chunk chunks[SEARCH_CHUNKS]; /* a ring: emitted..taken..added */
    size_t added, taken, emitted;
    size_t bytes_waiting; /* found, done and not emitted */
    bool walk_ended;
    struct buf *answer;
    size_t matches, matches_max, answer_end; /* answer_end: length that the answer must not pass */
    uint64_t files, given_up;
    bool truncated;
    pthread_t threads[SEARCH_THREADS_MAX];
    unsigned thread_count;
};

/* The struct was zeroed, and its first members filled in; all is borrowed. */
void search_queue_init(struct search_queue *queue, struct buf *answer, size_t matches_max);
void search_queue_deinit(struct search_queue *queue);

/* One thread's tools. */
struct search_worker {
    struct search_queue *queue;
    struct search_matcher *matcher;
    struct search_hits *hits;
    struct search_reader *reader;
};
/* -1 out of memory; search_worker_deinit in any case. */
int search_worker_init(struct search_worker *worker, struct search_queue *queue) ABX_MUST_USE;
void search_worker_deinit(struct search_worker *worker);

/* The walk's: adds a chunk (takes the use of dir), starting threads as they are of use; where the queue is full it
 * searches itself meanwhile. False: the search is over, and the chunk was not taken. */
bool search_queue_add(struct search_queue *queue, struct search_worker *self, const struct search_chunk *chunk);
/* The walk's: no more chunks. Helps until all are done, ends the threads, emits what is left. */
void search_queue_finish(struct search_queue *queue, struct search_worker *self);

/* Emits what was found without a chunk: in one file alone. */
void search_queue_emit(struct search_queue *queue, const struct search_found *found);

#endif
