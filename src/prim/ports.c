/* Sockets that listen, and whose they are; called by bind_system_ports. */
#include "prim/ports.h"

#include "base/json.h"
#include "prim/proc_stat.h"
#include "prim/process_marker.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATE_LISTEN = 0x0A, ANCESTORS_MAX = 256, PORTS_MAX = 1024 * 1024 };

struct port {
    uint64_t inode;
    unsigned number;
    const char *family;
    struct in6_addr sort; /* v4 as v4-mapped */
    char address[INET6_ADDRSTRLEN];
    pid_t pid; /* 0: not known */
    char process[PROC_NAME_MAX];
    const char *managed_id; /* an entry's, or NULL */
};

struct listing {
    struct port *ports;
    size_t count, cap, unmatched;
    const struct ports_entry *entries;
    size_t entry_count;
    int proc_fd;
};

/* --- the kernel's tables */

static struct port *add_port(struct listing *listing)
{
    if (listing->count == listing->cap) {
        size_t cap = listing->cap > 0 ? listing->cap * 2 : 64;
        struct port *more = cap <= PORTS_MAX ? realloc(listing->ports, cap * sizeof(*more)) : NULL;
        if (more == NULL)
            return NULL;
        listing->ports = more;
        listing->cap = cap;
    }
    struct port *port = &listing->ports[listing->count++];
    *port = (struct port){0};
    return port;
}

/* The words of an address stand there as numbers of this machine's, but are in network order: net/ipv4/tcp_ipv4.c. */
static bool read_address(const char *hex, struct in6_addr *out)
{
    uint32_t words[4];
    size_t len = strlen(hex);
    for (size_t i = 0; i < len / 8; i++)
        if (sscanf(hex + 8 * i, "%8" SCNx32, &words[i]) != 1)
            return false;
    *out = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    if (len == 8)
        memcpy(&out->s6_addr[12], words, 4);
    else if (len == 32)
        memcpy(out->s6_addr, words, 16);
    return len == 8 || len == 32;
}

/* sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode … */
static int read_line(struct listing *listing, const char *line)
{
    char hex[33];
    unsigned number, state;
    uint64_t inode;
    struct in6_addr address;
    if (sscanf(line, " %*[0-9]: %32[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %" SCNu64, hex,
               &number, &state, &inode) != 4 ||
        state != STATE_LISTEN || !read_address(hex, &address))
        return 0;
    struct port *port = add_port(listing);
    if (port == NULL)
        return -1;
    port->inode = inode;
    port->number = number;
    port->sort = address;
    bool v4 = IN6_IS_ADDR_V4MAPPED(&address);
    port->family = v4 ? "ipv4" : "ipv6";
    inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? &address.s6_addr[12] : address.s6_addr, port->address,
              sizeof(port->address));
    return 0;
}

static int read_table(struct listing *listing, const char *path, struct err *err)
{
    FILE *table = fopen(path, "re");
    if (table == NULL)
        return errno == ENOENT ? 0 : err_set_errno(err, ERR_INTERNAL, errno, "cannot read %s", path);
    char *line = NULL;
    size_t cap = 0;
    int failed = 0;
    while (failed == 0 && getline(&line, &cap, table) >= 0)
        failed = read_line(listing, line);
    free(line);
    fclose(table);
    return failed == 0 ? 0 : err_set(err, ERR_INTERNAL, "out of memory for the ports");
}

/* --- whose they are */

static int compare_inodes(const void *a, const void *b)
{
    const struct port *left = a, *right = b;
    return (left->inode > right->inode) - (left->inode < right->inode);
}

static void match(struct listing *listing, uint64_t inode, pid_t pid)
{
    struct port wanted = {.inode = inode};
    struct port *port = bsearch(&wanted, listing->ports, listing->count, sizeof(wanted), compare_inodes);
    if (port == NULL || port->pid != 0)
        return;
    port->pid = pid;
    listing->unmatched--;
}

/* By the links alone: to look at what a descriptor leads to could wait for a network. */
static void look_through(struct listing *listing, pid_t pid)
{
    char path[32], link[64];
    snprintf(path, sizeof(path), "%d/fd", (int)pid);
    int fd = openat(listing->proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        return; /* it is gone, or not ours to see */
    }
    uint64_t inode;
    for (struct dirent *found; listing->unmatched > 0 && (found = readdir(dir)) != NULL;) {
        ssize_t len = readlinkat(dirfd(dir), found->d_name, link, sizeof(link) - 1);
        link[len > 0 ? len : 0] = '\0';
        if (sscanf(link, "socket:[%" SCNu64 "]", &inode) == 1)
            match(listing, inode, pid);
    }
    closedir(dir);
}

static int find_owners(struct listing *listing, struct err *err)
{
    pid_t *pids;
    size_t count;
    qsort(listing->ports, listing->count, sizeof(struct port), compare_inodes);
    look_through(listing, getpid());
    for (size_t i = 0; i < listing->entry_count && listing->unmatched > 0; i++)
        if (listing->entries[i].pid != 0)
            look_through(listing, listing->entries[i].pid);
    if (listing->unmatched == 0)
        return 0;
    if (proc_pids(listing->proc_fd, &pids, &count) != 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot read /proc");
    for (size_t i = 0; i < count && listing->unmatched > 0; i++)
        look_through(listing, pids[i]);
    free(pids);
    return 0;
}

/* --- to which entry they belong */

static const char *entry_of_pid(const struct listing *listing, pid_t pid)
{
    for (size_t i = 0; i < listing->entry_count; i++)
        if (listing->entries[i].pid == pid && pid != 0)
            return listing->entries[i].id;
    return NULL;
}

static const char *entry_of_marker(const struct listing *listing, pid_t pid)
{
    char id[PROCESS_MARKER_MAX];
    if (!process_marker_read(listing->proc_fd, pid, id))
        return NULL;
    for (size_t i = 0; i < listing->entry_count; i++)
        if (strcmp(listing->entries[i].id, id) == 0)
            return listing->entries[i].id;
    return NULL;
}

static const char *entry_of_ancestors(const struct listing *listing, struct proc_stat stat)
{
    for (int i = 0; i < ANCESTORS_MAX && stat.pid > 1 && stat.pid != getpid(); i++) {
        const pid_t kin[] = {stat.pid, stat.session, stat.group};
        for (size_t k = 0; k < sizeof(kin) / sizeof(*kin); k++) {
            const char *id = entry_of_pid(listing, kin[k]);
            if (id != NULL)
                return id;
        }
        if (proc_stat_read(listing->proc_fd, stat.parent, &stat) != 0)
            break;
    }
    return NULL;
}

/* A process that is gone by now is not told of. */
static void describe(struct listing *listing, struct port *port)
{
    struct proc_stat stat;
    if (port->pid == 0)
        return;
    if (proc_stat_read(listing->proc_fd, port->pid, &stat) != 0) {
        port->pid = 0;
        return;
    }
    snprintf(port->process, sizeof(port->process), "%s", stat.name);
    if (port->pid == getpid())
        return;
    port->managed_id = entry_of_pid(listing, port->pid);
    if (port->managed_id == NULL)
        port->managed_id = entry_of_marker(listing, port->pid);
    if (port->managed_id == NULL)
        port->managed_id = entry_of_ancestors(listing, stat);
}

/* --- the answer */

static int compare_ports(const void *a, const void *b)
{
    const struct port *left = a, *right = b;
    if (left->number != right->number)
        return left->number < right->number ? -1 : 1;
    int by_address = memcmp(&left->sort, &right->sort, sizeof(left->sort));
    if (by_address != 0)
        return by_address;
    if (left->pid != right->pid)
        return left->pid < right->pid ? -1 : 1;
    return compare_inodes(a, b);
}

static int write_port(struct buf *out, const struct port *port)
{
    if (buf_printf(out, "{\"port\":%u,\"address\":\"%s\",\"family\":\"%s\"", port->number, port->address,
                   port->family) != 0)
        return -1;
    if (port->pid == 0)
        return buf_append_text(out, ",\"pid\":null,\"process\":null,\"managed_id\":null,\"self\":false}");
    if (buf_printf(out, ",\"pid\":%d,\"process\":", (int)port->pid) ||
        json_write_string(out, port->process, strlen(port->process)) || buf_append_text(out, ",\"managed_id\":"))
        return -1;
    if (port->managed_id != NULL ? json_write_string(out, port->managed_id, strlen(port->managed_id))
                                 : buf_append_text(out, "null"))
        return -1;
    return buf_append_text(out, port->pid == getpid() ? ",\"self\":true}" : ",\"self\":false}");
}

static int write_all(struct buf *out, struct listing *listing, struct err *err)
{
    int failed = buf_append_text(out, "{\"ports\":[");
    if (listing->count > 0)
        qsort(listing->ports, listing->count, sizeof(struct port), compare_ports);
    for (size_t i = 0; i < listing->count && failed == 0; i++)
        failed = (i > 0 && buf_append_text(out, ",")) || write_port(out, &listing->ports[i]);
    if (failed || buf_append_text(out, "]}"))
        return err_set(err, ERR_INTERNAL, "out of memory for the ports");
    return 0;
}

static int list_ports(struct buf *out, struct listing *listing, const char *tcp, const char *tcp6, struct err *err)
{
    if (read_table(listing, tcp, err) != 0 || read_table(listing, tcp6, err) != 0)
        return -1;
    listing->unmatched = listing->count;
    if (listing->count > 0 && find_owners(listing, err) != 0)
        return -1;
    for (size_t i = 0; i < listing->count; i++)
        describe(listing, &listing->ports[i]);
    return write_all(out, listing, err);
}

int ports_write_of(struct buf *out, const char *tcp, const char *tcp6, const struct ports_entry *entries, size_t count,
                   struct err *err)
{
    struct listing listing = {.entries = entries, .entry_count = count, .proc_fd = proc_open()};
    if (listing.proc_fd < 0)
        return err_set_errno(err, ERR_INTERNAL, errno, "cannot open /proc");
    int failed = list_ports(out, &listing, tcp, tcp6, err);
    close(listing.proc_fd);
    free(listing.ports);
    return failed;
}

int ports_write(struct buf *out, const struct ports_entry *entries, size_t count, struct err *err)
{
    return ports_write_of(out, "/proc/net/tcp", "/proc/net/tcp6", entries, count, err);
}
