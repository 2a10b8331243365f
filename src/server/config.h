/* The configuration in force: built-in values, then config/server.lua, then ABX_SERVER_* variables, then flags. */
#ifndef ABX_SERVER_CONFIG_H
#define ABX_SERVER_CONFIG_H

#include "base/arena.h"
#include "script/generation.h"

#include <stdbool.h>
#include <stddef.h>

/* Text and lists live in the arena. A list is NULL-terminated; NULL where not set. */
struct config {
    struct arena arena;
    const char *host;
    unsigned port, ws_port; /* ws_port: port + 1 unless set; 0 with port 0 */
    const char *base_dir;
    char *token; /* on the heap, wiped by config_deinit; NULL: none */
    const char *token_file;
    const char **enabled_groups, **disabled_groups;
    const char **packs;
    const char *config, *lua_dir, *commands; /* commands: NULL where the default file is not there */
    const char *workers_dir;                 /* NULL: not there, nor was one named */
    bool watch;
    const char *log_level, *log_format;
    bool allow_unauthenticated;
    const char **allowed_hosts, **allowed_origins;
    const char *ws_public_url; /* without a slash at its end */
    const char **browser_allow_hosts;
    const char **mcp_tools;
    const char **warnings; /* for the log, once it is set up: variables that no key has */
    struct config_limits {
        unsigned requests, processes, terminals, connections;
        unsigned cpu_ms, task_memory_mib;
        unsigned head_timeout_ms, body_timeout_ms, idle_timeout_s;
    } limits;
};

/* Reads all four sources. argv holds flags only ("--base-dir", "X" or "--base-dir=X"; booleans may stand alone);
 * install_dir is the directory of the executable, where the built-in places of lua, config and commands begin.
 * The token is wiped from argv and from the environment, and never logged. -1 where faults were added: all that there
 * are, those of the file with their lines. config_deinit in any case. */
int config_read(struct config *config, int argc, char **argv, const char *install_dir,
                struct faults *faults) ABX_MUST_USE;
void config_deinit(struct config *config);

/* Whether `host` names the loopback interface only. */
bool config_is_loopback(const char *host);

/* One line for each key, its flag and its built-in value: the text of --help. */
void config_print_help(void);

#endif
