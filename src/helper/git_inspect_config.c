/* Looks for included files in a repository's configuration, which libgit2 reads without asking. Stricter than
 * libgit2's own grammar: what it might read as an inclusion in an unusual way is refused. */
#include "helper/git_inspect.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { CONFIG_MAX_BYTES = 1024 * 1024, INCLUDES_MAX = 64, INCLUDE_DEPTH_MAX = 10 };

struct includes {
    const struct confine *confine;
    struct err *err;
    int count;
};

static int read_config(struct includes *includes, const char *path, int depth);

static int is_odd(struct includes *includes, const char *path)
{
    return err_set(includes->err, ERR_INVALID_REQUEST, "%s includes files in a way that is not understood here", path);
}

/* The value of a line "path = value"; NULL where it is anything else. Cuts the line. */
static char *value_of_path(char *line)
{
    char *at = line;
    if (strncasecmp(at, "path", 4) != 0)
        return NULL;
    at += 4;
    at += strspn(at, " \t");
    if (*at != '=')
        return NULL;
    at++;
    at += strspn(at, " \t");
    size_t len = strlen(at);
    while (len > 0 && isspace((unsigned char)at[len - 1]))
        len--;
    at[len] = '\0';
    if (len >= 2 && at[0] == '"' && at[len - 1] == '"') {
        at[len - 1] = '\0';
        at++;
    }
    return at[0] && !strpbrk(at, "\"\\;#") ? at : NULL;
}

static int follow(struct includes *includes, const char *from, char *line, int depth)
{
    char dir[PATH_MAX], path[PATH_MAX];
    const char *value = value_of_path(line);
    /* "~" is nobody's home here, so that git and abxd would not read the same file. */
    if (!value || value[0] == '~')
        return is_odd(includes, from);
    if (depth >= INCLUDE_DEPTH_MAX || ++includes->count > INCLUDES_MAX)
        return err_set(includes->err, ERR_INVALID_REQUEST, "%s includes too many files", from);
    snprintf(dir, sizeof dir, "%.*s", (int)(strrchr(from, '/') - from), from);
    if (git_inspect_join(path, dir, value, includes->err) != 0)
        return -1;
    return read_config(includes, path, depth + 1);
}

/* Whether the line begins a section, and one that includes. */
static bool begins_section(const char *line, bool *out_includes)
{
    if (line[0] != '[')
        return false;
    *out_includes = strncasecmp(line, "[include", 8) == 0;
    return true;
}

static int read_lines(struct includes *includes, const char *path, char *text, int depth)
{
    bool in_include = false;
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        line += strspn(line, " \t\r");
        if (begins_section(line, &in_include)) {
            const char *end = strrchr(line, ']');
            /* No key may stand behind the name, and no second section. */
            if (strcasestr(line + 1, "[include") || (in_include && (!end || end[1 + strspn(end + 1, " \t\r")])))
                return is_odd(includes, path);
            continue;
        }
        if (strcasestr(line, "[include"))
            return is_odd(includes, path);
        if (!in_include || line[0] == '\0' || line[0] == '#' || line[0] == ';')
            continue;
        if (follow(includes, path, line, depth) != 0)
            return -1;
    }
    return 0;
}

static int read_config(struct includes *includes, const char *path, int depth)
{
    struct buf text;
    buf_init(&text, CONFIG_MAX_BYTES);
    int rc = git_inspect_read(includes->confine, path, &text, includes->err);
    if (rc == -1 && includes->err->code == ERR_PATH_OUTSIDE_BASE)
        err_set(includes->err, ERR_PATH_OUTSIDE_BASE, "the repository's configuration leads out of the base: %s", path);
    if (rc == 0 && memchr(text.data, '\0', text.len - 1))
        rc = is_odd(includes, path);
    if (rc == 0)
        rc = read_lines(includes, path, text.data, depth);
    buf_deinit(&text);
    return rc < 0 ? -1 : 0;
}

int git_inspect_config(const struct confine *confine, const char *git_dir, struct err *err)
{
    static const char *const names[] = {"config", "config.worktree"};
    struct includes includes = {.confine = confine, .err = err};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[PATH_MAX];
        if (git_inspect_join(path, git_dir, names[i], err) != 0 || read_config(&includes, path, 0) != 0)
            return -1;
    }
    return 0;
}
