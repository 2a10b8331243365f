/* The walk behind fs.list; see tree_list.h. */
#include "prim/tree_list.h"

#include "base/json.h"
#include "prim/dir_chain.h"
#include "prim/dir_scan.h"
#include "prim/entry.h"
#include "prim/glob.h"
#include "prim/list_cursor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A page ends early at these, so that neither long names nor a tree of unreadable directories make it endless. */
enum { PAGE_BYTES_MAX = 32 * 1024 * 1024, PAGE_ERRORS_MAX = 1000 };

/* A directory's path may need PATH_MAX bytes; its entries are still shown then, but not entered. */
enum { PATH_BYTES = PATH_MAX + 1 + NAME_MAX + 1 };

struct level {
    struct dir_scan scan;
    size_t at;       /* the next name */
    size_t path_len; /* of the directory, in walk.path */
    dev_t dev;
};

struct walk {
    const struct confine *confine;
    const struct tree_list_options *options;
    size_t max_depth; /* as it counts here: 1 where nothing is walked */
    struct buf *out, errors;
    size_t count, error_count;
    struct entry_names names;
    struct dir_chain chain;
    struct level *levels; /* one for each directory of chain */
    size_t level_cap;
    char path[PATH_BYTES]; /* of the entry in hand */
    size_t path_len, start_len;

    bool past_below;    /* the cursor says so */
    bool given;         /* the next entry stood in an earlier page */
    const char *resume; /* then: how the cursor's way goes on below it; NULL: not at all */

    bool over, truncated;
    bool full; /* the page ends before the next entry, if there is one */
    size_t full_errors_len, full_error_count;
    char last[PATH_BYTES]; /* where the next page goes on */
    size_t last_len;
    bool last_past_below;
};

static int no_memory(struct err *err)
{
    return err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot list the directory");
}

static struct level *top(const struct walk *walk)
{
    return &walk->levels[walk->chain.depth - 1];
}

static void keep_place(struct walk *walk, bool past_below)
{
    walk->last_len = walk->path_len - walk->start_len - 1;
    memcpy(walk->last, walk->path + walk->start_len + 1, walk->last_len);
    walk->last_past_below = past_below;
}

/* There is more, and it begins behind the place that was kept. */
static void end_page(struct walk *walk)
{
    walk->over = walk->truncated = true;
    if (!walk->full)
        return;
    /* They belong to the next page, which comes by there again. */
    walk->errors.len = walk->full_errors_len;
    walk->error_count = walk->full_error_count;
}

static int add_error(struct walk *walk, enum err_code code, struct err *err)
{
    const char *path = walk->path_len > 0 ? walk->path : "/";
    size_t len = walk->path_len > 0 ? walk->path_len : 1;
    if (buf_append_text(&walk->errors, walk->error_count > 0 ? ",{" : "{") != 0 ||
        entry_write_path(&walk->errors, "path", path, len) != 0 ||
        buf_printf(&walk->errors, ",\"code\":\"%s\"}", err_code_name(code)) != 0)
        return no_memory(err);
    if (++walk->error_count < PAGE_ERRORS_MAX || walk->path_len <= walk->start_len)
        return 0;
    if (!walk->full)
        keep_place(walk, true);
    end_page(walk);
    return 0;
}

/* Something else stands under the name than a moment ago. */
static enum err_code code_of(int reason)
{
    return reason == ENOTDIR || reason == ELOOP || reason == EAGAIN ? ERR_BUSY : err_from_errno(reason);
}

static struct level *add_level(struct walk *walk)
{
    if (walk->chain.depth > walk->level_cap) {
        size_t cap = walk->level_cap * 2 + 16;
        struct level *grown = realloc(walk->levels, cap * sizeof *grown);
        if (!grown)
            return NULL;
        walk->levels = grown;
        walk->level_cap = cap;
    }
    return top(walk);
}

/* The first name that is not before the one at the start of resume. */
static size_t find_name(const struct dir_scan *scan, const char *name)
{
    size_t low = 0, high = scan->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(scan->names[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Goes to where the cursor's way leads through this directory; what it names need not exist any more. */
static void resume_in(struct walk *walk, struct level *level, const char *resume)
{
    char name[NAME_MAX + 1];
    size_t len = strcspn(resume, "/");
    memcpy(name, resume, len);
    name[len] = '\0';
    level->at = find_name(&level->scan, name);
    if (level->at == level->scan.count || strcmp(level->scan.names[level->at].name, name) != 0)
        return;
    bool is_last = resume[len] == '\0';
    if (is_last && walk->past_below) {
        level->at++;
        return;
    }
    walk->given = true;
    walk->resume = is_last ? NULL : resume + len + 1;
}

/* Takes fd, the directory that walk->path names. */
static int push(struct walk *walk, int fd, dev_t dev, const char *resume, struct err *err)
{
    if (dir_chain_push(&walk->chain, fd) != 0)
        return add_error(walk, code_of(errno), err);
    struct level *level = add_level(walk);
    if (!level)
        return no_memory(err);
    *level = (struct level){.path_len = walk->path_len, .dev = dev};
    if (dir_scan(fd, &level->scan) != 0) {
        if (errno == ENOMEM)
            return no_memory(err);
        if (add_error(walk, code_of(errno), err) != 0)
            return -1;
    }
    if (resume)
        resume_in(walk, level, resume);
    return 0;
}

static int pop(struct walk *walk, struct err *err)
{
    dir_scan_free(&top(walk)->scan);
    if (dir_chain_pop(&walk->chain) == 0)
        return 0;
    /* The way back is lost: the next page comes from above, and goes past the directory that was moved. */
    int reason = errno;
    walk->path_len = top(walk)->path_len;
    if (add_error(walk, code_of(reason), err) != 0)
        return -1;
    walk->over = true;
    if (walk->truncated || walk->path_len <= walk->start_len)
        return 0;
    if (!walk->full)
        keep_place(walk, true);
    end_page(walk);
    return 0;
}

static int enter(struct walk *walk, const char *name, const struct stat *found, const char *resume, struct err *err)
{
    if (walk->chain.depth >= walk->max_depth)
        return walk->max_depth < TREE_LIST_DEEP ? 0 : add_error(walk, ERR_INVALID_PATH, err);
    if (walk->path_len >= PATH_MAX)
        return add_error(walk, ERR_INVALID_PATH, err);
    int fd = openat(dir_chain_top(&walk->chain), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return add_error(walk, code_of(errno), err);
    if (found->st_dev != top(walk)->dev && confine_is_kernel_fs(fd)) {
        close(fd);
        return add_error(walk, ERR_NOT_A_REGULAR_FILE, err);
    }
    return push(walk, fd, found->st_dev, resume, err);
}

/* Appends the entry in hand. A link that went meanwhile is left out. */
static int give(struct walk *walk, const char *name, const struct stat *found, struct err *err)
{
    char target[PATH_MAX];
    ssize_t target_len = -1;
    if (S_ISLNK(found->st_mode)) {
        target_len = readlinkat(dir_chain_top(&walk->chain), name, target, sizeof target);
        if (target_len < 0 && (errno == ENOENT || errno == EINVAL))
            return 0;
    }
    if (buf_append_few(walk->out, ",{", walk->count > 0 ? 2 : 0) != 0 ||
        buf_append_few(walk->out, "{", walk->count > 0 ? 0 : 1) != 0 ||
        entry_write(walk->out, &walk->names, walk->path, walk->path_len, found, target_len >= 0 ? target : NULL,
                    target_len >= 0 ? (size_t)target_len : 0) != 0 ||
        buf_append_few(walk->out, "}", 1) != 0)
        return no_memory(err);
    if (++walk->count < walk->options->limit && walk->out->len < PAGE_BYTES_MAX)
        return 0;
    walk->full = true;
    walk->full_errors_len = walk->errors.len;
    walk->full_error_count = walk->error_count;
    keep_place(walk, false);
    return 0;
}

static void set_path(struct walk *walk, const struct level *level, const char *name)
{
    size_t len = strlen(name);
    walk->path[level->path_len] = '/';
    memcpy(walk->path + level->path_len + 1, name, len + 1);
    walk->path_len = level->path_len + 1 + len;
}

static bool is_shown(const struct walk *walk)
{
    const struct glob *glob = walk->options->glob;
    const char *relative = walk->path + walk->start_len + 1;
    return !walk->given && (!glob || glob_matches(glob, relative, walk->path_len - walk->start_len - 1));
}

static int visit(struct walk *walk, const struct dir_name *entry, struct err *err)
{
    struct stat found;
    int dir_fd = dir_chain_top(&walk->chain);
    set_path(walk, top(walk), entry->name);
    const char *resume = walk->given ? walk->resume : NULL;
    bool shown = is_shown(walk), may_enter = walk->options->recursive && walk->max_depth > 1 &&
                                             (entry->type == DT_DIR || entry->type == DT_UNKNOWN);
    walk->given = false;
    if ((!shown && !may_enter) || (entry->name[0] == '.' && !walk->options->hidden))
        return 0;
    if (fstatat(dir_fd, entry->name, &found, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) != 0)
        return errno == ENOENT ? 0 : add_error(walk, code_of(errno), err);
    if (!shown && !S_ISDIR(found.st_mode))
        return 0;
    if (confine_is_guarded(walk->confine, dir_fd, entry->name, &found))
        return add_error(walk, ERR_PERMISSION_DENIED, err);
    if (shown && walk->full) {
        end_page(walk);
        return 0;
    }
    if (shown && give(walk, entry->name, &found, err) != 0)
        return -1;
    return S_ISDIR(found.st_mode) && walk->options->recursive ? enter(walk, entry->name, &found, resume, err) : 0;
}

static int walk_all(struct walk *walk, struct err *err)
{
    int result = 0;
    while (result == 0 && !walk->over && walk->chain.depth > 0) {
        struct level *level = top(walk);
        if (atomic_load_explicit(walk->options->cancelled, memory_order_relaxed))
            return err_set(err, ERR_HANDLER_TIMEOUT, "the listing was cancelled");
        if (level->at == level->scan.count) {
            result = pop(walk, err);
            continue;
        }
        result = visit(walk, &level->scan.names[level->at++], err);
    }
    return result;
}

/* Begins the answer with the start's real path. */
static int describe(struct walk *walk, int fd, struct err *err)
{
    if (confine_path_of(fd, walk->path, PATH_MAX, err) != 0)
        return -1;
    walk->path_len = walk->start_len = strcmp(walk->path, "/") == 0 ? 0 : strlen(walk->path);
    bool is_kernel = confine_is_kernel_fs(fd);
    walk->max_depth = walk->options->recursive && !is_kernel ? walk->options->max_depth : 1;
    if (is_kernel && walk->options->recursive && add_error(walk, ERR_NOT_A_REGULAR_FILE, err) != 0)
        return -1;
    if (buf_append(walk->out, "{", 1) == 0 &&
        entry_write_path(walk->out, "path", walk->path, strlen(walk->path)) == 0 &&
        buf_append_text(walk->out, ",\"entries\":[") == 0)
        return 0;
    return no_memory(err);
}

/* Opens the start and reads it. Whatever is wrong with it is the answer, not one of its errors. */
static int begin(struct walk *walk, const char *path, size_t len, struct err *err)
{
    struct stat found;
    int fd = confine_open_dir(walk->confine, path, len, err);
    if (fd < 0)
        return -1;
    if (fstat(fd, &found) != 0 || found.st_nlink == 0)
        err_set(err, ERR_FILE_NOT_FOUND, "the directory was removed meanwhile");
    else if (describe(walk, fd, err) == 0)
        return push(walk, fd, found.st_dev, walk->resume, err);
    close(fd);
    return -1;
}

static int finish(struct walk *walk, struct err *err)
{
    struct buf *out = walk->out;
    int result = buf_printf(out, "],\"truncated\":%s,\"next_cursor\":", walk->truncated ? "true" : "false");
    if (result == 0 && walk->truncated)
        result = buf_append(out, "\"", 1) == 0 &&
                         list_cursor_write(out, walk->last, walk->last_len, walk->last_past_below) == 0 &&
                         buf_append(out, "\"", 1) == 0
                     ? 0
                     : -1;
    else if (result == 0)
        result = buf_append_text(out, "null");
    if (result == 0 && buf_append_text(out, ",\"errors\":[") == 0 &&
        buf_append(out, walk->errors.data, walk->errors.len) == 0 && buf_append_text(out, "]}") == 0)
        return 0;
    return no_memory(err);
}

static void walk_free(struct walk *walk, struct list_cursor *cursor)
{
    for (size_t i = 0; i < walk->chain.depth && i < walk->level_cap; i++)
        dir_scan_free(&walk->levels[i].scan);
    free(walk->levels);
    dir_chain_close(&walk->chain);
    entry_names_free(&walk->names);
    buf_deinit(&walk->errors);
    free(cursor->path);
    free(walk);
}

int tree_list(const struct confine *confine, const char *path, size_t len, const struct tree_list_options *options,
              struct buf *out, struct err *err)
{
    struct list_cursor cursor = {0};
    if (options->cursor && list_cursor_read(options->cursor, options->cursor_len, &cursor) != 0) {
        err_set(err, ERR_INVALID_REQUEST, "not a cursor that a listing gave");
        return err_field(err, "cursor");
    }
    struct walk *walk = calloc(1, sizeof *walk);
    if (!walk) {
        free(cursor.path);
        return no_memory(err);
    }
    walk->confine = confine;
    walk->options = options;
    walk->out = out;
    walk->resume = cursor.path;
    walk->past_below = cursor.past_below;
    buf_init(&walk->errors, PAGE_BYTES_MAX * 2);
    int result = begin(walk, path, len, err);
    if (result == 0)
        result = walk_all(walk, err);
    if (result == 0)
        result = finish(walk, err);
    walk_free(walk, &cursor);
    return result;
}
