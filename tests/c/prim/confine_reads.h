/* What a path gives, for the tests of confine: its content or the code of the refusal. */
#ifndef ABX_TESTS_PRIM_CONFINE_READS_H
#define ABX_TESTS_PRIM_CONFINE_READS_H

#include "tree.h"

/* The code that confine_open_file gives, ERR_NONE where it opens. */
static inline enum err_code code_of_n(struct tree *tree, const char *path, size_t len)
{
    struct err err = {0};
    int fd = confine_open_file(tree->confine, path, len, O_RDONLY, &err);
    if (fd < 0)
        return err.code;
    assert_int_not_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    close(fd);
    return ERR_NONE;
}

static inline enum err_code code_of(struct tree *tree, const char *path)
{
    return code_of_n(tree, path, strlen(path));
}

#define assert_reads(tree, path, content)                                                                              \
    do {                                                                                                               \
        struct err err_ = {0};                                                                                         \
        int fd_ = confine_open_file((tree)->confine, path, strlen(path), O_RDONLY, &err_);                             \
        assert_string_equal(err_.text, "");                                                                            \
        assert_true(fd_ >= 0);                                                                                         \
        assert_string_equal(text_of(fd_), content);                                                                    \
        close(fd_);                                                                                                    \
    } while (0)

#endif
