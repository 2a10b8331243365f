/* The Lua state of a generation: its allocator, and reading source files. Called by generation.c and the sandbox. */
#include "script/vm.h"

#include "base/log.h"
#include "script/budget.h"
#include "script/sandbox.h"
#include "script/task_state.h"

#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Stands before each block. Eight bytes: Lua needs no stricter alignment than that. */
struct block {
    struct account *owner;
};

static void credit(struct vm *vm, struct account *owner, size_t bytes)
{
    owner->used_bytes -= bytes;
    vm->used_bytes -= bytes;
    if (owner->closed)
        vm->left_bytes -= bytes;
    if (owner->closed && owner->used_bytes == 0) {
        owner->next_idle = vm->idle_accounts;
        vm->idle_accounts = owner;
    }
}

static void *on_alloc(void *ud, void *ptr, size_t old_size, size_t size)
{
    struct vm *vm = ud;
    struct block *block = ptr ? (struct block *)ptr - 1 : NULL;
    if (block == NULL)
        old_size = 0; /* it told the kind of object */
    if (size == 0) {
        if (block != NULL) {
            credit(vm, block->owner, old_size);
            free(block);
        }
        return NULL;
    }
    struct account *payer = vm->charged;
    if (size > old_size && vm->capped) {
        size_t paid = payer->used_bytes - (block != NULL && block->owner == payer ? old_size : 0);
        if (size > payer->limit_bytes || paid > payer->limit_bytes - size ||
            vm->used_bytes + (size - old_size) > vm->ceiling_bytes)
            return NULL; /* Lua collects all garbage and tries once more */
    }
    if (size > SIZE_MAX - sizeof(*block))
        return NULL;
    struct account *owner = block ? block->owner : NULL;
    struct block *moved = block ? realloc(block, size + sizeof(*block)) : malloc(size + sizeof(*block));
    if (moved == NULL)
        return NULL;
    payer->used_bytes += size;
    vm->used_bytes += size;
    if (owner != NULL)
        credit(vm, owner, old_size);
    moved->owner = payer;
    return moved + 1;
}

struct account *vm_account_open(struct vm *vm)
{
    struct account *account = vm->idle_accounts;
    if (account != NULL)
        vm->idle_accounts = account->next_idle;
    else if ((account = malloc(sizeof(*account))) == NULL)
        return NULL;
    *account = (struct account){.limit_bytes = vm->task_bytes};
    return account;
}

void vm_account_close(struct vm *vm, struct account *account)
{
    account->closed = true;
    vm->left_bytes += account->used_bytes;
    if (account->used_bytes == 0) {
        account->next_idle = vm->idle_accounts;
        vm->idle_accounts = account;
    }
}

void vm_tell_kept(struct vm *vm)
{
    size_t kept = vm->left_bytes + vm->host.used_bytes;
    if (vm->told_kept || kept + vm->task_bytes <= vm->ceiling_bytes)
        return;
    vm->told_kept = true;
    log_write(LOG_LEVEL_ERROR, "script", NULL,
              "%zu of %zu bytes for Lua belong to no request: something in the tables keeps what requests made, and "
              "requests fail for want of memory; reload to free it",
              kept, vm->ceiling_bytes);
}

struct vm *vm_of(lua_State *L)
{
    void *vm;
    lua_getallocf(L, &vm);
    return vm;
}

int vm_open(struct vm *vm, struct generation *generation, const struct script_options *options, struct err *err)
{
    *vm = (struct vm){
        .generation = generation,
        .task_bytes = options->limits.task_memory_bytes,
        .ceiling_bytes = 4 * options->limits.task_memory_bytes,
        .host.limit_bytes = SIZE_MAX,
        .loop = options->loop,
        .host_parts = options->host,
        .bindings = options->bindings,
        .limits = options->limits,
    };
    vm->charged = &vm->host;
    if (budget_ref() != 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "no timer for the CPU budget");
    size_t len = strlen(options->lua_dir);
    while (len > 1 && options->lua_dir[len - 1] == '/')
        len--;
    vm->lua_dir = strndup(options->lua_dir, len);
    vm->L = vm->lua_dir ? lua_newstate(on_alloc, vm) : NULL;
    if (vm->L == NULL) {
        vm_close(vm);
        return err_set(err, ERR_INTERNAL, "out of memory");
    }
    *(void **)lua_getextraspace(vm->L) = NULL; /* copied into every coroutine that a script makes */
    lua_pushcfunction(vm->L, sandbox_open);
    if (lua_pcall(vm->L, 0, 0, 0) != LUA_OK) {
        err_set(err, ERR_INTERNAL, "cannot open the sandbox: %s", lua_tostring(vm->L, -1));
        vm_close(vm);
        return -1;
    }
    return 0;
}

void vm_close(struct vm *vm)
{
    task_free_all(vm);
    if (vm->L != NULL)
        lua_close(vm->L);
    while (vm->idle_accounts != NULL) {
        struct account *account = vm->idle_accounts;
        vm->idle_accounts = account->next_idle;
        free(account);
    }
    free(vm->lua_dir);
    budget_unref();
}

const char *vm_display(const struct vm *vm, const char *path)
{
    const char *slash = strrchr(vm->lua_dir, '/');
    size_t parent_len = slash ? (size_t)(slash - vm->lua_dir) + 1 : 0;
    return strncmp(path, vm->lua_dir, parent_len) == 0 ? path + parent_len : path;
}

char *vm_read_source(const char *path, size_t *out_len, struct err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to hang on a pipe of that name */
    if (fd < 0) {
        err_set(err, err_from_errno(errno), "%s", strerror(errno));
        return NULL;
    }
    struct stat st;
    char *text = NULL;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        err_set(err, ERR_NOT_A_REGULAR_FILE, "is not a regular file");
    } else if (st.st_size > VM_SOURCE_MAX_BYTES) {
        err_set(err, ERR_PAYLOAD_TOO_LARGE, "is over %d bytes", VM_SOURCE_MAX_BYTES);
    } else if ((text = malloc((size_t)st.st_size + 1)) == NULL) {
        err_set(err, ERR_INTERNAL, "out of memory");
    } else {
        size_t len = 0;
        ssize_t got;
        while (len < (size_t)st.st_size && (got = read(fd, text + len, (size_t)st.st_size - len)) > 0)
            len += (size_t)got;
        size_t skip = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
        memmove(text, text + skip, len - skip);
        text[len - skip] = '\0';
        *out_len = len - skip;
        if (text[0] == LUA_SIGNATURE[0]) {
            err_set(err, ERR_INTERNAL, "is compiled Lua, only source text is taken");
            free(text);
            text = NULL;
        }
    }
    close(fd);
    return text;
}
