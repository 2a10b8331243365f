/* Trees of directories, files and links, and a path into them, made of the input: openat2, the walk and a slow
 * reference that resolves by text (nothing else changes the tree) must give the same file or the same refusal. */
#include "prim/confine.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ENTRIES_MAX = 12, COMPONENTS_MAX = 8, DEPTH_MAX = 512, LINKS_MAX = 40 };

static char top[] = "/tmp/abx-fuzz-XXXXXX", base[64];

struct input {
    const uint8_t *at, *end;
};

static unsigned next(struct input *input, unsigned count)
{
    return input->at < input->end ? *input->at++ % count : 0;
}

/* A path of a few components, absolute now and then. */
static void make_path(struct input *input, char *out, size_t size)
{
    static const char *const parts[] = {"a", "b", "c", "..", ".", "", "a", "out", "ws", "secret"};
    unsigned kind = next(input, 8), count = next(input, COMPONENTS_MAX);
    size_t len = 0;
    out[0] = '\0';
    if (kind == 0)
        len = (size_t)snprintf(out, size, "%s/", base);
    else if (kind == 1)
        len = (size_t)snprintf(out, size, "%s/out/", top);
    else if (kind == 2)
        len = (size_t)snprintf(out, size, "%s-evil/", base);
    for (unsigned i = 0; i < count; i++)
        len += (size_t)snprintf(out + len, size - len, "%s%s", i ? "/" : "", parts[next(input, 10)]);
}

static void make_tree(struct input *input)
{
    static const char *const places[] = {"", "a/", "b/", "a/b/", "a/a/", "b/c/"};
    static const char *const names[] = {"a", "b", "c"};
    for (unsigned i = next(input, ENTRIES_MAX); i > 0; i--) {
        char entry[128], target[512], dir[PATH_MAX];
        unsigned kind = next(input, 4);
        snprintf(entry, sizeof(entry), "%s/%s", base, places[next(input, 6)]);
        if (!realpath(entry, dir) || strncmp(dir, base, strlen(base)) != 0 || strstr(dir, "-evil"))
            continue; /* a link made before leads out */
        strcat(entry, names[next(input, 3)]);
        if (kind == 0) {
            mkdir(entry, 0755);
        } else if (kind == 1) {
            int fd = open(entry, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0644);
            if (fd >= 0)
                close(fd);
        } else {
            make_path(input, target, sizeof(target));
            if (target[0] && symlink(target, entry) != 0)
                continue;
        }
    }
}

/* Where the reference stands: the names from the base down. */
struct place {
    const char *names[DEPTH_MAX];
    size_t depth;
};

static bool look(const struct place *place, const char *name, char *out_full, size_t size, struct stat *out)
{
    size_t len = (size_t)snprintf(out_full, size, "%s", base);
    for (size_t i = 0; i < place->depth; i++)
        len += (size_t)snprintf(out_full + len, size - len, "/%s", place->names[i]);
    snprintf(out_full + len, size - len, "/%s", name);
    return lstat(out_full, out) == 0;
}

/* What follows the base's name, or else the shortest beginning of an absolute path that is the base; NULL: elsewhere.
 */
static const char *below_base(const char *path)
{
    size_t len = strlen(base);
    struct stat wanted, found;
    if (path[0] != '/' || (strncmp(path, base, len) == 0 && (path[len] == '/' || path[len] == '\0')))
        return path[0] == '/' ? path + len : path;
    stat(base, &wanted);
    for (len = 1; len <= strlen(path); len++) {
        char prefix[PATH_MAX];
        snprintf(prefix, sizeof(prefix), "%.*s", (int)len, path);
        if ((path[len] == '/' || path[len] == '\0') && stat(prefix, &found) == 0 && found.st_dev == wanted.st_dev &&
            found.st_ino == wanted.st_ino)
            return path + len;
    }
    return NULL;
}

static enum err_code refer(const char *path, bool follow, struct stat *out)
{
    static char rest[64 * 1024], texts[DEPTH_MAX][256], again[64 * 1024], full[8192];
    struct place place = {.depth = 0};
    const char *start = below_base(path);
    if (!start)
        return ERR_PATH_OUTSIDE_BASE;
    snprintf(rest, sizeof(rest), "%s", start);
    for (int links = 0;;) {
        char *name = rest + strspn(rest, "/"), *after = name + strcspn(name, "/");
        bool slash = *after == '/', last = after[strspn(after, "/")] == '\0';
        if (name == after)
            break;
        if (slash)
            *after++ = '\0';
        bool dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
        if (dots && name[1] == '.') {
            if (place.depth == 0)
                return ERR_PATH_OUTSIDE_BASE;
            place.depth--;
        } else if (!dots) {
            if (!look(&place, name, full, sizeof(full), out))
                return ERR_FILE_NOT_FOUND;
            if (S_ISLNK(out->st_mode) && (follow || !last || slash)) {
                if (++links > LINKS_MAX)
                    return ERR_INVALID_PATH;
                char target[PATH_MAX];
                ssize_t len = readlink(full, target, sizeof(target) - 1);
                target[len] = '\0';
                const char *inner = below_base(target);
                if (!inner)
                    return ERR_PATH_OUTSIDE_BASE;
                if (target[0] == '/')
                    place.depth = 0;
                snprintf(again, sizeof(again), "%s%s%s", inner, slash ? "/" : "", slash ? after : "");
                memcpy(rest, again, sizeof(rest));
                continue;
            }
            if (!S_ISDIR(out->st_mode))
                return last && !slash ? ERR_NONE : ERR_NOT_A_DIRECTORY;
            snprintf(texts[place.depth], sizeof(texts[0]), "%s", name);
            place.names[place.depth] = texts[place.depth];
            place.depth++;
        }
        memmove(rest, slash ? after : "", slash ? strlen(after) + 1 : 1);
    }
    return look(&place, ".", full, sizeof(full), out) ? ERR_NONE : ERR_FILE_NOT_FOUND;
}

static void fail(const char *what, const char *path, enum err_code wanted, enum err_code got)
{
    fprintf(stderr, "%s: %s: wanted %s, got %s\n", what, path, err_code_name(wanted), err_code_name(got));
    abort();
}

static void check_open(struct confine *confine, const char *what, const char *path, bool follow)
{
    struct stat wanted, got;
    struct err err = {0};
    enum err_code code = refer(path, follow, &wanted);
    int fd = confine_open(confine, path, strlen(path), O_PATH | (follow ? 0 : O_NOFOLLOW), &err);
    if (code != err.code)
        fail(what, path, code, err.code);
    if (fd < 0)
        return;
    if (fstat(fd, &got) != 0 || got.st_dev != wanted.st_dev || got.st_ino != wanted.st_ino)
        fail(what, path, ERR_NONE, ERR_NONE);
    close(fd);
}

/* Both ways of finding an entry agree, and its directory lies in the base. */
static void check_parent(struct confine *fast, struct confine *walk, const char *path, int flags)
{
    struct err one = {0}, two = {0};
    struct confine_entry left, right;
    struct stat left_dir, right_dir;
    char real[PATH_MAX];
    bool fast_found = confine_parent(fast, path, strlen(path), flags, &left, &one) == 0;
    bool walk_found = confine_parent(walk, path, strlen(path), flags, &right, &two) == 0;
    if (one.code != two.code || fast_found != walk_found)
        fail("parent", path, one.code, two.code);
    if (!fast_found)
        return;
    fstat(left.dir_fd, &left_dir);
    fstat(right.dir_fd, &right_dir);
    if (left_dir.st_ino != right_dir.st_ino || strcmp(left.name, right.name) != 0 || strchr(left.name, '/') ||
        strcmp(left.missing, right.missing) != 0 || confine_path_of(left.dir_fd, real, sizeof(real), &one) != 0 ||
        !below_base(real))
        fail("parent", path, ERR_NONE, ERR_NONE);
    close(left.dir_fd);
    close(right.dir_fd);
}

static int remove_entry(const char *path, const struct stat *found, int kind, struct FTW *at)
{
    (void)found;
    (void)kind;
    (void)at;
    return remove(path);
}

static void clean_up(void)
{
    nftw(top, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int count_entries(const char *path)
{
    int count = 0;
    DIR *dir = opendir(path);
    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count - 2;
}

static void make_top(void)
{
    char path[128];
    if (!mkdtemp(top))
        abort();
    atexit(clean_up);
    snprintf(base, sizeof(base), "%s/ws", top);
    snprintf(path, sizeof(path), "%s/out", top);
    mkdir(path, 0755);
    snprintf(path, sizeof(path), "%s/out/secret", top);
    close(open(path, O_WRONLY | O_CREAT, 0644));
    snprintf(path, sizeof(path), "%s/ws-evil", top);
    mkdir(path, 0755);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (base[0] == '\0')
        make_top();
    struct input input = {data, data + size};
    struct err err;
    mkdir(base, 0755);
    make_tree(&input);
    struct confine *fast = confine_new(base, false, &err), *walk = confine_new(base, true, &err);
    if (!fast || !walk)
        abort();
    do {
        char path[512];
        make_path(&input, path, sizeof(path));
        for (int follow = 0; follow < 2; follow++) {
            check_open(fast, "openat2", path, follow);
            check_open(walk, "walk", path, follow);
            check_parent(fast, walk, path, follow ? CONFINE_FOLLOW : 0);
            check_parent(fast, walk, path, CONFINE_MISSING_PARENTS | (follow ? CONFINE_FOLLOW : 0));
        }
    } while (input.at < input.end);
    confine_free(fast);
    confine_free(walk);
    nftw(base, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    char path[128];
    snprintf(path, sizeof(path), "%s/out", top);
    if (count_entries(path) != 1)
        abort(); /* something was made outside */
    return 0;
}
