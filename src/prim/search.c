/* The verb: reads what is asked for, opens where it begins, and writes the answer; see search.h. */
#include "prim/search.h"

#include "base/json.h"
#include "base/loop.h"
#include "prim/search_file.h"
#include "prim/search_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned thread_count(unsigned wanted)
{
    cpu_set_t set;
    if (wanted == 0)
        wanted = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
    return wanted < SEARCH_THREADS_MAX ? wanted : SEARCH_THREADS_MAX;
}

/* ---- globs */

static struct glob *read_glob(const struct search_text *text, const char *field, struct err *err)
{
    struct glob *glob = glob_new(text->text, text->len, err);
    if (!glob)
        err_field(err, field);
    return glob;
}

static int filter_init(struct search_filter *filter, const struct search_options *options, struct err *err)
{
    *filter = (struct search_filter){.glob = NULL};
    if (options->glob.text && !(filter->glob = read_glob(&options->glob, "glob", err)))
        return -1;
    filter->exclude = calloc(options->exclude_count + 1, sizeof(*filter->exclude));
    if (!filter->exclude)
        return err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot search");
    for (size_t i = 0; i < options->exclude_count; i++) {
        struct glob *glob = read_glob(&options->exclude[i], "exclude", err);
        if (!glob)
            return -1;
        filter->exclude[filter->exclude_count++] = glob;
    }
    return 0;
}

static void filter_deinit(struct search_filter *filter)
{
    for (size_t i = 0; i < filter->exclude_count; i++)
        glob_free(filter->exclude[i]);
    free(filter->exclude);
    glob_free(filter->glob);
}

/* ---- where it begins */

/* A directory, else a regular file: *out_is_file. */
static int open_start(const struct confine *confine, const struct search_text *path, bool *out_is_file, struct err *err)
{
    int fd = confine_open_dir(confine, path->text, path->len, err);
    *out_is_file = fd < 0 && err->code == ERR_NOT_A_DIRECTORY;
    if (*out_is_file)
        fd = confine_open_file(confine, path->text, path->len, O_RDONLY, err);
    if (fd < 0 || *out_is_file || !confine_is_kernel_fs(fd))
        return fd;
    close(fd);
    return err_set(err, ERR_NOT_A_REGULAR_FILE, "files of /proc and /sys are not searched");
}

/* Takes fd. */
static int search_one(struct search_queue *queue, struct search_worker *worker, int fd, char *path, struct err *err)
{
    struct stat stat;
    struct search_found found;
    if (fstat(fd, &stat) != 0) {
        close(fd);
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot look at an open file");
    }
    char *slash = strrchr(path, '/');
    *slash = '\0';
    search_found_init(&found, queue->matches_max + 1, SEARCH_ANSWER_MAX_BYTES);
    search_hits_begin(worker->hits, &found, path, slash + 1);
    found.files = search_reader_run(worker->reader, fd, (uint64_t)stat.st_size, &found);
    search_hits_end(worker->hits);
    found.given_up = search_matcher_given_up(worker->matcher);
    search_queue_emit(queue, &found);
    search_found_deinit(&found);
    close(fd);
    return 0;
}

static int search_start(struct search_queue *queue, const struct search_filter *filter, const struct search_text *path,
                        struct err *err)
{
    char real[PATH_MAX];
    bool is_file;
    struct search_worker worker;
    int fd = open_start(queue->confine, path, &is_file, err), result = -1;
    if (fd < 0)
        return -1;
    if (confine_path_of(fd, real, sizeof(real), err) != 0) {
        close(fd);
        return -1;
    }
    if (search_worker_init(&worker, queue) != 0) {
        close(fd);
        err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot search");
    } else if (is_file) {
        result = search_one(queue, &worker, fd, real, err);
    } else {
        result = search_walk(queue, &worker, filter, fd, real, err);
        if (result != 0)
            atomic_store(&queue->limits.stopped, true);
        search_queue_finish(queue, &worker);
    }
    search_worker_deinit(&worker);
    return result;
}

/* ---- the answer */

static int write_end(const struct search_queue *queue, struct buf *answer)
{
    if (buf_printf(answer, "],\"truncated\":%s,\"timed_out\":%s,\"files_searched\":%" PRIu64,
                   queue->truncated ? "true" : "false", atomic_load(&queue->limits.timed_out) ? "true" : "false",
                   queue->files) != 0)
        return -1;
    unsigned long long unreadable = atomic_load(&queue->unreadable);
    if (unreadable > 0 && buf_printf(answer, ",\"unreadable\":%llu", unreadable) != 0)
        return -1;
    if (queue->given_up > 0 && buf_printf(answer, ",\"lines_given_up\":%" PRIu64, queue->given_up) != 0)
        return -1;
    return buf_append(answer, "}", 1);
}

static int run_queue(struct search_queue *queue, const struct search_options *options, struct buf *answer,
                     struct err *err)
{
    struct search_filter filter;
    int result = filter_init(&filter, options, err);
    if (result == 0 && buf_append_text(answer, "{\"matches\":[") == 0) {
        search_queue_init(queue, answer, options->max_results);
        result = search_start(queue, &filter, &options->path, err);
        search_queue_deinit(queue);
        if (result == 0 && write_end(queue, answer) != 0)
            result = err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot write the answer");
    }
    filter_deinit(&filter);
    return result;
}

int search_run(const struct confine *confine, const struct search_options *options, const atomic_bool *cancelled,
               struct buf *answer, struct err *err)
{
    struct search_queue *queue = calloc(1, sizeof(*queue));
    struct search_pattern *pattern =
        search_pattern_new(options->pattern.text, options->pattern.len, options->regex, options->case_sensitive, err);
    int result = -1;
    if (queue && pattern) {
        queue->confine = confine;
        queue->pattern = pattern;
        queue->limits.cancelled = cancelled;
        queue->limits.deadline_ns = options->deadline_ns;
        queue->context = options->context;
        queue->threads_max = thread_count(options->threads);
        result = run_queue(queue, options, answer, err);
    } else if (!queue) {
        err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot search");
    }
    search_pattern_free(pattern);
    free(queue);
    return result;
}
