/* The place of this process among the control groups; called by metrics and by the process table. */
#include "prim/cgroup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 3 * PATH_MAX };

/* Whether a list with commas has that word. */
static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, word, len) == 0 && (at[len] == ',' || at[len] == '\0' || at[len] == '\n'))
            return true;
    }
    return false;
}

static FILE *open_below(const char *root, const char *path)
{
    char full[2 * PATH_MAX];
    snprintf(full, sizeof(full), "%s%s", root, path);
    return fopen(full, "re");
}

/* A line of /proc/self/cgroup is "ID:CONTROLLERS:PATH"; v2's is "0::PATH". */
static bool read_own_path(const char *root, const char *controller, char out[PATH_MAX])
{
    char line[LINE_MAX_BYTES];
    bool found = false;
    FILE *file = open_below(root, "/proc/self/cgroup");
    while (file && !found && fgets(line, sizeof(line), file)) {
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        found = controller ? has_word(controllers + 1, controller) : strcmp(line, "0:") == 0;
        if (found)
            snprintf(out, PATH_MAX, "%s", path);
    }
    if (file)
        fclose(file);
    return found;
}

/* The kernel writes blanks, tabs, newlines and backslashes as \ooo. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        bool octal = from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' && from[2] <= '7' &&
                     from[3] >= '0' && from[3] <= '7';
        *to = octal ? (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0')) : *from;
        from += octal ? 4 : 1;
    }
    *to = '\0';
}

struct mount {
    char root[PATH_MAX], point[PATH_MAX];
};

/* A line of mountinfo: "36 35 98:0 ROOT POINT OPTIONS [FIELDS] - TYPE SOURCE SUPER_OPTIONS". */
static bool parse_mount(const char *line, const char *controller, struct mount *out)
{
    const char *rest = strstr(line, " - ");
    char type[32], super[1024];
    if (!rest || sscanf(rest, " - %31s %*s %1023s", type, super) != 2 ||
        sscanf(line, "%*d %*d %*s %4095s %4095s", out->root, out->point) != 2)
        return false;
    unescape(out->root);
    unescape(out->point);
    return controller ? strcmp(type, "cgroup") == 0 && has_word(super, controller) : strcmp(type, "cgroup2") == 0;
}

/* Whether some part of the path is "..": the group lies outside of what this cgroup namespace shows. */
static bool leads_out(const char *path)
{
    for (const char *part = strstr(path, "/.."); part; part = strstr(part + 1, "/.."))
        if (part[3] == '/' || part[3] == '\0')
            return true;
    return false;
}

/* The own path seen from the mount: below its root. Within a container's own cgroup namespace both begin at "/". */
static bool join(const char *root, const struct mount *mount, const char *own, struct cgroup_place *out)
{
    size_t root_len = strcmp(mount->root, "/") == 0 ? 0 : strlen(mount->root);
    if (strncmp(own, mount->root, root_len) != 0 || (own[root_len] != '/' && own[root_len] != '\0') || leads_out(own))
        return false;
    const char *below = own + root_len;
    int len = snprintf(out->dir, sizeof(out->dir), "%s%s", mount->point, strcmp(below, "/") == 0 ? "" : below);
    if (len <= 0 || len >= (int)sizeof(out->dir))
        return false;
    out->top_len = strlen(mount->point);
    char full[2 * PATH_MAX];
    snprintf(full, sizeof(full), "%s%s", root, out->dir);
    return access(full, F_OK) == 0;
}

bool cgroup_find(const char *root, const char *controller, struct cgroup_place *out)
{
    char own[PATH_MAX], line[LINE_MAX_BYTES];
    struct mount *mount = malloc(sizeof(*mount));
    FILE *file = mount && read_own_path(root, controller, own) ? open_below(root, "/proc/self/mountinfo") : NULL;
    bool found = false;
    while (file && !found && fgets(line, sizeof(line), file))
        found = parse_mount(line, controller, mount) && join(root, mount, own, out);
    if (file)
        fclose(file);
    free(mount);
    return found;
}

bool cgroup_up(struct cgroup_place *place)
{
    char *slash = strrchr(place->dir, '/');
    if (!slash || slash < place->dir + place->top_len)
        return false;
    *slash = '\0';
    return true;
}

bool cgroup_dir(const char *controller, char out[PATH_MAX])
{
    struct cgroup_place place;
    bool found = cgroup_find("", controller, &place);
    if (found)
        memcpy(out, place.dir, sizeof(place.dir));
    return found;
}
