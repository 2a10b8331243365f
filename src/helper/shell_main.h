/* `abxd-helper shell`: bash as an engine of POST /code/execute. One process is one context. */
#ifndef ABX_HELPER_SHELL_MAIN_H
#define ABX_HELPER_SHELL_MAIN_H

/* Serves the channel on descriptor 3 until it closes; ends everything below it then. Does not return otherwise than by
 * ending as bash has ended. */
int shell_main(void);

#endif
