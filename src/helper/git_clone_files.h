/* The files of a repository that was just made and is nobody else's yet; for git_clone.c. */
#ifndef ABX_HELPER_GIT_CLONE_FILES_H
#define ABX_HELPER_GIT_CLONE_FILES_H

#include "helper/git.h"

/* Writes the commit's files into the working tree of call->repo, where there is nothing but `.git`, and the index.
 * Where something stands all the same, it fails and writes through nothing. Filters are applied as the commit's own
 * attributes say. Stops when the call is late. Blocks; starts threads and ends them. 1: nothing was done, because the
 * file system lacks links, file modes or case, which is for libgit2's checkout to deal with. -1 with *err: some of the
 * files may be there. */
int git_clone_files(const struct git_call *call, git_commit *commit, struct err *err) ABX_MUST_USE;

/* git_clone_move.c: all entries of the directory `from`, which stands in `to` and is alone there, to `to`; the one that
 * makes it a repository comes last. ERR_ALREADY_EXISTS where there is something else. Nothing is moved then. */
int git_clone_move_up(const struct confine *confine, const char *from, const char *to, struct err *err) ABX_MUST_USE;

#endif
