/* clone3(2) as vfork with a pidfd, into a control group where one is given; called by prim/spawn and by
 * process_cgroup's probe. Moving a child that exists already (cgroup.procs) would wait for a grace period of RCU: some
 * 10 ms for each start. */
#include "prim/spawn_clone.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef CLONE_INTO_CGROUP
#define CLONE_INTO_CGROUP UINT64_C(0x200000000)
#endif

enum { FLAGS = CLONE_VM | CLONE_VFORK | CLONE_PIDFD };

/* struct clone_args of <linux/sched.h>, which does not go together with <sched.h>. */
struct clone3_args {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};

/* The C library has no clone3 for others. The child begins on its new stack, so it cannot return from a function: it
 * calls child(ctx) at once. The result is that of the kernel: a pid, or minus an errno. */
#if defined(__x86_64__)
static long clone3_call(struct clone3_args *args, int (*child)(void *ctx), void *ctx)
{
    register long result __asm__("rax") = SYS_clone3;
    register struct clone3_args *arg0 __asm__("rdi") = args;
    register size_t arg1 __asm__("rsi") = sizeof(*args);
    register void *context __asm__("r8") = ctx;
    register int (*function)(void *) __asm__("r9") = child;
    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r8, %%rdi\n\t"
                     "call *%%r9\n\t"
                     "hlt\n"
                     "1:"
                     : "+r"(result)
                     : "r"(arg0), "r"(arg1), "r"(context), "r"(function)
                     : "rcx", "r11", "cc", "memory");
    return result;
}
#elif defined(__aarch64__)
static long clone3_call(struct clone3_args *args, int (*child)(void *ctx), void *ctx)
{
    register long number __asm__("x8") = SYS_clone3;
    register long result __asm__("x0") = (long)args;
    register size_t arg1 __asm__("x1") = sizeof(*args);
    register void *context __asm__("x2") = ctx;
    register int (*function)(void *) __asm__("x3") = child;
    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, #0\n\t"
                     "mov x0, x2\n\t"
                     "blr x3\n\t"
                     "brk #0\n"
                     "1:"
                     : "+r"(result)
                     : "r"(number), "r"(arg1), "r"(context), "r"(function)
                     : "cc", "memory");
    return result;
}
#else
static long clone3_call(struct clone3_args *args, int (*child)(void *ctx), void *ctx)
{
    (void)args, (void)child, (void)ctx;
    return -ENOSYS;
}
#endif

/* Refused where a filter of system calls knows no clone3, or the kernel does not. The thread sanitizer takes this one
 * for a fork, and the thread for one that may do nothing any more; it does not know the other. */
static long clone_call(int (*child)(void *ctx), void *ctx, char *stack_end, int *out_pidfd)
{
    long pid = clone(child, stack_end, FLAGS | SIGCHLD, ctx, out_pidfd);
    return pid < 0 ? -errno : pid;
}

pid_t spawn_clone(int (*child)(void *ctx), void *ctx, char *stack, size_t size, int cgroup_fd, int *out_pidfd)
{
    int pidfd = -1;
    struct clone3_args args = {
        .flags = FLAGS,
        .pidfd = (uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
        .stack = (uintptr_t)stack,
        .stack_size = size,
    };
    if (cgroup_fd >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)cgroup_fd;
    }
    long pid = clone3_call(&args, child, ctx);
    if (cgroup_fd < 0 && (pid == -ENOSYS || pid == -EPERM))
        pid = clone_call(child, ctx, stack + size, &pidfd);
    if (pid < 0) {
        errno = (int)-pid;
        return -1;
    }
    *out_pidfd = pidfd;
    return (pid_t)pid;
}
