/* Opens the sockets on which the server listens; called by http_listener and ws_listener. */
#include "net/listen_socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

static int listen_on(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;

    if (fd < 0)
        return -1;
    /* SO_KEEPALIVE is inherited by what is accepted: a client whose machine vanished is noticed some day. */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    if (bind(fd, address->ai_addr, address->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        int saved = errno;

        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

int listen_socket_open(const char *host, unsigned port, struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *found;
    char service[8];
    int status, fd = -1, saved = 0;

    snprintf(service, sizeof(service), "%u", port & 0xffff);
    status = getaddrinfo(host, service, &hints, &found);
    if (status != 0)
        return err_set(err, ERR_INTERNAL, "cannot resolve the host %s: %s", host, gai_strerror(status));
    for (const struct addrinfo *address = found; address && fd < 0; address = address->ai_next) {
        fd = listen_on(address);
        saved = errno;
    }
    freeaddrinfo(found);
    if (fd < 0)
        return err_set_errno(err, ERR_INTERNAL, saved, "cannot listen on %s port %u", host, port);
    return fd;
}

unsigned listen_socket_port(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address = {0};
    socklen_t len = sizeof(address);

    if (getsockname(fd, &address.any, &len) < 0)
        return 0;
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}
