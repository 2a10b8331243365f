/* Signals by name, as the exit fields of a process show them and as clients ask for them; called by bind_proc and
 * bind_stream. */
#include "prim/signals.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* "RTMIN", "RTMIN+3", "RTMAX-2". */
static int find_realtime(const char *name)
{
    bool from_min = strncasecmp(name, "RTMIN", 5) == 0;
    if (!from_min && strncasecmp(name, "RTMAX", 5) != 0)
        return 0;
    const char *rest = name + 5;
    if (*rest == '\0')
        return from_min ? SIGRTMIN : SIGRTMAX;
    size_t digits = strspn(rest + 1, "0123456789");
    if (*rest != (from_min ? '+' : '-') || digits < 1 || digits > 2 || rest[1 + digits] != '\0')
        return 0;
    int offset = atoi(rest + 1);
    int signal = from_min ? SIGRTMIN + offset : SIGRTMAX - offset;
    return signal >= SIGRTMIN && signal <= SIGRTMAX ? signal : 0;
}

int signals_find(const char *name)
{
    static const struct {
        const char *name;
        int signal;
    } others[] = {{"IOT", SIGIOT}, {"CLD", SIGCHLD}, {"IO", SIGIO}, {"POLL", SIGPOLL}};
    if (strncasecmp(name, "SIG", 3) == 0)
        name += 3;
    for (int signal = 1; signal < SIGRTMIN; signal++) {
        const char *abbreviation = sigabbrev_np(signal);
        if (abbreviation != NULL && strcasecmp(name, abbreviation) == 0)
            return signal;
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcasecmp(name, others[i].name) == 0)
            return others[i].signal;
    return find_realtime(name);
}

int signals_for_client(const char *name, size_t len, struct err *err)
{
    static const int allowed[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGKILL,
                                  SIGUSR1, SIGUSR2, SIGSTOP, SIGCONT, SIGWINCH};
    int signal = strlen(name) == len ? signals_find(name) : 0;
    for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
        if (signal == allowed[i])
            return signal;
    if (signal == 0)
        err_set(err, ERR_INVALID_REQUEST, "no signal bears this name; an example of one is SIGTERM");
    else
        err_set(err, ERR_SIGNAL_NOT_ALLOWED,
                "only HUP, INT, QUIT, TERM, KILL, USR1, USR2, STOP, CONT and WINCH are sent");
    err_field(err, "signal");
    return 0;
}
