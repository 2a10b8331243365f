/* What the files of the contexts share among themselves; nobody else includes it.
 *   contexts.c       all of them: finding, making room, spares
 *   context_turns.c  one of them: cells one after another, `open`, what became of its state */
#ifndef ABX_PRIM_CONTEXTS_INTERNAL_H
#define ABX_PRIM_CONTEXTS_INTERNAL_H

#include "base/buf.h"
#include "prim/contexts.h"

struct language {
    struct worker_spec spec; /* a copy */
    struct worker *spare;    /* started ahead, for the next context; NULL: none */
    bool wants_spare;        /* a context of it was opened since */
};

struct context {
    struct list node; /* in contexts->list */
    struct contexts *contexts;
    struct language *language;
    char name[CONTEXT_NAME_MAX + 1];
    struct worker *worker;
    struct list cells; /* in their order; the first one has the turn, or is to have it */
    size_t cell_count;

    struct process *opened; /* a reference: the one that `open` or a cell went to */
    bool has_state;         /* and a cell was sent to it */
    bool lost;              /* a state is gone, and no cell was told yet */
    bool opening;           /* the call below runs */
    bool opened_in_vain;    /* a process ended before it had answered `open`; the next one may do better */
    struct worker_call open;
    struct buf open_params;
    char engine[16];
    struct loop_defer advance;
};

/* A name whose state is gone, until a context of that name is made again. */
struct forgotten {
    const struct language *language; /* NULL: none */
    char name[CONTEXT_NAME_MAX + 1];
};

enum {
    FORGOTTEN_MAX = 64,
    CONTEXT_ENV_MAX_BYTES = 16 * 1024 * 1024, /* an environment of a MiB, each byte escaped, and more */
};

struct contexts {
    struct loop *loop;
    struct workers *workers;
    struct process_table *processes;
    const char *cwd;
    struct language *languages;
    size_t language_count;
    struct list list; /* the longest idle one first */
    size_t count;
    struct loop_timer spare_timer;
    unsigned spare_delays; /* how often it was put off */
    struct forgotten forgotten[FORGOTTEN_MAX];
    size_t forgotten_next; /* the place of the next, in turn */
};

/* Gives the next cell its turn, or removes the context, at the next turn of the loop. */
void context_advance_soon(struct context *context);
/* Its interpreter is (or will be) another one. */
void context_lose_state(struct context *context);
/* Frees it; no cell may be left. Its worker is retired. */
void context_free(struct context *context);

/* The spare of that language, or a new one; NULL out of memory. */
struct worker *contexts_take_worker(struct contexts *contexts, struct language *language);
/* A context of that language was opened: the next one shall find a spare. */
void contexts_want_spare(struct contexts *contexts, struct language *language);
/* Takes it out of the list, remembers that its state is gone where that is to be told, and frees it. */
void contexts_remove(struct context *context);

#endif
