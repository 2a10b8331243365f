/* Builds all parts of abxd in order, owns them, runs them, and takes them down in reverse. Called by main. */
#ifndef ABX_SERVER_SERVER_H
#define ABX_SERVER_SERVER_H

#include "base/err.h"
#include "server/config.h"

enum exit_status { EXIT_OK = 0, EXIT_FAULT = 1, EXIT_USAGE = 2 };

/* Serves until SIGTERM or SIGINT has drained it. Prints one line "listening http=HOST:PORT ws=HOST:PORT" on stdout when
 * it is ready (without ws= where the group terminal is off). Answers what main exits with: EXIT_USAGE for a faulty
 * configuration, table or base directory, EXIT_FAULT for the rest (one line on stderr either way). install_dir as
 * config_read. */
enum exit_status server_run(const struct config *config, const char *install_dir);

#endif
