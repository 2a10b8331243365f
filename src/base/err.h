/* The one enum of failure codes for the whole program, and the value that carries a failure upward. */
#ifndef ABX_BASE_ERR_H
#define ABX_BASE_ERR_H

#define ABX_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define ABX_MUST_USE __attribute__((warn_unused_result))

/* name, HTTP status, the stable `code` that clients see (contract, section 1) */
#define ERR_CODES(X)                                                                                                   \
    X(INVALID_JSON, 400, "invalid_json")                                                                               \
    X(INVALID_REQUEST, 400, "invalid_request")                                                                         \
    X(INVALID_PATH, 400, "invalid_path")                                                                               \
    X(NOT_A_DIRECTORY, 400, "not_a_directory")                                                                         \
    X(IS_A_DIRECTORY, 400, "is_a_directory")                                                                           \
    X(NOT_A_REGULAR_FILE, 400, "not_a_regular_file")                                                                   \
    X(INVALID_REGEX, 400, "invalid_regex")                                                                             \
    X(BAD_CWD, 400, "bad_cwd")                                                                                         \
    X(NOT_EXECUTABLE, 400, "not_executable")                                                                           \
    X(URL_NOT_ALLOWED, 400, "url_not_allowed")                                                                         \
    X(UNAUTHORIZED, 401, "unauthorized")                                                                               \
    X(PATH_OUTSIDE_BASE, 403, "path_outside_base")                                                                     \
    X(BASE_DIR_PROTECTED, 403, "base_dir_protected")                                                                   \
    X(PERMISSION_DENIED, 403, "permission_denied")                                                                     \
    X(PROTECTED_VARIABLE, 403, "protected_variable")                                                                   \
    X(SIGNAL_NOT_ALLOWED, 403, "signal_not_allowed")                                                                   \
    X(CAPABILITY_DISABLED, 403, "capability_disabled")                                                                 \
    X(HOST_NOT_ALLOWED, 403, "host_not_allowed")                                                                       \
    X(ORIGIN_NOT_ALLOWED, 403, "origin_not_allowed")                                                                   \
    X(NOT_FOUND, 404, "not_found")                                                                                     \
    X(FILE_NOT_FOUND, 404, "file_not_found")                                                                           \
    X(COMMAND_NOT_FOUND, 404, "command_not_found")                                                                     \
    X(PROCESS_NOT_FOUND, 404, "process_not_found")                                                                     \
    X(TERMINAL_NOT_FOUND, 404, "terminal_not_found")                                                                   \
    X(EXECUTABLE_NOT_FOUND, 404, "executable_not_found")                                                               \
    X(REPOSITORY_NOT_FOUND, 404, "repository_not_found")                                                               \
    X(REFERENCE_NOT_FOUND, 404, "reference_not_found")                                                                 \
    X(OPERATION_NOT_FOUND, 404, "operation_not_found")                                                                 \
    X(METHOD_NOT_ALLOWED, 405, "method_not_allowed")                                                                   \
    X(REQUEST_TIMEOUT, 408, "request_timeout")                                                                         \
    X(ALREADY_EXISTS, 409, "already_exists")                                                                           \
    X(NOT_EMPTY, 409, "not_empty")                                                                                     \
    X(ALREADY_EXITED, 409, "already_exited")                                                                           \
    X(STALE_WRITE, 409, "stale_write")                                                                                 \
    X(BUSY, 409, "busy")                                                                                               \
    X(MERGE_CONFLICT, 409, "merge_conflict")                                                                           \
    X(NON_FAST_FORWARD, 409, "non_fast_forward")                                                                       \
    X(WORKTREE_DIRTY, 409, "worktree_dirty")                                                                           \
    X(AMBIGUOUS_EDIT, 409, "ambiguous_edit")                                                                           \
    X(PAYLOAD_TOO_LARGE, 413, "payload_too_large")                                                                     \
    X(URI_TOO_LONG, 414, "uri_too_long")                                                                               \
    X(UNSUPPORTED_MEDIA_TYPE, 415, "unsupported_media_type")                                                           \
    X(RANGE_NOT_SATISFIABLE, 416, "range_not_satisfiable")                                                             \
    X(EXPECTATION_FAILED, 417, "expectation_failed")                                                                   \
    X(BINARY_FILE, 422, "binary_file")                                                                                 \
    X(CHECKSUM_MISMATCH, 422, "checksum_mismatch")                                                                     \
    X(ELEMENT_NOT_FOUND, 422, "element_not_found")                                                                     \
    X(JAVASCRIPT_ERROR, 422, "javascript_error")                                                                       \
    X(NAVIGATION_FAILED, 422, "navigation_failed")                                                                     \
    X(TOO_MANY_PROCESSES, 429, "too_many_processes")                                                                   \
    X(TOO_MANY_TERMINALS, 429, "too_many_terminals")                                                                   \
    X(TOO_MANY_REQUESTS, 429, "too_many_requests")                                                                     \
    X(HEADERS_TOO_LARGE, 431, "headers_too_large")                                                                     \
    X(INTERNAL, 500, "internal_error")                                                                                 \
    X(GIT_NETWORK, 502, "git_network")                                                                                 \
    X(BROWSER_CRASHED, 502, "browser_crashed")                                                                         \
    X(UNAVAILABLE, 503, "unavailable")                                                                                 \
    X(SHUTTING_DOWN, 503, "shutting_down")                                                                             \
    X(HANDLER_TIMEOUT, 504, "handler_timeout")                                                                         \
    X(UPSTREAM_TIMEOUT, 504, "upstream_timeout")                                                                       \
    X(NO_SPACE, 507, "no_space")

enum err_code {
    ERR_NONE = 0,
#define ERR_ENUM(name, status, text) ERR_##name,
    ERR_CODES(ERR_ENUM)
#undef ERR_ENUM
        ERR_CODE_COUNT
};

/* A failure, passed and copied by value. `field` names the faulty parameter where one is to blame ("" else). Only valid
 * after the function that was given it returned -1. */
struct err {
    enum err_code code;
    int saved_errno; /* 0 where no system call failed */
    char field[64];
    char text[256]; /* one short sentence for the client; no secrets, always valid UTF-8 */
};

/* Fills *err (bytes of the message that are not UTF-8 become '?') and returns -1, so that callers write
 * `return err_set(err, ERR_BUSY, "...")`. err_set_errno adds ": " and the text of errno_value, and keeps it. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...) ABX_PRINTF(3, 4);
int err_set_errno(struct err *err, enum err_code code, int errno_value, const char *fmt, ...) ABX_PRINTF(4, 5);

/* Sets err->field (cut to fit) and returns -1. */
int err_field(struct err *err, const char *field);

/* The code for a failed system call on a path: ENOENT file_not_found, EXDEV path_outside_base, ENOSPC no_space, ...
 * else internal_error. */
enum err_code err_from_errno(int errno_value);

const char *err_code_name(enum err_code code); /* "file_not_found" */
int err_code_status(enum err_code code);       /* 404 */
/* ERR_NONE where no code bears that name. */
enum err_code err_code_find(const char *name);

#endif
