/* Short texts below a root: what procfs, sysfs and cgroupfs tell, and files of /etc; and the numbers in them. The root
 * is "" for the machine itself; tests give a directory that holds a tree like it. None of these wait for devices, but
 * files of /etc may lie on any disk: call them from a thread. */
#ifndef ABX_PRIM_KERNEL_TEXT_H
#define ABX_PRIM_KERNEL_TEXT_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* The beginning of root/path, as much as fits into out->max less one byte; replaces what out held and ends it with a
 * NUL that out->len does not count. False where there is no such regular file or it cannot be read; out is empty then
 * ("" is what out->data holds, unless memory is out). */
bool kernel_text_read(const char *root, const char *path, struct buf *out);
/* A file that holds one number: false where it holds anything else ("max", a negative one). */
bool kernel_text_read_number(const char *root, const char *path, struct buf *scratch, uint64_t *out);
/* The number behind a key at the beginning of a line: "key 12" or "Key:   12 kB". */
bool kernel_text_value(const char *text, const char *key, uint64_t *out);
/* Parses digits at *at and moves behind them; what is over 64 bits is UINT64_MAX. False (and *at stays) without one. */
bool kernel_text_digits(const char **at, uint64_t *out);
/* a + b, and UINT64_MAX where that is more. */
uint64_t kernel_text_sum(uint64_t a, uint64_t b);

#endif
