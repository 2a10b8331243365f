/* All contexts: finding them by name, making room, interpreters started ahead; see the header. Called by bind_code. */
#include "prim/contexts_internal.h"

#include <stdlib.h>
#include <string.h>

enum {
    SPARE_DELAY_MS = 1000, /* after a context was opened, so as not to take the processor from its first cell */
    SPARE_DELAYS_MAX = 10, /* however long cells run: then anyway */
};

/* --- making and freeing */

struct contexts *contexts_new(struct loop *loop, struct workers *workers, struct process_table *processes,
                              const char *cwd, const struct worker_spec *languages, size_t count)
{
    struct contexts *contexts = calloc(1, sizeof(*contexts));
    if (contexts == NULL)
        return NULL;
    contexts->loop = loop;
    contexts->workers = workers;
    contexts->processes = processes;
    contexts->cwd = cwd;
    list_init(&contexts->list);
    contexts->languages = calloc(count, sizeof(*contexts->languages));
    while (contexts->languages != NULL && contexts->language_count < count &&
           worker_spec_copy(&languages[contexts->language_count],
                            &contexts->languages[contexts->language_count].spec) == 0)
        contexts->language_count++;
    if (contexts->language_count < count) {
        contexts_free(contexts);
        return NULL;
    }
    return contexts;
}

void contexts_free(struct contexts *contexts)
{
    if (contexts == NULL)
        return;
    loop_timer_stop(&contexts->spare_timer);
    LIST_EACH (&contexts->list, node) {
        struct context *context = LIST_ENTRY(node, struct context, node);
        list_remove(&context->node);
        context_free(context);
    }
    for (size_t i = 0; i < contexts->language_count; i++) {
        worker_retire(contexts->languages[i].spare);
        worker_spec_deinit(&contexts->languages[i].spec);
    }
    free(contexts->languages);
    free(contexts);
}

/* --- spares */

static void on_spare_time(void *ctx)
{
    struct contexts *contexts = ctx;
    bool busy = false;
    struct err err;
    LIST_EACH (&contexts->list, node)
        busy |= LIST_ENTRY(node, struct context, node)->cell_count > 0;
    if (busy && contexts->spare_delays++ < SPARE_DELAYS_MAX) {
        loop_timer_start(contexts->loop, &contexts->spare_timer, SPARE_DELAY_MS, on_spare_time, contexts);
        return;
    }
    for (size_t i = 0; i < contexts->language_count; i++) {
        struct language *language = &contexts->languages[i];
        if (!language->wants_spare || language->spare != NULL)
            continue;
        language->wants_spare = false;
        language->spare = worker_new(contexts->workers, &language->spec);
        if (language->spare != NULL && worker_warm(language->spare, &err) != 0) {
            worker_retire(language->spare); /* whoever needs one next is told why there is none */
            language->spare = NULL;
        }
    }
}

void contexts_want_spare(struct contexts *contexts, struct language *language)
{
    language->wants_spare = true;
    contexts->spare_delays = 0;
    if (language->spare == NULL)
        loop_timer_start(contexts->loop, &contexts->spare_timer, SPARE_DELAY_MS, on_spare_time, contexts);
}

struct worker *contexts_take_worker(struct contexts *contexts, struct language *language)
{
    struct worker *worker = language->spare;
    language->spare = NULL;
    return worker != NULL ? worker : worker_new(contexts->workers, &language->spec);
}

/* --- names whose state is gone */

static void remember(struct contexts *contexts, const struct context *context)
{
    struct forgotten *entry = &contexts->forgotten[contexts->forgotten_next++ % FORGOTTEN_MAX];
    entry->language = context->language;
    strcpy(entry->name, context->name);
}

static bool recall(struct contexts *contexts, const struct language *language, const char *name)
{
    bool found = false;
    for (size_t i = 0; i < FORGOTTEN_MAX; i++) {
        struct forgotten *entry = &contexts->forgotten[i];
        if (entry->language == language && strcmp(entry->name, name) == 0) {
            entry->language = NULL;
            found = true;
        }
    }
    return found;
}

void contexts_remove(struct context *context)
{
    struct contexts *contexts = context->contexts;
    if (context->has_state || context->lost)
        remember(contexts, context);
    list_remove(&context->node);
    contexts->count--;
    context_free(context);
}

/* --- finding */

static struct language *find_language(struct contexts *contexts, const char *name)
{
    for (size_t i = 0; i < contexts->language_count; i++)
        if (strcmp(contexts->languages[i].spec.name, name) == 0)
            return &contexts->languages[i];
    return NULL;
}

static struct context *find(struct contexts *contexts, const struct language *language, const char *name)
{
    LIST_EACH (&contexts->list, node) {
        struct context *context = LIST_ENTRY(node, struct context, node);
        if (context->language == language && strcmp(context->name, name) == 0)
            return context;
    }
    return NULL;
}

static bool name_valid(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
    return len > 0 && len <= CONTEXT_NAME_MAX && name[len] == '\0';
}

/* One that was left and is still being interrupted is not idle yet. */
static bool is_idle(const struct context *context)
{
    return context->cell_count == 0 && !context->opening && worker_load(context->worker) == 0;
}

static int make_room(struct contexts *contexts, struct err *err)
{
    if (contexts->count < CONTEXTS_MAX)
        return 0;
    LIST_EACH (&contexts->list, node) {
        struct context *context = LIST_ENTRY(node, struct context, node);
        if (is_idle(context)) {
            contexts_remove(context);
            return 0;
        }
    }
    return err_set(err, ERR_TOO_MANY_REQUESTS, "all %d contexts are busy: wait for one, or use one of them",
                   CONTEXTS_MAX);
}

static struct context *make(struct contexts *contexts, struct language *language, const char *name, struct err *err)
{
    if (make_room(contexts, err) != 0)
        return NULL;
    struct context *context = calloc(1, sizeof(*context));
    struct worker *worker = context != NULL ? contexts_take_worker(contexts, language) : NULL;
    if (worker == NULL) {
        free(context);
        err_set(err, ERR_INTERNAL, "out of memory for a context");
        return NULL;
    }
    context->contexts = contexts;
    context->language = language;
    strcpy(context->name, name);
    context->worker = worker;
    context->lost = recall(contexts, language, name);
    list_init(&context->cells);
    buf_init(&context->open_params, CONTEXT_ENV_MAX_BYTES);
    list_append(&contexts->list, &context->node);
    contexts->count++;
    return context;
}

int contexts_run(struct contexts *contexts, const char *language_name, const char *name, struct context_cell *cell,
                 struct err *err)
{
    struct language *language = find_language(contexts, language_name);
    if (language == NULL) {
        err_set(err, ERR_INVALID_REQUEST, "there is no language of that name");
        return err_field(err, "language");
    }
    if (!name_valid(name)) {
        err_set(err, ERR_INVALID_REQUEST, "names of contexts are 1 to %d of A-Z a-z 0-9 . _ -", CONTEXT_NAME_MAX);
        return err_field(err, "context");
    }
    struct context *context = find(contexts, language, name);
    if (context != NULL && context->cell_count > CONTEXT_WAITING_MAX)
        return err_set(err, ERR_TOO_MANY_REQUESTS, "%d cells wait for this context already", CONTEXT_WAITING_MAX);
    if (context == NULL && (context = make(contexts, language, name, err)) == NULL)
        return -1;
    cell->context = context;
    cell->process = NULL;
    cell->sent = cell->done = false;
    list_append(&context->cells, &cell->node);
    context->cell_count++;
    context_advance_soon(context);
    return 0;
}

size_t contexts_count(const struct contexts *contexts)
{
    return contexts->count;
}
