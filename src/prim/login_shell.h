/* The shell that a terminal runs where its client names no program. */
#ifndef ABX_PRIM_LOGIN_SHELL_H
#define ABX_PRIM_LOGIN_SHELL_H

#include <limits.h>
#include <sys/types.h>

/* The first of these that is the absolute path of an executable: `preferred` (SHELL of the environment; NULL: none),
 * the shell of that user in passwd, /bin/bash; else /bin/sh. nologin and false are no shells. Asks the user database,
 * which may lie on a network: for a thread. */
void login_shell_find(const char *preferred, uid_t user, char out[PATH_MAX]);

#endif
