/* The list of all bindings, by the name that `require` takes. Handed to each generation by server. */
#include "bind/bind.h"
#include "bind/host.h"

const struct script_binding bind_all[] = {
    {"abx.json", bind_json_open},       {"abx.time", bind_time_open},
    {"abx.text", bind_text_open},       {"abx.server", bind_server_open},
    {"abx.proc", bind_proc_open},       {"abx.pty", bind_pty_open},
    {"abx.session", bind_session_open}, {"abx.fs", bind_fs_open},
    {"abx.system", bind_system_open},   {"abx.env", bind_env_open},
    {"abx.git", bind_git_open},         {"abx.cell", bind_code_open},
    {"abx.browser", bind_browser_open}, {NULL, NULL},
};
