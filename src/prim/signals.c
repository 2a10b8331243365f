/* Signals by name, as the exit fields of a process show them; called by bind_proc and bind_stream. */
#include "prim/signals.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

void signals_name(int signal, char out[SIGNALS_NAME_MAX])
{
    const char *abbreviation = sigabbrev_np(signal);
    if (abbreviation != NULL)
        snprintf(out, SIGNALS_NAME_MAX, "SIG%s", abbreviation);
    else if (signal >= SIGRTMIN && signal <= SIGRTMAX)
        snprintf(out, SIGNALS_NAME_MAX, "SIGRTMIN+%d", signal - SIGRTMIN);
    else
        snprintf(out, SIGNALS_NAME_MAX, "SIG%d", signal);
}
