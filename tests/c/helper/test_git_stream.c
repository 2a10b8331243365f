/* That talks with remotes end by themselves when their time is over, above TLS and without: nobody stands behind this
 * helper to end it. */
#include "git_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>

/* A port at which the kernel accepts and nobody says anything. */
static int mute_listener(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

static void test_mute_server(void **state)
{
    (void)state;
    static const char *const schemes[] = {"http", "https"};
    unsigned port;
    int fd = mute_listener(&port);
    sh("git init -q -b main r; git -C r commit -q --allow-empty -m one");
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        sh("git -C r config remote.origin.url %s://127.0.0.1:%u/x", schemes[i], port);
        refused("upstream_timeout", "fetch", "r", "'timeout_ms':200");
        refused("upstream_timeout", "push", "r", "'timeout_ms':200");
        refused("upstream_timeout", "pull", "r", "'timeout_ms':200");
    }
    close(fd);
    /* Nobody listens there now, which is told at once, and the helper goes on. */
    refused("git_network", "fetch", "r", "'timeout_ms':60000");
    ask("log", "r", " ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        git_test(test_mute_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
