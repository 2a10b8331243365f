/* Trees of directories, files and links, and paths into them, made of the input: openat2, the walk and a slow reference
 * that resolves by text (nothing else changes the tree) must give the same file, the same place for an entry, or the
 * same refusal, also where a part of the tree is protected. */
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

static char top[] = "/tmp/abx-fuzz-XXXXXX", base[64], guarded_path[80];

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
    unsigned kind = next(input, 16), count = next(input, COMPONENTS_MAX);
    size_t len = 0;
    out[0] = '\0';
    if (kind == 0)
        len = (size_t)snprintf(out, size, "%s/", base);
    else if (kind == 1)
        len = (size_t)snprintf(out, size, "%s/out/", top);
    else if (kind == 2)
        len = (size_t)snprintf(out, size, "%s-evil/", base);
    else if (kind == 3)
        len = (size_t)snprintf(out, size, "/proc/self/root%s/", base);
    else if (kind == 4)
        len = (size_t)snprintf(out, size, "/proc/self/cwd/");
    else if (kind == 5)
        len = (size_t)snprintf(out, size, "%s/alias//", top);
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

/* Where the reference arrived. */
struct end {
    struct stat found; /* without ENTRY */
    /* With ENTRY: the directory that exists, the names missing below it ("a/b"), and the name itself. */
    struct stat dir;
    char missing[PATH_MAX], name[256];
};
enum { FOLLOW = 1, ENTRY = 2, MISSING = 4 }; /* a final link; stop before the entry; directories may be missing */

/* The protected path, none unless it exists: it and all below it are refused. */
static struct stat guarded;

static bool is_guarded(const struct stat *found)
{
    return guarded.st_ino != 0 && found->st_dev == guarded.st_dev && found->st_ino == guarded.st_ino;
}

static enum err_code end_at(const struct place *place, const char *missing, const char *name, struct end *out)
{
    static char full[8192];
    if (!look(place, ".", full, sizeof(full), &out->dir))
        return ERR_INTERNAL;
    snprintf(out->missing, sizeof(out->missing), "%s", missing);
    snprintf(out->name, sizeof(out->name), "%s", name);
    return ERR_NONE;
}

/* rest begins with a directory that is missing: only plain names may follow. */
static enum err_code refer_missing(const struct place *place, char *rest, struct end *out)
{
    char missing[PATH_MAX] = "";
    for (;;) {
        char *name = rest + strspn(rest, "/"), *after = name + strcspn(name, "/");
        bool last = after[strspn(after, "/")] == '\0';
        if (*after)
            *after++ = '\0';
        if (strcmp(name, "..") == 0 || (last && strcmp(name, ".") == 0))
            return ERR_FILE_NOT_FOUND;
        if (last)
            return end_at(place, missing, name, out);
        if (strcmp(name, ".") != 0)
            snprintf(missing + strlen(missing), sizeof(missing) - strlen(missing), "%s%s", missing[0] ? "/" : "", name);
        rest = after;
    }
}

static enum err_code refer(const char *path, int how, struct end *out)
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
        snprintf(again, sizeof(again), "%s", name); /* as it was, for refer_missing */
        if (slash)
            *after++ = '\0';
        bool dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
        if (dots && name[1] == '.') {
            if (place.depth == 0)
                return ERR_PATH_OUTSIDE_BASE;
            place.depth--;
        } else if (!dots) {
            struct stat *found = &out->found;
            if (!look(&place, name, full, sizeof(full), found)) {
                if (last && (how & ENTRY))
                    return end_at(&place, "", name, out);
                return how & MISSING ? refer_missing(&place, again, out) : ERR_FILE_NOT_FOUND;
            }
            if (is_guarded(found))
                return ERR_PERMISSION_DENIED;
            if (S_ISLNK(found->st_mode) && ((how & FOLLOW) || !last || (slash && !(how & ENTRY)))) {
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
            if (!S_ISDIR(found->st_mode) && !S_ISLNK(found->st_mode) && (!last || slash))
                return ERR_NOT_A_DIRECTORY;
            if (last && (how & ENTRY))
                return end_at(&place, "", name, out);
            if (!S_ISDIR(found->st_mode))
                return ERR_NONE;
            snprintf(texts[place.depth], sizeof(texts[0]), "%s", name);
            place.names[place.depth] = texts[place.depth];
            place.depth++;
        }
        memmove(rest, slash ? after : "", slash ? strlen(after) + 1 : 1);
    }
    if (!(how & ENTRY))
        return look(&place, ".", full, sizeof(full), &out->found) ? ERR_NONE : ERR_FILE_NOT_FOUND;
    if (place.depth == 0)
        return ERR_BASE_DIR_PROTECTED;
    place.depth--;
    return end_at(&place, "", place.names[place.depth], out);
}

static void fail(const char *what, const char *path, enum err_code wanted, enum err_code got)
{
    fprintf(stderr, "%s: %s: wanted %s, got %s\n", what, path, err_code_name(wanted), err_code_name(got));
    abort();
}

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static void check_open(struct confine *confine, const char *what, const char *path, bool follow)
{
    struct end wanted;
    struct stat got;
    struct err err = {0};
    enum err_code code = refer(path, follow ? FOLLOW : 0, &wanted);
    int fd = confine_open(confine, path, strlen(path), O_PATH | (follow ? 0 : O_NOFOLLOW), &err);
    if (code != err.code)
        fail(what, path, code, err.code);
    if (fd < 0)
        return;
    if (fstat(fd, &got) != 0 || !is_same(&got, &wanted.found))
        fail(what, path, ERR_NONE, ERR_NONE);
    close(fd);
}

/* What is opened for real is the same as what was found, and of the right kind. */
static void check_kinds(struct confine *confine, const char *what, const char *path)
{
    struct end wanted;
    struct stat got;
    struct err err = {0};
    enum err_code code = refer(path, FOLLOW, &wanted), as_file = code, as_dir = code;
    if (code == ERR_NONE) {
        as_file = S_ISDIR(wanted.found.st_mode) ? ERR_IS_A_DIRECTORY : ERR_NONE;
        as_dir = S_ISDIR(wanted.found.st_mode) ? ERR_NONE : ERR_NOT_A_DIRECTORY;
    }
    int fd = confine_open_file(confine, path, strlen(path), O_RDWR, &err);
    if (err.code != as_file || (fd >= 0 && (fstat(fd, &got) != 0 || !is_same(&got, &wanted.found))))
        fail(what, path, as_file, err.code);
    if (fd >= 0)
        close(fd);
    err = (struct err){0};
    fd = confine_open_dir(confine, path, strlen(path), &err);
    if (err.code != as_dir || (fd >= 0 && (fstat(fd, &got) != 0 || !is_same(&got, &wanted.found))))
        fail(what, path, as_dir, err.code);
    if (fd >= 0)
        close(fd);
}

static void check_parent(struct confine *confine, const char *what, const char *path, int flags)
{
    struct err err = {0};
    struct end wanted;
    struct confine_entry got;
    struct stat dir;
    int how = ENTRY | (flags & CONFINE_FOLLOW ? FOLLOW : 0) | (flags & CONFINE_MISSING_PARENTS ? MISSING : 0);
    enum err_code code = refer(path, how, &wanted);
    int missed = confine_parent(confine, path, strlen(path), flags, &got, &err);
    if (code != err.code)
        fail(what, path, code, err.code);
    if (missed)
        return;
    if (fstat(got.dir_fd, &dir) != 0 || !is_same(&dir, &wanted.dir) || strcmp(got.name, wanted.name) != 0 ||
        strcmp(got.missing, wanted.missing) != 0)
        fail(what, path, ERR_NONE, ERR_NONE);
    close(got.dir_fd);
}

static void check_all(struct confine *confine, const char *what, const char *path)
{
    for (int follow = 0; follow < 2; follow++) {
        check_open(confine, what, path, follow);
        check_parent(confine, what, path, follow ? CONFINE_FOLLOW : 0);
        check_parent(confine, what, path, CONFINE_MISSING_PARENTS | (follow ? CONFINE_FOLLOW : 0));
    }
    check_kinds(confine, what, path);
}

/* The same base with one name in it protected. */
static struct confine *new_guarded(void)
{
    struct err err;
    bool inside;
    struct confine *confine = confine_new(base, false, &err);
    if (!confine || confine_protect(confine, guarded_path, &inside, &err) != 0)
        abort();
    return confine;
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
    snprintf(guarded_path, sizeof(guarded_path), "%s/b", base);
    snprintf(path, sizeof(path), "%s/alias", top);
    if (symlink("ws", path) != 0)
        abort();
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
    char path[512];
    mkdir(base, 0755);
    make_tree(&input);
    struct confine *fast = confine_new(base, false, &err), *walk = confine_new(base, true, &err);
    struct confine *guarded_walk = new_guarded();
    if (!fast || !walk)
        abort();
    do {
        make_path(&input, path, sizeof(path));
        guarded.st_ino = 0;
        check_all(fast, "openat2", path);
        check_all(walk, "walk", path);
        /* Of a link its target is protected too, which the reference does not know. */
        if (lstat(guarded_path, &guarded) == 0 && !S_ISLNK(guarded.st_mode))
            check_all(guarded_walk, "guarded", path);
    } while (input.at < input.end);
    confine_free(fast);
    confine_free(walk);
    confine_free(guarded_walk);
    nftw(base, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    snprintf(path, sizeof(path), "%s/out", top);
    if (count_entries(path) != 1)
        abort(); /* something was made outside */
    return 0;
}
