/* Where the browser's parts are looked for; see the header. Called by bind/browser_worker. */
#include "prim/browser_parts.h"

#include "prim/spawn.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "playwright-core"
#define LIBRARY_VERSION "1.64.1"

enum { DIR_TOLD_MAX = 100 }; /* what there is room for in a message */

/* The headless shell takes half the memory of the whole browser, and starts faster; the commands of that name are
 * scripts around it. */
static const char *const installed_browsers[] = {"/usr/lib/chromium/chromium-headless-shell",
                                                 "/usr/lib/chromium/chromium"};
static const char *const browser_commands[] = {"chromium-headless-shell", "chromium", "chromium-browser",
                                               "google-chrome"};
static const char *const module_dirs[] = {"/usr/local/lib/node_modules", "/usr/lib/node_modules", "/usr/share/nodejs"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Answers whether what is printed fits. */
static bool ABX_PRINTF(2, 3) put_path(char out[PATH_MAX], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(out, PATH_MAX, fmt, args);
    va_end(args);
    return len >= 0 && len < PATH_MAX;
}

static bool is_executable(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && S_ISREG(found.st_mode) && access(path, X_OK) == 0;
}

/* --- modules */

/* Whether DIR/NAME is a package; out is its path then, else as it was or worse. */
static bool has_module(const char *dir, int dir_len, const char *name, char out[PATH_MAX])
{
    char manifest[PATH_MAX];
    struct stat found;
    return put_path(out, "%.*s/%s", dir_len, dir, name) && put_path(manifest, "%s/package.json", out) &&
           stat(manifest, &found) == 0 && S_ISREG(found.st_mode);
}

/* In the node_modules of dir and of each directory above it, as node itself looks. */
static bool find_above(const char *dir, const char *name, char out[PATH_MAX])
{
    char modules[PATH_MAX];
    size_t len = strlen(dir);
    for (;;) {
        while (len > 0 && dir[len - 1] == '/')
            len--;
        if (put_path(modules, "%.*s/node_modules", (int)len, dir) &&
            has_module(modules, (int)strlen(modules), name, out))
            return true;
        if (len == 0)
            return false;
        while (len > 0 && dir[len - 1] != '/')
            len--;
    }
}

/* In the directories of a list with colons. Relative ones are left out: they would mean the clients' directory. */
static bool find_listed(const char *list, const char *name, char out[PATH_MAX])
{
    while (list && *list) {
        size_t len = strcspn(list, ":");
        if (list[0] == '/' && has_module(list, (int)len, name, out))
            return true;
        list += len + (list[len] == ':');
    }
    return false;
}

/* Beside a node that is BIN/node: where npm installs what is global. */
static bool find_beside(const char *node, const char *name, char out[PATH_MAX])
{
    char dir[PATH_MAX];
    const char *end = strrchr(node, '/');
    while (end && end > node && end[-1] != '/')
        end--;
    return end && put_path(dir, "%.*slib/node_modules", (int)(end - node), node) &&
           has_module(dir, (int)strlen(dir), name, out);
}

static bool find_module(const struct browser_places *places, const char *node, const char *name, char out[PATH_MAX])
{
    char resolved[PATH_MAX];
    if (find_above(places->workers_dir, name, out) || find_listed(places->node_path, name, out) ||
        find_beside(node, name, out) || (realpath(node, resolved) && find_beside(resolved, name, out)))
        return true;
    for (size_t i = 0; i < COUNT(module_dirs); i++) {
        char dir[PATH_MAX];
        if (put_path(dir, "%s%s", places->root, module_dirs[i]) && has_module(dir, (int)strlen(dir), name, out))
            return true;
    }
    return false;
}

/* --- programs */

static bool find_command(const struct browser_places *places, const char *name, char out[PATH_MAX])
{
    struct err ignored;
    /* No directory: a relative entry of PATH would be looked up in that of the clients. */
    return spawn_find(name, places->path, -1, out, &ignored) == 0 && out[0] == '/';
}

static bool find_browser(const struct browser_places *places, char out[PATH_MAX])
{
    for (size_t i = 0; i < COUNT(installed_browsers); i++)
        if (put_path(out, "%s%s", places->root, installed_browsers[i]) && is_executable(out))
            return true;
    for (size_t i = 0; i < COUNT(browser_commands); i++)
        if (find_command(places, browser_commands[i], out))
            return true;
    return false;
}

static int no_library(const char *workers_dir, struct err *err)
{
    bool fits = strlen(workers_dir) <= DIR_TOLD_MAX;
    return err_set(err, ERR_UNAVAILABLE,
                   "the browser needs the npm package %s, which is not here: script/bootstrap --with-browser, or npm "
                   "install %s@%s --prefix %s",
                   LIBRARY, LIBRARY, LIBRARY_VERSION, fits ? workers_dir : "WORKERS_DIR");
}

int browser_parts_find(const struct browser_places *places, struct browser_parts *out_parts, struct err *err)
{
    struct browser_parts parts;
    if (!places->workers_dir)
        return err_set(err, ERR_UNAVAILABLE,
                       "the programs that drive the browser are missing: set workers_dir to where they are");
    if (!find_command(places, "node", parts.node))
        return err_set(err, ERR_UNAVAILABLE,
                       "the browser needs the program node, which is not here: apt-get install nodejs");
    if (!find_module(places, parts.node, LIBRARY, parts.library))
        return no_library(places->workers_dir, err);
    if (!find_module(places, parts.node, "turndown", parts.turndown))
        parts.turndown[0] = '\0';
    if (!find_browser(places, parts.executable))
        return err_set(err, ERR_UNAVAILABLE,
                       "Chromium, which is the browser, is not here: apt-get install chromium-headless-shell");
    *out_parts = parts;
    return 0;
}
