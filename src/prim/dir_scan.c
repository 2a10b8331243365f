/* Reads a directory whole, by getdents64: readdir would copy each entry once more, and lock. See dir_scan.h. */
#include "prim/dir_scan.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { READ_BYTES = 64 * 1024 };

struct reading {
    char *text;
    size_t text_len, text_cap;
    size_t *starts; /* of each entry in text: its type, then its name */
    size_t count, cap;
};

static int keep(struct reading *reading, const char *name, unsigned char type)
{
    size_t size = strlen(name) + 2;
    if (reading->text_cap - reading->text_len < size) {
        size_t cap = reading->text_cap * 2 + READ_BYTES;
        char *grown = realloc(reading->text, cap);
        if (!grown)
            return -1;
        reading->text = grown;
        reading->text_cap = cap;
    }
    if (reading->count == reading->cap) {
        size_t cap = reading->cap * 2 + 64;
        size_t *grown = realloc(reading->starts, cap * sizeof *grown);
        if (!grown)
            return -1;
        reading->starts = grown;
        reading->cap = cap;
    }
    reading->starts[reading->count++] = reading->text_len;
    reading->text[reading->text_len] = (char)type;
    memcpy(reading->text + reading->text_len + 1, name, size - 1);
    reading->text_len += size;
    return 0;
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int read_all(int dir_fd, struct reading *reading)
{
    char *block = malloc(READ_BYTES);
    long got = block ? 0 : -1;
    if (block && lseek(dir_fd, 0, SEEK_SET) < 0)
        got = -1;
    while (got >= 0 && (got = syscall(SYS_getdents64, dir_fd, block, READ_BYTES)) > 0) {
        for (long at = 0; at < got && got > 0;) {
            const struct dirent64 *entry = (const struct dirent64 *)(block + at);
            if (!is_dots(entry->d_name) && keep(reading, entry->d_name, entry->d_type) != 0)
                got = -1;
            else
                at += entry->d_reclen;
        }
    }
    int saved_errno = errno;
    free(block);
    errno = saved_errno;
    return got < 0 ? -1 : 0;
}

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct dir_name *)a)->name, ((const struct dir_name *)b)->name);
}

int dir_scan(int dir_fd, struct dir_scan *out)
{
    struct reading reading = {0};
    int result = read_all(dir_fd, &reading), saved_errno = errno;
    *out = (struct dir_scan){.text = reading.text};
    out->names = reading.count > 0 ? malloc(reading.count * sizeof *out->names) : NULL;
    if (reading.count > 0 && !out->names) {
        result = -1;
        saved_errno = ENOMEM;
    }
    for (size_t i = 0; out->names && i < reading.count; i++) {
        const char *entry = reading.text + reading.starts[i];
        out->names[out->count++] = (struct dir_name){.name = entry + 1, .type = (unsigned char)entry[0]};
    }
    free(reading.starts);
    if (out->count > 1)
        qsort(out->names, out->count, sizeof *out->names, compare);
    errno = saved_errno;
    return result;
}

void dir_scan_free(struct dir_scan *scan)
{
    free(scan->names);
    free(scan->text);
    *scan = (struct dir_scan){0};
}
