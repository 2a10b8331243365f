/* The traces that makers of containers leave; called by sysinfo. */
#include "prim/container_kind.h"

#include "prim/kernel_text.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_MAX = 256 * 1024 };

static bool exists(const char *root, const char *path)
{
    char full[PATH_MAX];
    int len = snprintf(full, sizeof(full), "%s%s", root, path);
    return len > 0 && len < (int)sizeof(full) && access(full, F_OK) == 0;
}

static bool tell(char out[CONTAINER_KIND_MAX], const char *kind)
{
    snprintf(out, CONTAINER_KIND_MAX, "%s", kind);
    return true;
}

/* A name that somebody wrote: anything but a plain word is none. */
static bool tell_word(char out[CONTAINER_KIND_MAX], const char *word, size_t len)
{
    while (len > 0 && (word[len - 1] == '\n' || word[len - 1] == ' '))
        len--;
    if (len == 0 || len >= CONTAINER_KIND_MAX || word[0] < 'a' || word[0] > 'z' ||
        strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-_") < len)
        return false;
    memcpy(out, word, len);
    out[len] = '\0';
    return true;
}

static bool from_marks(const char *root, char out[CONTAINER_KIND_MAX])
{
    static const char *const marks[][2] = {
        {"/run/secrets/kubernetes.io", "kubernetes"},
        {"/var/run/secrets/kubernetes.io", "kubernetes"},
        {"/run/.containerenv", "podman"},
        {"/.dockerenv", "docker"},
        {"/.dockerinit", "docker"},
    };
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
        if (exists(root, marks[i][0]))
            return tell(out, marks[i][1]);
    return false;
}

static bool from_environ(const char *root, struct buf *text, char out[CONTAINER_KIND_MAX])
{
    static const char name[] = "container=";
    if (!kernel_text_read(root, "/proc/1/environ", text))
        return false;
    for (const char *var = text->data, *end = text->data + text->len; var < end; var += strlen(var) + 1)
        if (strncmp(var, name, sizeof(name) - 1) == 0)
            return tell_word(out, var + sizeof(name) - 1, strlen(var + sizeof(name) - 1));
    return false;
}

static bool from_file(const char *root, const char *path, struct buf *text, char out[CONTAINER_KIND_MAX])
{
    return kernel_text_read(root, path, text) && tell_word(out, text->data, text->len);
}

static bool from_groups(const char *root, const char *path, struct buf *text, char out[CONTAINER_KIND_MAX])
{
    static const char *const parts[][2] = {
        {"kubepods", "kubernetes"}, {"/docker/", "docker"}, {"/docker-", "docker"},
        {"/libpod-", "podman"},     {"/lxc/", "lxc"},       {"/lxc.payload", "lxc"},
    };
    if (!kernel_text_read(root, path, text))
        return false;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(text->data, parts[i][0]))
            return tell(out, parts[i][1]);
    return false;
}

/* Its kernel bears the maker's name: "5.15.90.1-microsoft-standard-WSL2". */
static bool is_wsl(const char *root, struct buf *text)
{
    return kernel_text_read(root, "/proc/sys/kernel/osrelease", text) &&
           (strcasestr(text->data, "microsoft") || strstr(text->data, "WSL"));
}

bool container_kind(const char *root, char out[CONTAINER_KIND_MAX])
{
    struct buf text;
    buf_init(&text, TEXT_MAX);
    bool found = from_marks(root, out) || from_environ(root, &text, out) ||
                 from_file(root, "/run/systemd/container", &text, out) ||
                 from_file(root, "/run/host/container-manager", &text, out) ||
                 from_groups(root, "/proc/self/cgroup", &text, out) ||
                 from_groups(root, "/proc/1/cgroup", &text, out) || (is_wsl(root, &text) && tell(out, "wsl"));
    buf_deinit(&text);
    return found;
}
