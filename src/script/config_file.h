/* Reads config/server.lua: a Lua chunk that returns one table of plain values. Called once at start by server/config.
 */
#ifndef ABX_SCRIPT_CONFIG_FILE_H
#define ABX_SCRIPT_CONFIG_FILE_H

#include "base/arena.h"
#include "base/err.h"
#include "model/value.h"

/* Runs the file in a bare state (no libraries, text only, bounded in steps, memory and size) and copies the table it
 * returns into the arena as an object; sequences become arrays. -1 with *err, whose text begins with "file:line:" where
 * Lua knows it. Blocks on the disk. */
int config_file_read(const char *path, struct arena *arena, struct value *out, struct err *err) ABX_MUST_USE;

#endif
