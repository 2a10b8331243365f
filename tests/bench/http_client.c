/* A small HTTP client that costs little itself, for what wrk does not measure; run by script/bench against both sides.
 *   http_client latency PORT COUNT METHOD TARGET BODY [PAUSE_US]   the same request on one connection, with a pause
 * after each answer; microseconds: median, 99th percentile http_client transfer PORT METHOD TARGET BODY   one request,
 * its answer thrown away; status, bytes and seconds A BODY of @MIB stands for so many MiB of zeros; any other is sent
 * as JSON. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_BYTES = 256 * 1024 };
static char buffer[BUFFER_BYTES];

static double now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "http_client: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int open_connection(const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        fail("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

static void send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(fd, data, len, MSG_NOSIGNAL);
        if (sent < 0)
            fail("send");
        data += sent;
        len -= (size_t)sent;
    }
}

static size_t body_len(const char *body)
{
    return body[0] == '@' ? strtoull(body + 1, NULL, 10) << 20 : strlen(body);
}

static size_t write_head(char *head, size_t cap, const char *port, const char *method, const char *target,
                         const char *body, const char *connection)
{
    const char *type = body[0] == '@' ? "application/octet-stream" : "application/json";
    int len = snprintf(head, cap,
                       "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: %s\r\nContent-Type: %s\r\n"
                       "Content-Length: %zu\r\n\r\n",
                       method, target, port, connection, type, body_len(body));
    if (len < 0 || (size_t)len >= cap) {
        errno = ENAMETOOLONG;
        fail("request");
    }
    return (size_t)len;
}

/* Reads an answer with a Content-Length to its end. */
static void read_answer(int fd)
{
    size_t have = 0, want = 0;
    do {
        ssize_t count = recv(fd, buffer + have, BUFFER_BYTES - 1 - have, 0);
        if (count <= 0)
            fail("recv");
        have += (size_t)count;
        buffer[have] = '\0';
        char *end = want == 0 ? strstr(buffer, "\r\n\r\n") : NULL;
        char *length = end != NULL ? strcasestr(buffer, "\r\nContent-Length:") : NULL;
        if (end != NULL && length == NULL) {
            errno = EPROTO;
            fail("an answer without a length");
        }
        if (end != NULL)
            want = (size_t)(end + 4 - buffer) + strtoul(length + strlen("\r\nContent-Length:"), NULL, 10);
    } while (want == 0 || have < want);
    if (strncmp(buffer, "HTTP/1.1 20", 11) != 0) {
        errno = EPROTO;
        fail(buffer);
    }
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void measure_latency(const char *port, size_t count, const char *method, const char *target, const char *body,
                            useconds_t pause_us)
{
    char request[4096];
    size_t len = write_head(request, sizeof(request) - strlen(body), port, method, target, body, "keep-alive");
    memcpy(request + len, body, strlen(body));
    len += strlen(body);
    double *times = calloc(count, sizeof(*times));
    if (times == NULL)
        fail("calloc");
    int fd = open_connection(port);
    for (size_t i = 0; i < count; i++) {
        double begin = now_us();
        send_all(fd, request, len);
        read_answer(fd);
        times[i] = now_us() - begin;
        if (pause_us > 0)
            usleep(pause_us);
    }
    close(fd);
    qsort(times, count, sizeof(*times), compare);
    printf("%.1f %.1f\n", times[count / 2], times[count * 99 / 100]);
    free(times);
}

static void measure_transfer(const char *port, const char *method, const char *target, const char *body)
{
    char head[4096];
    size_t len = write_head(head, sizeof(head), port, method, target, body, "close");
    double begin = now_us();
    int fd = open_connection(port);
    send_all(fd, head, len);
    if (body[0] == '@') {
        for (size_t left = body_len(body), piece; left > 0; left -= piece) {
            piece = left < BUFFER_BYTES ? left : BUFFER_BYTES;
            send_all(fd, buffer, piece);
        }
    } else {
        send_all(fd, body, strlen(body));
    }
    unsigned long long total = 0;
    int status = 0;
    ssize_t count;
    while ((count = recv(fd, buffer, BUFFER_BYTES, 0)) > 0) {
        if (total == 0)
            sscanf(buffer, "HTTP/1.1 %d", &status);
        total += (unsigned long long)count;
    }
    if (count < 0)
        fail("recv");
    close(fd);
    printf("%d %llu %.6f\n", status, total, (now_us() - begin) / 1e6);
}

int main(int argc, char **argv)
{
    if ((argc == 7 || argc == 8) && strcmp(argv[1], "latency") == 0) {
        useconds_t pause_us = argc == 8 ? (useconds_t)strtoul(argv[7], NULL, 10) : 0;
        measure_latency(argv[2], strtoul(argv[3], NULL, 10), argv[4], argv[5], argv[6], pause_us);
    } else if (argc == 6 && strcmp(argv[1], "transfer") == 0) {
        measure_transfer(argv[2], argv[3], argv[4], argv[5]);
    } else {
        fprintf(stderr, "usage: http_client latency PORT COUNT METHOD TARGET BODY [PAUSE_US]\n"
                        "       http_client transfer PORT METHOD TARGET BODY\n");
        return 2;
    }
    return 0;
}
