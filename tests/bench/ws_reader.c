/* A WebSocket client that costs little itself, for terminals of abxd and of ttyd; run by script/bench against both.
 *
 *   ws_reader bulk KIND PORT TARGET BYTES
 * waits for "ready", types a line, and counts what comes until BYTES are there. Prints bytes and seconds.
 *
 *   ws_reader echo KIND PORT TARGET COUNT PAUSE_US
 * waits for "ready", types a key and waits for its echo, with a pause before each. Prints microseconds: the median and
 * the 99th percentile.
 *
 *   ws_reader idle KIND PORT COUNT [TARGETS_FILE]
 * holds COUNT connections, each to a line's target (ttyd has one for all), and prints "ready" when each has seen that.
 *
 * KIND is abxd or ttyd. ttyd puts a letter before what goes through it: "0" for keys, and for output. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_BYTES = 256 * 1024, HEADER_MAX = 14, CONTROL_MAX = 125, TARGET_MAX = 512 };
enum { OPCODE_CONTINUATION = 0, OPCODE_BINARY = 2, OPCODE_CLOSE = 8, OPCODE_PING = 9, OPCODE_PONG = 10 };

struct client {
    int fd;
    bool is_ttyd;
    unsigned char header[HEADER_MAX]; /* of the frame being read */
    size_t header_len;
    unsigned long long left; /* of its payload */
    int opcode;              /* of the message, where the frame goes on with one */
    int message;             /* the opcode of the message, whatever control frame lies in it */
    int letter;              /* ttyd: the message's first byte; -1 before it */
    char control[CONTROL_MAX];
    size_t control_len;
    unsigned long long output; /* bytes of the terminal so far */
};

static char buffer[BUFFER_BYTES];

static double now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "ws_reader: %s: %s\n", what, strerror(errno));
    exit(1);
}

_Noreturn static void fail_protocol(const char *what)
{
    errno = EPROTO;
    fail(what);
}

static void send_all(int fd, const void *data, size_t len)
{
    const char *at = data;
    while (len > 0) {
        ssize_t sent = send(fd, at, len, MSG_NOSIGNAL);
        if (sent < 0)
            fail("send");
        at += sent;
        len -= (size_t)sent;
    }
}

/* A short frame under a mask of zeros, which leaves the payload as it is. */
static void send_frame(struct client *client, int opcode, const char *payload, size_t len)
{
    unsigned char frame[6 + CONTROL_MAX] = {(unsigned char)(0x80 | opcode), (unsigned char)(0x80 | len)};
    if (len > CONTROL_MAX)
        fail_protocol("a frame too long");
    memcpy(frame + 6, payload, len);
    send_all(client->fd, frame, 6 + len);
}

static void send_key(struct client *client, char key)
{
    const char message[] = {'0', key};
    if (client->is_ttyd)
        send_frame(client, OPCODE_BINARY, message, 2);
    else
        send_frame(client, OPCODE_BINARY, &key, 1);
}

/* Whether the header that is being read is whole; then left, opcode and letter are set. */
static bool header_is_whole(struct client *client)
{
    const unsigned char *header = client->header;
    if (client->header_len < 2)
        return false;
    if ((header[1] & 0x80) != 0)
        fail_protocol("a masked frame from the server");
    size_t length_bytes = header[1] == 126 ? 2 : header[1] == 127 ? 8 : 0;
    if (client->header_len < 2 + length_bytes)
        return false;
    client->left = length_bytes == 0 ? header[1] : 0;
    for (size_t i = 0; i < length_bytes; i++)
        client->left = client->left << 8 | header[2 + i];
    client->opcode = header[0] & 0x0F;
    if (client->opcode == OPCODE_CONTINUATION) {
        client->opcode = client->message;
    } else if (client->opcode < OPCODE_CLOSE) {
        client->message = client->opcode;
        client->letter = -1;
    }
    client->control_len = 0;
    return true;
}

static void take_payload(struct client *client, const char *data, size_t len)
{
    if (client->opcode >= OPCODE_CLOSE) {
        if (client->control_len + len > CONTROL_MAX)
            fail_protocol("a control frame too long");
        memcpy(client->control + client->control_len, data, len);
        client->control_len += len;
    } else if (!client->is_ttyd) {
        client->output += client->opcode == OPCODE_BINARY ? len : 0;
    } else if (len > 0) {
        size_t first = client->letter < 0 ? 1 : 0;
        if (first == 1)
            client->letter = data[0];
        client->output += client->letter == '0' ? len - first : 0;
    }
}

static void end_frame(struct client *client)
{
    if (client->opcode == OPCODE_PING)
        send_frame(client, OPCODE_PONG, client->control, client->control_len);
    else if (client->opcode == OPCODE_CLOSE)
        fail_protocol("closed by the server");
    client->header_len = 0;
}

static void take_bytes(struct client *client, const char *data, size_t len)
{
    while (len > 0) {
        if (client->left == 0) {
            client->header[client->header_len++] = (unsigned char)*data++;
            len--;
            if (!header_is_whole(client))
                continue;
        } else {
            size_t piece = client->left < len ? (size_t)client->left : len;
            take_payload(client, data, piece);
            client->left -= piece;
            data += piece;
            len -= piece;
        }
        if (client->left == 0)
            end_frame(client);
    }
}

static void receive(struct client *client)
{
    ssize_t count = recv(client->fd, buffer, BUFFER_BYTES, 0);
    if (count < 0)
        fail("recv");
    if (count == 0)
        fail_protocol("the connection ended");
    take_bytes(client, buffer, (size_t)count);
}

static void wait_output(struct client *client, unsigned long long until)
{
    while (client->output < until)
        receive(client);
}

static void connect_to(struct client *client, const char *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd < 0 || connect(client->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        fail("connect");
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* Reads the answer byte by byte, so that no frame behind it is taken with it. */
static void read_answer(int fd)
{
    char answer[4096];
    size_t len = 0;
    do {
        if (len + 1 == sizeof(answer) || recv(fd, answer + len, 1, 0) != 1)
            fail_protocol("no answer to the handshake");
        answer[++len] = '\0';
    } while (len < 4 || memcmp(answer + len - 4, "\r\n\r\n", 4) != 0);
    if (strncmp(answer, "HTTP/1.1 101", 12) != 0)
        fail_protocol(answer);
}

static void open_client(struct client *client, const char *kind, const char *port, const char *target)
{
    static const char ttyd_start[] = "{\"AuthToken\":\"\",\"columns\":80,\"rows\":24}";
    memset(client, 0, sizeof(*client));
    client->is_ttyd = strcmp(kind, "ttyd") == 0;
    connect_to(client, port);
    char request[TARGET_MAX + 512];
    int len = snprintf(request, sizeof(request),
                       "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
                       "Sec-WebSocket-Protocol: %s\r\n\r\n",
                       target, port, client->is_ttyd ? "tty" : "abx.pty.v1");
    if (len < 0 || (size_t)len >= sizeof(request))
        fail_protocol("a target too long");
    send_all(client->fd, request, (size_t)len);
    read_answer(client->fd);
    if (client->is_ttyd)
        send_frame(client, OPCODE_BINARY, ttyd_start, sizeof(ttyd_start) - 1);
}

static void measure_bulk(struct client *client, unsigned long long bytes)
{
    wait_output(client, strlen("ready"));
    double begin = now_us();
    send_key(client, '\n');
    wait_output(client, strlen("ready") + bytes);
    printf("%llu %.6f\n", client->output - strlen("ready"), (now_us() - begin) / 1e6);
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void measure_echo(struct client *client, size_t count, useconds_t pause_us)
{
    double *times = calloc(count, sizeof(*times));
    if (times == NULL)
        fail("calloc");
    wait_output(client, strlen("ready"));
    for (size_t i = 0; i < count; i++) {
        usleep(pause_us);
        unsigned long long until = client->output + 1;
        double begin = now_us();
        send_key(client, 'x');
        wait_output(client, until);
        times[i] = now_us() - begin;
    }
    qsort(times, count, sizeof(*times), compare);
    printf("%.1f %.1f\n", times[count / 2], times[count * 99 / 100]);
    free(times);
}

static void open_all(struct client *clients, size_t count, const char *kind, const char *port, const char *targets)
{
    FILE *file = targets != NULL ? fopen(targets, "r") : NULL;
    if (targets != NULL && file == NULL)
        fail(targets);
    for (size_t i = 0; i < count; i++) {
        char target[TARGET_MAX] = "/ws";
        if (file != NULL && fgets(target, sizeof(target), file) == NULL)
            fail_protocol("fewer targets than clients");
        target[strcspn(target, "\n")] = '\0';
        open_client(&clients[i], kind, port, target);
        wait_output(&clients[i], strlen("ready"));
    }
    if (file != NULL)
        fclose(file);
}

_Noreturn static void hold_idle(size_t count, const char *kind, const char *port, const char *targets)
{
    struct client *clients = calloc(count, sizeof(*clients));
    struct pollfd *polled = calloc(count, sizeof(*polled));
    if (clients == NULL || polled == NULL)
        fail("calloc");
    open_all(clients, count, kind, port, targets);
    puts("ready");
    fflush(stdout);
    for (size_t i = 0; i < count; i++)
        polled[i] = (struct pollfd){.fd = clients[i].fd, .events = POLLIN};
    while (poll(polled, count, -1) >= 0)
        for (size_t i = 0; i < count; i++)
            if (polled[i].revents != 0)
                receive(&clients[i]);
    fail("poll");
}

int main(int argc, char **argv)
{
    struct client client;
    if (argc == 6 && strcmp(argv[1], "bulk") == 0) {
        open_client(&client, argv[2], argv[3], argv[4]);
        measure_bulk(&client, strtoull(argv[5], NULL, 10));
    } else if (argc == 7 && strcmp(argv[1], "echo") == 0) {
        open_client(&client, argv[2], argv[3], argv[4]);
        measure_echo(&client, strtoul(argv[5], NULL, 10), (useconds_t)strtoul(argv[6], NULL, 10));
    } else if ((argc == 5 || argc == 6) && strcmp(argv[1], "idle") == 0) {
        hold_idle(strtoul(argv[4], NULL, 10), argv[2], argv[3], argc == 6 ? argv[5] : NULL);
    } else {
        fprintf(stderr, "usage: ws_reader bulk KIND PORT TARGET BYTES\n"
                        "       ws_reader echo KIND PORT TARGET COUNT PAUSE_US\n"
                        "       ws_reader idle KIND PORT COUNT [TARGETS_FILE]\n");
        return 2;
    }
    return 0;
}
