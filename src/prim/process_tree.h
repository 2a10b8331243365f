/* Everything that descends from a program: by its control group where it has one, else by session, process group,
 * parents, and the ABX_PROCESS_ID in its environment. The latter reads all of /proc: some milliseconds on a busy
 * machine. Main thread only. */
#ifndef ABX_PRIM_PROCESS_TREE_H
#define ABX_PRIM_PROCESS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process_cgroup;
struct process_cgroups;
struct process_pids;

/* Processes that were seen to be of a tree. */
struct process_tree_known {
    struct {
        pid_t pid;
        uint64_t start_ticks;
    } * items; /* from malloc */
    size_t count, cap;
};

struct process_tree {
    pid_t leader;          /* the program itself: leader of its session and group */
    uint64_t reaped_ticks; /* proc_ticks_now() when it was reaped, 0 before: from then on its number may be another's */
    const char *id; /* value of ABX_PROCESS_ID; NULL: it was not started here, and only its parents, and the session
                       and group that it leads itself, make its tree */
    uint64_t start_ticks; /* of the leader, where id is NULL */
    /* Then, unless NULL: whoever was signalled is remembered here, and is still of the tree when the parents are gone.
     */
    struct process_tree_known *known;

    /* Where it was started in a control group: those of the table, and its own, NULL once that was given back empty.
     * The rest of /proc is looked at only where something left the groups. NULL, NULL otherwise. */
    const struct process_cgroups *cgroups;
    const struct process_cgroup *cgroup;

    /* All programs of the table that live: each leads a session and a tree of its own. NULL: not known. */
    const struct process_pids *started;
};

/* Sends a signal to all that lives of these trees and answers how many got it. Looks again until nothing new appears (a
 * bounded number of times), so that what forks meanwhile gets it too; a stopped one that gets SIGTERM or SIGHUP is
 * continued.
 * Never to pid 1, the server or its ancestors. */
size_t process_tree_signal(const struct process_tree *trees, size_t count, int signal);

/* The same for clients who ask: nothing is sent where one of the trees holds pid 1, the server, an ancestor of it, or a
 * process in a session of theirs. Signal 0 only looks. */
enum process_tree_outcome { PROCESS_TREE_DONE, PROCESS_TREE_REFUSED, PROCESS_TREE_DENIED };
/* Denied: something lives, and the kernel allowed none of it. */
enum process_tree_outcome process_tree_ask(const struct process_tree *trees, size_t count, int signal,
                                           size_t *out_signalled);

/* Whether a process is pid 1, the server, an ancestor of it, or in a session of theirs. */
bool process_tree_protects(pid_t pid, pid_t session);

/* How many live (zombies do not). */
size_t process_tree_living(const struct process_tree *trees, size_t count);
/* Which of them have anything that lives, by one look for all; where a control group has, only that is read. All do
 * where /proc cannot be opened. */
void process_tree_look(const struct process_tree *trees, size_t count, bool *out_lives);

#endif
