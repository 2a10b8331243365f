/* Signals by name. */
#ifndef ABX_PRIM_SIGNALS_H
#define ABX_PRIM_SIGNALS_H

enum { SIGNALS_NAME_MAX = 16 };

/* "SIGKILL", "SIGRTMIN+3"; "SIG99" for a number that bears no name. */
void signals_name(int signal, char out[SIGNALS_NAME_MAX]);

/* The number of a signal by its name, with or without SIG, in upper or lower case; 0 where none bears it (a number is
 * no name). */
int signals_find(const char *name);

#endif
