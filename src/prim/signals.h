/* Signals by name. */
#ifndef ABX_PRIM_SIGNALS_H
#define ABX_PRIM_SIGNALS_H

enum { SIGNALS_NAME_MAX = 16 };

/* "SIGKILL", "SIGRTMIN+3"; "SIG99" for a number that bears no name. */
void signals_name(int signal, char out[SIGNALS_NAME_MAX]);

#endif
