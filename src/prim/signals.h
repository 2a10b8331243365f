/* Signals by name. */
#ifndef ABX_PRIM_SIGNALS_H
#define ABX_PRIM_SIGNALS_H

#include "base/err.h"

#include <stddef.h>

enum { SIGNALS_NAME_MAX = 16 };

/* "SIGKILL", "SIGRTMIN+3"; "SIG99" for a number that bears no name. */
void signals_name(int signal, char out[SIGNALS_NAME_MAX]);

/* The number of a signal by its name, with or without SIG, in upper or lower case; 0 where none bears it (a number is
 * no name). */
int signals_find(const char *name);

/* The same for a client, who may send some signals only. 0 and *err, field "signal": ERR_INVALID_REQUEST where no
 * signal bears the name, ERR_SIGNAL_NOT_ALLOWED. */
int signals_for_client(const char *name, size_t len, struct err *err);

#endif
