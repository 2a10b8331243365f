/* Makes and names failures; every layer uses it. */
#include "base/err.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    int status;
} codes[ERR_CODE_COUNT] = {[ERR_NONE] = {"", 200},
#define ERR_ROW(name, status, text) [ERR_##name] = {text, status},
                           ERR_CODES(ERR_ROW)
#undef ERR_ROW
};

/* Paths and what programs said may hold any byte, but the text ends in a JSON answer. */
static void format_text(struct err *err, const char *fmt, va_list args)
{
    int wanted = vsnprintf(err->text, sizeof err->text, fmt, args);
    utf8_mend(err->text, wanted >= (int)sizeof err->text);
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    va_list args;
    *err = (struct err){.code = code};
    va_start(args, fmt);
    format_text(err, fmt, args);
    va_end(args);
    return -1;
}

int err_set_errno(struct err *err, enum err_code code, int errno_value, const char *fmt, ...)
{
    va_list args;
    *err = (struct err){.code = code, .saved_errno = errno_value};
    va_start(args, fmt);
    format_text(err, fmt, args);
    va_end(args);

    char reason[96];
    const char *text = strerror_r(errno_value, reason, sizeof reason);
    /* The reason is what tells most: a long message gives way to it. */
    size_t len = strlen(err->text), room = sizeof err->text - sizeof ": " - strlen(text);
    if (len > room) {
        len = utf8_whole_len(err->text, room);
        err->text[len] = '\0';
    }
    snprintf(err->text + len, sizeof err->text - len, ": %s", text);
    return -1;
}

int err_field(struct err *err, const char *field)
{
    int wanted = snprintf(err->field, sizeof err->field, "%s", field);
    utf8_mend(err->field, wanted >= (int)sizeof err->field);
    return -1;
}

enum err_code err_from_errno(int errno_value)
{
    switch (errno_value) {
    case ENOENT:
        return ERR_FILE_NOT_FOUND;
    case EXDEV: /* what openat2 says of a path that leaves RESOLVE_BENEATH */
        return ERR_PATH_OUTSIDE_BASE;
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_PERMISSION_DENIED;
    case ENOTDIR:
        return ERR_NOT_A_DIRECTORY;
    case EISDIR:
        return ERR_IS_A_DIRECTORY;
    case EEXIST:
        return ERR_ALREADY_EXISTS;
    case ENOTEMPTY:
        return ERR_NOT_EMPTY;
    case ENAMETOOLONG:
    case ELOOP:
        return ERR_INVALID_PATH;
    case ENXIO: /* opening a socket, or a FIFO that nobody reads */
    case ENODEV:
        return ERR_NOT_A_REGULAR_FILE;
    case ENOSPC:
    case EDQUOT:
        return ERR_NO_SPACE;
    case EFBIG:
    case E2BIG:
        return ERR_PAYLOAD_TOO_LARGE;
    case EAGAIN:
    case EBUSY:
    case ETXTBSY:
        return ERR_BUSY;
    case EMFILE:
    case ENFILE:
        return ERR_UNAVAILABLE;
    default:
        return ERR_INTERNAL;
    }
}

const char *err_code_name(enum err_code code)
{
    return (unsigned)code < ERR_CODE_COUNT ? codes[code].name : codes[ERR_INTERNAL].name;
}

int err_code_status(enum err_code code)
{
    return (unsigned)code < ERR_CODE_COUNT ? codes[code].status : codes[ERR_INTERNAL].status;
}

enum err_code err_code_find(const char *name)
{
    for (int code = ERR_NONE + 1; code < ERR_CODE_COUNT; code++)
        if (strcmp(codes[code].name, name) == 0)
            return (enum err_code)code;
    return ERR_NONE;
}
