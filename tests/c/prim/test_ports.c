/* prim/ports: the kernel's tables of sockets, and whose the listeners are. */
#include "prim/ports.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct buf out;

static int set_up(void **state)
{
    (void)state;
    buf_init(&out, 4 * 1024 * 1024);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buf_deinit(&out);
    return 0;
}

/* An absolute path of a file with that text. */
static char *file_of(const char *text, char path[32])
{
    strcpy(path, "/tmp/test-ports-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    return path;
}

static const char *list(const char *tcp, const char *tcp6, const struct ports_entry *entries, size_t count)
{
    struct err err;
    buf_reset(&out);
    assert_int_equal(ports_write_of(&out, tcp, tcp6, entries, count, &err), 0);
    assert_int_equal(buf_append(&out, "", 1), 0);
    return out.data;
}

#define HEAD "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
#define LINE(address, state, inode)                                                                                    \
    "   0: " address " 00000000:0000 " state " 00000000:00000000 00:00000000 00000000  1000        0 " inode           \
    " 1 0000000000000000 100 0 0 10 0\n"
#define UNKNOWN ",\"pid\":null,\"process\":null,\"managed_id\":null,\"self\":false}"

static void reads_the_tables(void **state)
{
    (void)state;
    char tcp[32], tcp6[32];
    /* As a little-endian machine shows them; the inodes are nobody's. */
    file_of(HEAD LINE("0100007F:1F90", "0A", "4000000001") LINE("00000000:0050", "0A", "4000000002")
                LINE("0100007F:1F91", "01", "4000000003") "nonsense\n" LINE("0200007F:1F90", "0A", "4000000004"),
            tcp);
    file_of(HEAD LINE("00000000000000000000000000000000:0050", "0A", "4000000005")
                LINE("B80D0120000000000000000001000000:FFFF", "0A", "4000000006")
                    LINE("0000000000000000FFFF00000100007F:1F92", "0A", "4000000007"),
            tcp6);
    if (htonl(1) != 1)
        assert_string_equal(list(tcp, tcp6, NULL, 0),
                            "{\"ports\":[{\"port\":80,\"address\":\"::\",\"family\":\"ipv6\"" UNKNOWN
                            ",{\"port\":80,\"address\":\"0.0.0.0\",\"family\":\"ipv4\"" UNKNOWN
                            ",{\"port\":8080,\"address\":\"127.0.0.1\",\"family\":\"ipv4\"" UNKNOWN
                            ",{\"port\":8080,\"address\":\"127.0.0.2\",\"family\":\"ipv4\"" UNKNOWN
                            ",{\"port\":8082,\"address\":\"127.0.0.1\",\"family\":\"ipv4\"" UNKNOWN
                            ",{\"port\":65535,\"address\":\"2001:db8::1\",\"family\":\"ipv6\"" UNKNOWN "]}");
    assert_string_equal(list("/nonexistent/tcp", "/nonexistent/tcp6", NULL, 0), "{\"ports\":[]}");
    unlink(tcp);
    unlink(tcp6);
    struct err err;
    assert_int_equal(ports_write_of(&out, "/etc/passwd/tcp", "/", NULL, 0, &err), -1);
}

static int listen_on(int family, const char *address, unsigned *out_port)
{
    struct sockaddr_storage any = {.ss_family = (sa_family_t)family};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&any;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&any;
    int off = 0;
    socklen_t len = family == AF_INET ? sizeof(*v4) : sizeof(*v6);
    int fd = socket(family, SOCK_STREAM, 0);
    if (fd < 0)
        return -1;
    assert_int_equal(inet_pton(family, address, family == AF_INET ? (void *)&v4->sin_addr : (void *)&v6->sin6_addr), 1);
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, (struct sockaddr *)&any, len) != 0 || listen(fd, 1) != 0) {
        close(fd);
        return -1;
    }
    assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &len), 0);
    *out_port = ntohs(family == AF_INET ? v4->sin_port : v6->sin6_port);
    return fd;
}

static void assert_listed(const char *listed, unsigned port, const char *address, const char *family, pid_t pid,
                          const char *process, const char *managed_id, const char *self)
{
    char want[512];
    snprintf(want, sizeof(want),
             "{\"port\":%u,\"address\":\"%s\",\"family\":\"%s\",\"pid\":%d,\"process\":\"%s\",\"managed_id\":%s,"
             "\"self\":%s}",
             port, address, family, (int)pid, process, managed_id, self);
    if (strstr(listed, want) == NULL)
        fail_msg("%s is not in %s", want, listed);
}

static const char *listed_now(const struct ports_entry *entries, size_t count)
{
    return list("/proc/net/tcp", "/proc/net/tcp6", entries, count);
}

static void tells_its_own(void **state)
{
    (void)state;
    unsigned port, port6, mapped_port;
    int v4 = listen_on(AF_INET, "127.0.0.1", &port);
    assert_true(v4 >= 0);
    int v6 = listen_on(AF_INET6, "::1", &port6), mapped = listen_on(AF_INET6, "::ffff:127.0.0.1", &mapped_port);
    const char *listed = listed_now(NULL, 0);
    assert_listed(listed, port, "127.0.0.1", "ipv4", getpid(), "prim_test_ports", "null", "true");
    if (v6 >= 0)
        assert_listed(listed, port6, "::1", "ipv6", getpid(), "prim_test_ports", "null", "true");
    else
        printf("NOT RUN: IPv6: there is none here\n");
    if (mapped >= 0)
        assert_listed(listed, mapped_port, "127.0.0.1", "ipv4", getpid(), "prim_test_ports", "null", "true");
    close(v4);
    close(v6);
    close(mapped);
}

/* A program that holds the socket as its descriptor 3, in a session of its own or not; its parent has closed it. */
static pid_t hold(int fd, const char *variable, bool session)
{
    int ready[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char *env[] = {"A=1", (char *)(uintptr_t)variable, NULL};
        if (session)
            setsid();
        execle("/bin/sleep", "sleep", "1000", NULL, env);
        _exit(127);
    }
    close(ready[1]);
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 0); /* it runs: the pipe was closed by exec */
    close(ready[0]);
    close(fd);
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void tells_whose_they_are(void **state)
{
    (void)state;
    unsigned ports[4];
    int fds[4];
    pid_t pids[4];
    for (int i = 0; i < 4; i++) {
        fds[i] = listen_on(AF_INET, "127.0.0.1", &ports[i]);
        assert_true(fds[i] >= 0);
        fcntl(fds[i], F_SETFD, FD_CLOEXEC);
    }
    static const char *const variables[] = {"B=2", "ABX_PROCESS_ID=p-marked", "ABX_PROCESS_ID=p-foreign",
                                            "ABX_PROCESS_I=x"};
    for (int i = 0; i < 4; i++) {
        fcntl(fds[i], F_SETFD, 0);
        pids[i] = hold(fds[i], variables[i], true);
    }
    struct ports_entry entries[] = {{pids[0], "p-direct"}, {0, "p-marked"}, {0, "p-other"}};
    const char *listed = listed_now(entries, 3);
    assert_listed(listed, ports[0], "127.0.0.1", "ipv4", pids[0], "sleep", "\"p-direct\"", "false");
    assert_listed(listed, ports[1], "127.0.0.1", "ipv4", pids[1], "sleep", "\"p-marked\"", "false");
    assert_listed(listed, ports[2], "127.0.0.1", "ipv4", pids[2], "sleep", "null", "false");
    assert_listed(listed, ports[3], "127.0.0.1", "ipv4", pids[3], "sleep", "null", "false");
    for (int i = 0; i < 4; i++)
        end(pids[i]);
    assert_null(strstr(listed_now(entries, 3), "\"process\":\"sleep\",\"managed_id\":\"p-direct\""));
}

/* A child of the entry's, without the variable and in a session of its own. */
static void finds_an_entry_by_its_parents(void **state)
{
    (void)state;
    unsigned port;
    int fd = listen_on(AF_INET, "127.0.0.1", &port);
    int ready[2];
    assert_true(fd >= 0);
    assert_int_equal(pipe(ready), 0);
    pid_t entry = fork();
    assert_true(entry >= 0);
    if (entry == 0) {
        pid_t child = hold(fd, "B=2", true);
        if (write(ready[1], &child, sizeof(child)) != sizeof(child))
            _exit(1);
        pause();
        _exit(0);
    }
    pid_t child;
    close(fd);
    assert_int_equal(read(ready[0], &child, sizeof(child)), sizeof(child));
    struct ports_entry entries[] = {{entry, "p-parent"}};
    assert_listed(listed_now(entries, 1), port, "127.0.0.1", "ipv4", child, "sleep", "\"p-parent\"", "false");
    kill(child, SIGKILL);
    end(entry);
    close(ready[0]);
    close(ready[1]);
}

/* Of several that share a socket: the entry, though another has a lower pid. */
static void names_the_entry_first(void **state)
{
    (void)state;
    unsigned port;
    int fd = listen_on(AF_INET, "127.0.0.1", &port), second = dup(fd);
    assert_true(fd >= 0 && second >= 0);
    pid_t first = hold(fd, "B=2", false), entry = hold(second, "B=2", false);
    struct ports_entry entries[] = {{entry, "p-entry"}};
    assert_listed(listed_now(entries, 1), port, "127.0.0.1", "ipv4", entry, "sleep", "\"p-entry\"", "false");
    assert_listed(listed_now(NULL, 0), port, "127.0.0.1", "ipv4", first < entry ? first : entry, "sleep", "null",
                  "false");
    end(first);
    end(entry);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_the_tables, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tells_its_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tells_whose_they_are, set_up, tear_down),
        cmocka_unit_test_setup_teardown(finds_an_entry_by_its_parents, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_the_entry_first, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
