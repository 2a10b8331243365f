/* Copies of argument vectors, for whoever keeps a program's words longer than its caller does. */
#ifndef ABX_PRIM_ARGV_H
#define ABX_PRIM_ARGV_H

/* The NULL-terminated vector and its words, to be given to argv_free. NULL out of memory. */
char **argv_copy(char *const *argv);
/* NULL is allowed. */
void argv_free(char *const *argv);

#endif
