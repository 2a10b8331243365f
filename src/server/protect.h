/* What operators write must not be within reach of clients: tables, configuration, commands, the token's file. */
#ifndef ABX_SERVER_PROTECT_H
#define ABX_SERVER_PROTECT_H

#include "base/err.h"
#include "prim/confine.h"
#include "server/config.h"

/* -1 with *err where one of these files, or what a link in lua_dir leads to, lies inside the base directory; with the
 * base
 * "/" it is guarded instead: every verb refuses it. Once, at start, before other threads use the base. */
int protect_operator_files(struct confine *confine, const struct config *config, struct err *err) ABX_MUST_USE;

#endif
