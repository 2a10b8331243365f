/* Reads lines from the supervisor on a thread and hands requests to the one that serves them; for git_main. */
#include "helper/git_channel.h"

#include "helper/git.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WAITING_MAX = 64, CHUNK_BYTES = 64 * 1024, GRACE_S = 1 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    cJSON *waiting[WAITING_MAX];
    size_t count;
    bool serving;
    int64_t serving_id, cancelled_id; /* the latter may come before its request is served */
} channel = {.cancelled_id = -1, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

_Noreturn static void end_with_channel(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += GRACE_S;
    pthread_mutex_lock(&channel.lock);
    channel.count = 0; /* nobody waits for those; one that began now would not hear of its cancel */
    git_stop_cancel();
    while (channel.serving && pthread_cond_timedwait(&channel.changed, &channel.lock, &until) == 0)
        continue;
    _exit(0);
}

/* Takes the message. */
static void deliver(cJSON *message)
{
    const cJSON *method = cJSON_GetObjectItemCaseSensitive(message, "method");
    pthread_mutex_lock(&channel.lock);
    if (cJSON_IsString(method) && strcmp(method->valuestring, "cancel") == 0) {
        const cJSON *params = cJSON_GetObjectItemCaseSensitive(message, "params");
        const cJSON *id = cJSON_GetObjectItemCaseSensitive(params, "id");
        channel.cancelled_id = cJSON_IsNumber(id) ? (int64_t)id->valuedouble : -1;
        if (channel.serving && channel.cancelled_id == channel.serving_id)
            git_stop_cancel();
        cJSON_Delete(message);
    } else if (channel.count == WAITING_MAX) {
        _exit(2); /* the supervisor promised to send one call at a time */
    } else {
        channel.waiting[channel.count++] = message;
        pthread_cond_broadcast(&channel.changed);
    }
    pthread_mutex_unlock(&channel.lock);
}

/* Hands on each whole line; what is left stays in the buffer. */
static void take_lines(struct buf *bytes, size_t seen)
{
    size_t begin = 0;
    for (char *end; (end = memchr(bytes->data + seen, '\n', bytes->len - seen)) != NULL;) {
        size_t after = (size_t)(end - bytes->data) + 1;
        cJSON *message = cJSON_ParseWithLength(bytes->data + begin, after - begin);
        if (!message)
            _exit(2); /* the line cannot be answered: it has no id that we know */
        deliver(message);
        begin = seen = after;
    }
    buf_consume(bytes, begin);
}

static void *read_channel(void *unused)
{
    (void)unused;
    struct buf bytes;
    buf_init(&bytes, GIT_LINE_MAX_BYTES);
    for (;;) {
        if (buf_reserve(&bytes, CHUNK_BYTES) != 0)
            _exit(2);
        ssize_t got = read(GIT_CHANNEL_FD, bytes.data + bytes.len, CHUNK_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            end_with_channel();
        size_t seen = bytes.len;
        bytes.len += (size_t)got;
        take_lines(&bytes, seen);
    }
}

int git_channel_start(struct err *err)
{
    pthread_t reader;
    if (fcntl(GIT_CHANNEL_FD, F_SETFD, FD_CLOEXEC) != 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "there is no channel");
    int rc = pthread_create(&reader, NULL, read_channel, NULL);
    if (rc != 0)
        return err_set_errno(err, ERR_INTERNAL, rc, "cannot start a thread");
    pthread_detach(reader);
    return 0;
}

cJSON *git_channel_next(void)
{
    pthread_mutex_lock(&channel.lock);
    channel.serving = false;
    pthread_cond_broadcast(&channel.changed);
    while (channel.count == 0)
        pthread_cond_wait(&channel.changed, &channel.lock);
    cJSON *message = channel.waiting[0];
    channel.count--;
    memmove(channel.waiting, channel.waiting + 1, channel.count * sizeof(cJSON *));
    pthread_mutex_unlock(&channel.lock);
    return message;
}

void git_channel_serve(int64_t id)
{
    pthread_mutex_lock(&channel.lock);
    channel.serving = true;
    channel.serving_id = id;
    git_stop_reset();
    if (id == channel.cancelled_id)
        git_stop_cancel();
    pthread_mutex_unlock(&channel.lock);
}

int git_channel_send(struct buf *line)
{
    if (buf_append_few(line, "\n", 1) != 0)
        return -1;
    for (size_t done = 0; done < line->len;) {
        ssize_t sent = write(GIT_CHANNEL_FD, line->data + done, line->len - done);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -1;
        done += (size_t)sent;
    }
    return 0;
}
