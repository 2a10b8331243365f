/* A child that shares this process's memory until it executes a program: what vfork does, on a stack of its own. */
#ifndef ABX_PRIM_SPAWN_CLONE_H
#define ABX_PRIM_SPAWN_CLONE_H

#include <stddef.h>
#include <sys/types.h>

/* Everything that runs in such a child: it has this process's memory but another identity, so no instrumentation, and
 * only system calls. */
#define SPAWN_CHILD_CODE __attribute__((no_sanitize("address", "undefined", "thread")))

/* Runs child(ctx), which must not return but for ending the process, on stack[0..size) in a new process. Returns when
 * that has executed a program or ended; the calling thread sleeps until then, and should have all signals blocked.
 * cgroup_fd: the directory of the control group that it is born in (clone3, Linux 5.7), -1: this process's own. The
 * pid, and in *out_pidfd a close-on-exec descriptor that the caller owns; -1 with errno. */
pid_t spawn_clone(int (*child)(void *ctx), void *ctx, char *stack, size_t size, int cgroup_fd, int *out_pidfd);

#endif
