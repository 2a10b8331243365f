/* Copies and moves by path, as the bindings do them, for the tests of both. */
#ifndef ABX_TESTS_PRIM_TRANSFER_FIXTURE_H
#define ABX_TESTS_PRIM_TRANSFER_FIXTURE_H

#include "tree.h"

#include "prim/transfer.h"
#include "prim/tree_copy.h"
#include "prim/tree_move.h"

#include <sched.h>
#include <sys/mount.h>

static atomic_bool transfer_cancelled;
static struct err transfer_err;
static struct tree_copy transfer_copied;

static inline int transfer_open(struct tree *tree, struct transfer *transfer, const char *from, const char *to)
{
    struct transfer_options options = {.source = from,
                                       .source_len = strlen(from),
                                       .destination = to,
                                       .destination_len = strlen(to),
                                       .create_parents = true};
    transfer_err = (struct err){0};
    return transfer_begin(transfer, tree->confine, &options, &transfer_err);
}

/* The code of a copy, ERR_NONE where it was done; transfer_err and transfer_copied tell more. */
static inline enum err_code copy_path(struct tree *tree, const char *from, const char *to, bool overwrite)
{
    struct transfer transfer;
    if (transfer_open(tree, &transfer, from, to) != 0)
        return transfer_err.code;
    transfer_copied = (struct tree_copy){.confine = tree->confine,
                                         .cancelled = &transfer_cancelled,
                                         .overwrite = overwrite,
                                         .parents_lock = transfer.parents_lock};
    int result = tree_copy(&transfer_copied, transfer.source.dir_fd, transfer.source.name, transfer.to_dir,
                           transfer.destination.name, &transfer_err);
    transfer.parents_lock = transfer_copied.parents_lock;
    transfer_end(&transfer, result == 0);
    return result == 0 ? ERR_NONE : transfer_err.code;
}

static inline enum err_code move_path(struct tree *tree, const char *from, const char *to, bool overwrite)
{
    struct transfer transfer;
    if (transfer_open(tree, &transfer, from, to) != 0)
        return transfer_err.code;
    struct tree_move move = {.confine = tree->confine,
                             .cancelled = &transfer_cancelled,
                             .overwrite = overwrite,
                             .parents_lock = transfer.parents_lock};
    int result = tree_move(&move, transfer.source.dir_fd, transfer.source.name, transfer.to_dir,
                           transfer.destination.name, &transfer_err);
    transfer.parents_lock = move.parents_lock;
    transfer_end(&transfer, result == 0);
    return result == 0 ? ERR_NONE : transfer_err.code;
}

/* Set by main, before any base is opened: a descriptor sees the mounts of the namespace that it comes from. */
static bool transfer_may_mount;

static inline void transfer_unshare(void)
{
    transfer_may_mount = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static inline bool may_mount(const char *test)
{
    if (!transfer_may_mount)
        print_message("NOT RUN: %s: no mount may be made here\n", test);
    return transfer_may_mount;
}

/* Runs the statement as a user whom permissions bind. */
#define AS_NOBODY(statement)                                                                                           \
    do {                                                                                                               \
        bool is_root_ = geteuid() == 0;                                                                                \
        if (is_root_)                                                                                                  \
            assert_int_equal(seteuid(65534), 0);                                                                       \
        statement;                                                                                                     \
        if (is_root_)                                                                                                  \
            assert_int_equal(seteuid(0), 0);                                                                           \
    } while (0)

#endif
