/* Finds descendants in /proc and signals them; for the shell session. */
#include "helper/shell_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct entry {
    pid_t pid, parent;
    uint64_t start_ticks;
    bool ours;
};

struct table {
    struct entry *items;
    size_t count, cap;
};

uint64_t shell_tree_now_ticks(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
    return (uint64_t)now.tv_sec * ticks + (uint64_t)now.tv_nsec * ticks / 1000000000u;
}

/* Bytes read, ended by NUL; 0 where the process is gone, and text may be as it was. */
static size_t read_small(const char *pid, const char *file, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/%.16s/%s", pid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t len = read(fd, text, size - 1);
    close(fd);
    text[len > 0 ? len : 0] = '\0';
    return len > 0 ? (size_t)len : 0;
}

static bool parse_stat(const char *pid, struct entry *entry)
{
    char text[1024];
    if (read_small(pid, "stat", text, sizeof(text)) == 0)
        return false;
    const char *after = strrchr(text, ')'); /* the name may hold anything */
    int parent;
    unsigned long long start;
    if (!after || sscanf(after + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                         &parent, &start) != 2)
        return false;
    *entry = (struct entry){.pid = atoi(pid), .parent = parent, .start_ticks = start};
    return true;
}

static void table_read(struct table *table)
{
    DIR *dir = opendir("/proc");
    if (!dir)
        return;
    for (const struct dirent *item; (item = readdir(dir)) != NULL;) {
        struct entry entry;
        if (!isdigit((unsigned char)item->d_name[0]) || !parse_stat(item->d_name, &entry))
            continue;
        if (table->count == table->cap) {
            size_t cap = table->cap ? table->cap * 2 : 256;
            struct entry *more = realloc(table->items, cap * sizeof(*more));
            if (!more)
                break;
            table->items = more;
            table->cap = cap;
        }
        table->items[table->count++] = entry;
    }
    closedir(dir);
}

/* A process may have a smaller number than its parent: rounds, until nothing new is found. */
static void mark_ours(struct table *table)
{
    pid_t self = getpid();
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < table->count; i++) {
            struct entry *entry = &table->items[i];
            bool ours = entry->parent == self;
            for (size_t j = 0; !entry->ours && !ours && j < table->count; j++)
                ours = table->items[j].ours && table->items[j].pid == entry->parent;
            if (ours && !entry->ours)
                entry->ours = more = true;
        }
    }
}

static bool in_background(pid_t pid)
{
    char name[16], text[4096];
    snprintf(name, sizeof(name), "%d", (int)pid);
    if (read_small(name, "status", text, sizeof(text)) == 0)
        return false;
    const char *line = strstr(text, "\nSigIgn:");
    unsigned long long both = 1ull << (SIGINT - 1) | 1ull << (SIGQUIT - 1);
    return line && (strtoull(line + strlen("\nSigIgn:"), NULL, 16) & both) == both;
}

unsigned shell_tree_signal(int signal_number, const struct shell_tree_filter *filter)
{
    struct table table = {0};
    table_read(&table);
    mark_ours(&table);
    unsigned count = 0;
    for (size_t i = 0; i < table.count; i++) {
        const struct entry *entry = &table.items[i];
        if (!entry->ours || entry->pid == filter->but || entry->start_ticks < filter->began_ticks ||
            (filter->foreground && in_background(entry->pid)))
            continue;
        if (kill(entry->pid, signal_number) == 0)
            count++;
    }
    free(table.items);
    return count;
}
