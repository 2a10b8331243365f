/* Reads config/server.lua: a Lua chunk that returns one table of plain values. Called once at start by server/config.
 */
#ifndef ABX_SCRIPT_CONFIG_FILE_H
#define ABX_SCRIPT_CONFIG_FILE_H

#include "base/arena.h"
#include "model/value.h"
#include "script/generation.h"

/* A file that was read; its text only for config_file_line. Borrows the path. */
struct config_file {
    const char *path;
    char *text;
    size_t len;
    struct value table;
};

/* Runs the file in a bare state (no libraries, text only, bounded in steps, memory and size) and copies the table it
 * returns into the arena as an object; sequences become arrays. Members that are no plain value are left out and added
 * as faults. -1 where there is no table; the fault is added then too. config_file_deinit in any case. Blocks on the
 * disk. */
int config_file_read(const char *path, struct arena *arena, struct config_file *out,
                     struct faults *faults) ABX_MUST_USE;
void config_file_deinit(struct config_file *file);

/* The line where a key is set, "port" or "limits.cpu_ms"; 0 where a search of the text does not find it. */
int config_file_line(const struct config_file *file, const char *key);

#endif
