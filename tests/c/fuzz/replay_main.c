/* Runs each file of a corpus through a fuzz target once; linked to every target where libFuzzer is not. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    /* Exactly as large as the input, so that a read past its end is seen. */
    uint8_t *data = malloc(size > 0 ? size : 1);
    int failed = file == NULL || data == NULL || fread(data, 1, size, file) != size;
    if (failed)
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
    else
        LLVMFuzzerTestOneInput(data, size);
    free(data);
    if (file != NULL)
        fclose(file);
    return failed ? -1 : 1;
}

/* How many inputs stand at path (a file, or a folder of files) and were run; -1 when one could not be read. */
static int replay(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    if (S_ISREG(st.st_mode))
        return replay_file(path, (size_t)st.st_size);

    DIR *dir = opendir(path);
    if (dir == NULL)
        return -1;
    int count = 0;
    for (struct dirent *entry; count >= 0 && (entry = readdir(dir)) != NULL;) {
        char child[PATH_MAX];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(child, sizeof(child), "%s/%s", path, entry->d_name);
        int inside = replay(child);
        count = inside < 0 ? -1 : count + inside;
    }
    closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        int count = replay(argv[i]);
        if (count < 0)
            return 1;
        total += count;
    }
    printf("%d inputs replayed\n", total);
    return total > 0 ? 0 : 1;
}
