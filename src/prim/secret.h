/* The bearer token: where it comes from, how it is compared and forgotten. */
#ifndef ABX_PRIM_SECRET_H
#define ABX_PRIM_SECRET_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/* Equal in content; the time depends on the lengths only. */
bool secret_equal(const char *a, size_t a_len, const char *b, size_t b_len);
/* Overwrites memory in a way that the compiler may not drop. */
void secret_wipe(void *memory, size_t len);
/* Reads a token file (at most 4 KiB; trailing white space dropped; empty, or with bytes outside 0x21..0x7e, is
 * refused). The caller wipes and frees *out. */
int secret_read_file(const char *path, char **out, struct err *err) ABX_MUST_USE;
/* Overwrites the value of this variable in the process's initial environment block, so that /proc/self/environ does not
 * show it, and unsets it. */
void secret_wipe_env(const char *name);
/* Overwrites an argument in place (argv as main got it). */
void secret_wipe_arg(char *arg);
/* `count` random bytes as lower-case hex from getrandom; out holds 2*count+1. */
void secret_random_hex(char *out, size_t count);

#endif
