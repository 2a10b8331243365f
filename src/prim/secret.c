/* The bearer token's handling: read, compared, wiped. For server at start and request/auth on each request. */
#include "prim/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { TOKEN_FILE_MAX_BYTES = 4096 };

bool secret_equal(const char *a, size_t a_len, const char *b, size_t b_len)
{
    /* Every byte of `a` is looked at, whatever was seen before; the index into `b` depends on the lengths only.
     * volatile keeps the compiler from leaving early. */
    volatile unsigned char different = a_len != b_len;
    for (size_t i = 0; i < a_len; i++) {
        unsigned char other = b_len > 0 ? (unsigned char)b[i < b_len ? i : 0] : 0;
        different = different | ((unsigned char)a[i] ^ other);
    }
    return different == 0;
}

void secret_wipe(void *memory, size_t len)
{
    explicit_bzero(memory, len);
}

/* Reads to the end of the file: its length, or -1 with errno; size bytes at most. */
static ssize_t read_all(int fd, char *out, size_t size)
{
    size_t len = 0;
    while (len < size) {
        ssize_t got = read(fd, out + len, size - len);
        if (got == 0)
            break;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        len += (size_t)got;
    }
    return (ssize_t)len;
}

static int check_token(const char *token, size_t len, const char *path, struct err *err)
{
    if (len == 0)
        return err_set(err, ERR_INVALID_REQUEST, "the token file is empty: %s", path);
    for (size_t i = 0; i < len; i++) {
        if (token[i] < 0x21 || token[i] > 0x7e)
            return err_set(err, ERR_INVALID_REQUEST,
                           "the token file holds a byte that no header can carry (at %zu; use visible ASCII): %s", i,
                           path);
    }
    return 0;
}

int secret_read_file(const char *path, char **out, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return err_set_errno(err, err_from_errno(errno), errno, "cannot open the token file %s", path);
    char bytes[TOKEN_FILE_MAX_BYTES + 1];
    ssize_t got = read_all(fd, bytes, sizeof(bytes));
    int reason = errno;
    close(fd);
    if (got < 0)
        return err_set_errno(err, err_from_errno(reason), reason, "cannot read the token file %s", path);

    int result = -1;
    size_t len = (size_t)got;
    if (len > TOKEN_FILE_MAX_BYTES) {
        err_set(err, ERR_INVALID_REQUEST, "the token file is longer than %d bytes: %s", TOKEN_FILE_MAX_BYTES, path);
    } else {
        while (len > 0 && strchr(" \t\r\n\v\f", bytes[len - 1]) && bytes[len - 1] != '\0')
            len--;
        result = check_token(bytes, len, path, err);
    }
    if (result == 0) {
        char *token = strndup(bytes, len);
        if (token)
            *out = token;
        else
            result = err_set_errno(err, ERR_INTERNAL, ENOMEM, "cannot keep the token");
    }
    secret_wipe(bytes, sizeof(bytes));
    return result;
}

extern char **environ;

void secret_wipe_env(const char *name)
{
    size_t len = strlen(name);
    for (char **entry = environ; entry && *entry; entry++) {
        if (strncmp(*entry, name, len) == 0 && (*entry)[len] == '=')
            secret_wipe(*entry + len + 1, strlen(*entry + len + 1));
    }
    unsetenv(name);
}

void secret_wipe_arg(char *arg)
{
    secret_wipe(arg, strlen(arg));
}

void secret_random_hex(char *out, size_t count)
{
    static const char digits[] = "0123456789abcdef";
    while (count > 0) {
        unsigned char bytes[64];
        ssize_t got = getrandom(bytes, count < sizeof(bytes) ? count : sizeof(bytes), 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            abort(); /* a kernel without getrandom: nothing that is built on it could be trusted */
        for (ssize_t i = 0; i < got; i++) {
            *out++ = digits[bytes[i] >> 4];
            *out++ = digits[bytes[i] & 15];
        }
        count -= (size_t)got;
    }
    *out = '\0';
}
