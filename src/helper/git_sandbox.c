/* What confines `abxd-helper git` beyond the guards in code: Landlock where the kernel has it, limits, and libgit2's
 * global options. Called once, by git_main. */
#include "helper/git.h"
#include "helper/git_trust.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Debian's headers are older than the kernels that we meet. */
#define ACCESS_TRUNCATE (1ULL << 14)
#define ACCESS_IOCTL_DEV (1ULL << 15)
#define ACCESS_ABI_1 ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

#define ACCESS_OF_FILES                                                                                                \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE | ACCESS_TRUNCATE |     \
     ACCESS_IOCTL_DEV)
#define ACCESS_READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define ACCESS_NEVER                                                                                                   \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK |                       \
     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | ACCESS_IOCTL_DEV)

/* Name service, certificates and the libraries that these load at run time. */
static const char *const readable[] = {
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/ssl",
    "/etc/ca-certificates",
    "/etc/localtime",
    "/dev/urandom",
    "/dev/null",
    "/etc/ld.so.cache",
    "/run/systemd/resolve",
};

uint64_t git_sandbox_access(long abi)
{
    /* The first version lets nobody rename from one directory to another, which is how objects get their names. */
    if (abi < 2)
        return 0;
    uint64_t access = ACCESS_ABI_1 | LANDLOCK_ACCESS_FS_REFER;
    if (abi >= 3)
        access |= ACCESS_TRUNCATE;
    if (abi >= 5)
        access |= ACCESS_IOCTL_DEV;
    return access;
}

/* What does not exist needs no rule. */
static int allow(int ruleset_fd, const char *path, uint64_t access, struct err *err)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return 0;
    struct stat found;
    if (fstat(fd, &found) == 0 && !S_ISDIR(found.st_mode))
        access &= ACCESS_OF_FILES;
    struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
    long rc = syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    int saved = errno;
    close(fd);
    return rc == 0 ? 0 : err_set_errno(err, ERR_INTERNAL, saved, "Landlock refuses a rule for %s", path);
}

static int add_rules(int ruleset_fd, const char *base_dir, uint64_t handled, struct err *err)
{
    const char *tmp = getenv("TMPDIR");
    if (allow(ruleset_fd, base_dir, handled & ~ACCESS_NEVER, err) != 0)
        return -1;
    if (tmp && tmp[0] == '/' && allow(ruleset_fd, tmp, handled & ~ACCESS_NEVER, err) != 0)
        return -1;
    for (size_t i = 0; i < sizeof readable / sizeof readable[0]; i++)
        if (allow(ruleset_fd, readable[i], ACCESS_READ, err) != 0)
            return -1;
    /* With some TLS libraries libgit2 looks into a directory of certificates only when it meets one. */
    const struct git_trust *trust = git_trust();
    if (!trust->broken && ((trust->file && allow(ruleset_fd, trust->file, ACCESS_READ, err) != 0) ||
                           (trust->dir[0] && allow(ruleset_fd, trust->dir, ACCESS_READ, err) != 0)))
        return -1;
    return allow(ruleset_fd, "/dev/null", ACCESS_READ | LANDLOCK_ACCESS_FS_WRITE_FILE, err);
}

static int enter_landlock(const char *base_dir, struct err *err)
{
    long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    struct landlock_ruleset_attr attr = {.handled_access_fs = git_sandbox_access(abi)};
    if (attr.handled_access_fs == 0)
        return 0;
    int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (fd < 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "Landlock refuses a ruleset");
    int rc = add_rules(fd, base_dir, attr.handled_access_fs, err);
    if (rc == 0 && syscall(SYS_landlock_restrict_self, fd, 0) != 0)
        rc = err_set_errno(err, ERR_INTERNAL, errno, "Landlock refuses to begin");
    close(fd);
    return rc;
}

/* No configuration but the repository's own counts, and nothing is asked about who owns it: nothing of it is ever run.
 */
static int set_options(void)
{
    static const int levels[] = {GIT_CONFIG_LEVEL_PROGRAMDATA, GIT_CONFIG_LEVEL_SYSTEM, GIT_CONFIG_LEVEL_XDG,
                                 GIT_CONFIG_LEVEL_GLOBAL};
    int rc = git_libgit2_init() < 0 ? -1 : 0;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0] && rc == 0; i++)
        rc = git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, levels[i], "");
    if (rc == 0)
        rc = git_libgit2_opts(GIT_OPT_SET_TEMPLATE_PATH, "");
    if (rc == 0)
        rc = git_libgit2_opts(GIT_OPT_SET_OWNER_VALIDATION, 0);
    return rc;
}

int git_sandbox_enter(const char *base_dir, bool landlock, struct err *err)
{
    struct rlimit none = {0, 0};
    if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot set limits");
    if (set_options() < 0)
        return git_fail(err, -1, "cannot set libgit2 up");
    git_trust_set_up();
    return landlock ? enter_landlock(base_dir, err) : 0;
}
