/* The tables as the command line sees them: what generation_load wants, `abxd check` and `abxd routes`. */
#ifndef ABX_SERVER_TABLES_H
#define ABX_SERVER_TABLES_H

#include "script/generation.h"
#include "server/config.h"
#include "server/server.h"

/* What to load, from the configuration. Borrows from it; host is what bindings get. */
struct script_options tables_options(const struct config *config, struct loop *loop, void *host);

/* Loads everything and prints every fault on stderr as "file:line: message". */
enum exit_status tables_check(const struct config *config);
/* Prints the route table, one line a route, or as one JSON array. */
enum exit_status tables_print_routes(const struct config *config, bool json);

#endif
