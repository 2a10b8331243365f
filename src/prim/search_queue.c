/* The threads of a search, and the order of what they find; see search_queue.h. */
#include "prim/search_queue.h"

#include "prim/search.h"
#include "prim/search_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Threads that are ahead wait once that much was found that is not in order yet. */
enum { BYTES_WAITING_MAX = SEARCH_ANSWER_MAX_BYTES };
/* So many chunks must wait before one more thread is worth its start. */
enum { WORTH_A_THREAD = 2 };

void search_dir_drop(struct search_dir *dir)
{
    if (atomic_fetch_sub(&dir->users, 1) != 1)
        return;
    close(dir->fd);
    dir_scan_free(&dir->scan);
    free(dir);
}

void search_queue_init(struct search_queue *queue, struct buf *answer, size_t matches_max)
{
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    queue->answer = answer;
    queue->matches_max = matches_max;
    queue->answer_end = answer->len + SEARCH_ANSWER_MAX_BYTES;
    /* One more than can be told tells that there are more. */
    for (size_t i = 0; i < SEARCH_CHUNKS; i++)
        search_found_init(&queue->chunks[i].found, matches_max + 1, SEARCH_ANSWER_MAX_BYTES);
}

void search_queue_deinit(struct search_queue *queue)
{
    for (size_t i = 0; i < SEARCH_CHUNKS; i++)
        search_found_deinit(&queue->chunks[i].found);
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->changed);
}

int search_worker_init(struct search_worker *worker, struct search_queue *queue)
{
    *worker = (struct search_worker){.queue = queue};
    worker->matcher = search_matcher_new(queue->pattern, &queue->limits);
    worker->hits = search_hits_new(queue->context);
    if (worker->matcher && worker->hits)
        worker->reader = search_reader_new(worker->matcher, worker->hits, &queue->limits);
    return worker->reader ? 0 : -1;
}

void search_worker_deinit(struct search_worker *worker)
{
    search_reader_free(worker->reader);
    search_hits_free(worker->hits);
    search_matcher_free(worker->matcher);
}

/* ---- a chunk, without the lock */

/* By the time that it is opened the name may be of something else than it was listed as. */
static int open_regular(struct search_queue *queue, const struct search_dir *dir, const char *name, struct stat *out)
{
    int fd = openat(dir->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        if (errno == EACCES)
            atomic_fetch_add(&queue->unreadable, 1);
        return -1;
    }
    if (fstat(fd, out) == 0 && S_ISREG(out->st_mode) && (out->st_dev == dir->dev || !confine_is_kernel_fs(fd)) &&
        !confine_is_guarded(queue->confine, dir->fd, name, out))
        return fd;
    close(fd);
    return -1;
}

static void search_file(struct search_worker *worker, struct search_chunk *chunk, const char *name)
{
    struct stat found;
    int fd = open_regular(worker->queue, chunk->dir, name, &found);
    if (fd < 0)
        return;
    search_hits_begin(worker->hits, &chunk->found, chunk->dir->path, name);
    if (search_reader_run(worker->reader, fd, (uint64_t)found.st_size, &chunk->found))
        chunk->found.files++;
    search_hits_end(worker->hits);
    close(fd);
}

static void search_chunk(struct search_worker *worker, struct search_chunk *chunk)
{
    uint64_t given_up = search_matcher_given_up(worker->matcher);
    for (unsigned i = 0; i < chunk->count && !chunk->found.full && !search_is_over(&worker->queue->limits); i++)
        search_file(worker, chunk, chunk->names[i]);
    chunk->found.given_up = search_matcher_given_up(worker->matcher) - given_up;
    search_dir_drop(chunk->dir);
    chunk->dir = NULL;
}

/* ---- the queue, with the lock */

static struct search_chunk *chunk_at(struct search_queue *queue, size_t index)
{
    return &queue->chunks[index % SEARCH_CHUNKS];
}

static void stop(struct search_queue *queue)
{
    atomic_store(&queue->limits.stopped, true);
    pthread_cond_broadcast(&queue->changed);
}

/* False: it does not fit. */
static bool emit_match(struct search_queue *queue, const char *json, size_t len)
{
    if (queue->matches == queue->matches_max || queue->answer->len + len + 1 > queue->answer_end ||
        buf_reserve(queue->answer, len + 1) != 0)
        return false;
    if (queue->matches++ > 0)
        queue->answer->data[queue->answer->len++] = ',';
    memcpy(queue->answer->data + queue->answer->len, json, len);
    queue->answer->len += len;
    return true;
}

void search_queue_emit(struct search_queue *queue, const struct search_found *found)
{
    size_t start = 0;
    for (size_t i = 0; i < found->count && !queue->truncated; i++) {
        queue->truncated = !emit_match(queue, found->json.data + start, found->ends[i] - start);
        start = found->ends[i];
    }
    queue->truncated |= found->full;
    queue->files += found->files;
    queue->given_up += found->given_up;
}

/* The chunks that are done and follow what was emitted; at the end of a search that was broken off, all. */
static void emit(struct search_queue *queue)
{
    while (queue->emitted < queue->taken && chunk_at(queue, queue->emitted)->done) {
        struct search_chunk *chunk = chunk_at(queue, queue->emitted++);
        queue->bytes_waiting -= chunk->found.json.len;
        if (!queue->truncated)
            search_queue_emit(queue, &chunk->found);
        search_found_reset(&chunk->found);
    }
    if (queue->truncated)
        stop(queue);
}

static bool is_over(struct search_queue *queue)
{
    return search_is_over(&queue->limits);
}

/* Takes a chunk that waits and searches it; the lock is free meanwhile. */
static void work_one(struct search_queue *queue, struct search_worker *worker)
{
    struct search_chunk *chunk = chunk_at(queue, queue->taken++);
    pthread_mutex_unlock(&queue->lock);
    search_chunk(worker, chunk);
    pthread_mutex_lock(&queue->lock);
    chunk->done = true;
    queue->bytes_waiting += chunk->found.json.len;
    emit(queue);
    pthread_cond_broadcast(&queue->changed);
}

/* The first chunk that is not emitted never waits, as the others wait for it. */
static bool may_take(const struct search_queue *queue)
{
    return queue->taken < queue->added && (queue->bytes_waiting < BYTES_WAITING_MAX || queue->taken == queue->emitted);
}

static void *run_thread(void *ctx)
{
    struct search_queue *queue = ctx;
    struct search_worker worker;
    int failed = search_worker_init(&worker, queue); /* the walk works on without it */
    pthread_mutex_lock(&queue->lock);
    while (failed == 0 && !is_over(queue) && !(queue->walk_ended && queue->taken == queue->added)) {
        if (may_take(queue))
            work_one(queue, &worker);
        else
            pthread_cond_wait(&queue->changed, &queue->lock);
    }
    pthread_mutex_unlock(&queue->lock);
    search_worker_deinit(&worker);
    return NULL;
}

/* It inherits the priority and the blocked signals of the thread that it is started by. */
static void start_thread(struct search_queue *queue)
{
    if (pthread_create(&queue->threads[queue->thread_count], NULL, run_thread, queue) == 0)
        queue->thread_count++;
    else
        queue->threads_max = 0; /* without more, then */
}

bool search_queue_add(struct search_queue *queue, struct search_worker *self, const struct search_chunk *chunk)
{
    pthread_mutex_lock(&queue->lock);
    while (queue->added - queue->emitted == SEARCH_CHUNKS && !is_over(queue)) {
        if (may_take(queue))
            work_one(queue, self);
        else
            pthread_cond_wait(&queue->changed, &queue->lock);
    }
    bool taken = !is_over(queue);
    if (taken) {
        struct search_chunk *slot = chunk_at(queue, queue->added++);
        slot->dir = chunk->dir;
        slot->count = chunk->count;
        slot->done = false;
        memcpy(slot->names, chunk->names, chunk->count * sizeof *chunk->names);
        pthread_cond_signal(&queue->changed);
        if (queue->added - queue->taken >= WORTH_A_THREAD && queue->thread_count + 1 < queue->threads_max)
            start_thread(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    return taken;
}

/* What was broken off is told as far as it went, in order; what nobody took goes. */
static void emit_rest(struct search_queue *queue)
{
    emit(queue);
    for (size_t i = queue->taken; i < queue->added; i++)
        search_dir_drop(chunk_at(queue, i)->dir);
}

void search_queue_finish(struct search_queue *queue, struct search_worker *self)
{
    pthread_mutex_lock(&queue->lock);
    queue->walk_ended = true;
    pthread_cond_broadcast(&queue->changed);
    while (!is_over(queue) && queue->emitted < queue->added) {
        if (may_take(queue))
            work_one(queue, self);
        else
            pthread_cond_wait(&queue->changed, &queue->lock);
    }
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    for (unsigned i = 0; i < queue->thread_count; i++)
        pthread_join(queue->threads[i], NULL);
    emit_rest(queue);
}
