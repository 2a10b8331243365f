/* A worker for the tests of prim/worker: it does what each method's name says, with the least that the protocol needs.
 * Parameters are numbers and words that are found by their names, as the tests write them without blanks. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CHANNEL = 3, BIG_BYTES = 20 * 1024 * 1024, LONG_BYTES = 40 * 1024 * 1024 };

static void send_all(const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(CHANNEL, bytes, len, MSG_NOSIGNAL);
        if (sent <= 0)
            exit(0);
        bytes += sent;
        len -= (size_t)sent;
    }
}

static void send_text(const char *text)
{
    send_all(text, strlen(text));
}

static void sleep_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void answer(long id, const char *result)
{
    char head[64];
    snprintf(head, sizeof(head), "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":", id);
    send_text(head);
    send_text(result);
    send_text("}\n");
}

static long number(const char *line, const char *name)
{
    const char *at = strstr(line, name);
    return at != NULL ? strtol(at + strlen(name), NULL, 10) : 0;
}

/* The value of a string parameter, which holds no escapes. */
static const char *word(const char *line, const char *name, char out[512])
{
    const char *at = strstr(line, name);
    size_t len = at != NULL ? strcspn(at + strlen(name), "\"") : 0;
    snprintf(out, 512, "%.*s", (int)len, at != NULL ? at + strlen(name) : "");
    return out;
}

static void many_bytes(long id, size_t len)
{
    char *text = malloc(len + 3);
    memset(text, 'x', len + 2);
    text[0] = text[len + 1] = '"';
    text[len + 2] = '\0';
    answer(id, text);
    free(text);
}

static void notices(long id, long count)
{
    for (long i = 0; i < count; i++) {
        char line[128];
        snprintf(line, sizeof(line), "{\"method\":\"result\",\"params\":{\"n\":%ld,\"id\":%ld}}\n", i, id);
        send_text(line);
    }
    answer(id, "{\"sent\":true}");
}

/* HOME, TMPDIR, their modes, the working directory, and one line of /proc/self/limits each for memory and descriptors.
 */
static void tell_surroundings(long id)
{
    char text[4096], cwd[1024] = "", line[256], data[64] = "", files[64] = "";
    struct stat home = {0}, parent = {0};
    const char *home_path = getenv("HOME");
    stat(home_path, &home);
    snprintf(text, sizeof(text), "%s/..", home_path);
    stat(text, &parent);
    if (getcwd(cwd, sizeof(cwd)) == NULL)
        cwd[0] = '\0';
    FILE *limits = fopen("/proc/self/limits", "r");
    while (limits != NULL && fgets(line, sizeof(line), limits) != NULL) {
        sscanf(line, "Max data size %63s", data);
        sscanf(line, "Max open files %63s", files);
    }
    if (limits != NULL)
        fclose(limits);
    snprintf(text, sizeof(text),
             "{\"home\":\"%s\",\"tmp\":\"%s\",\"mode\":%o,\"above\":%o,\"cwd\":\"%s\",\"data\":\"%s\",\"files\":\"%s\","
             "\"xdg\":%s,\"own\":\"%s\",\"id\":\"%s\"}",
             home_path, getenv("TMPDIR"), home.st_mode & 07777u, parent.st_mode & 07777u, cwd, data, files,
             getenv("XDG_CONFIG_HOME") != NULL ? "true" : "false", getenv("CLIENT") != NULL ? getenv("CLIENT") : "",
             getenv("ABX_PROCESS_ID"));
    answer(id, text);
}

static void fill_home(long id)
{
    answer(id, system("mkdir -p \"$HOME/a/b\" \"$TMPDIR/c\" && echo x > \"$HOME/a/b/f\" && ln -s / \"$HOME/a/root\" &&"
                      "chmod 0 \"$HOME/a/b\" && chmod 0500 \"$HOME/a\"") == 0
                   ? "true"
                   : "false");
}

static void obey(const char *line)
{
    char method[512], text[512];
    long id = number(line, "\"id\":"), ms = number(line, "\"ms\":");
    word(line, "\"method\":\"", method);
    if (strcmp(method, "echo") == 0) {
        const char *params = strstr(line, "\"params\":") + strlen("\"params\":");
        char *copy = strndup(params, strlen(params) - strlen("}\n"));
        sleep_ms(ms);
        answer(id, copy);
        free(copy);
    } else if (strcmp(method, "refuse") == 0) {
        snprintf(text, sizeof(text), "{\"id\":%ld,\"error\":{\"code\":-32000,\"message\":\"no\"}}\n", id);
        send_text(text);
    } else if (strcmp(method, "notices") == 0) {
        notices(id, number(line, "\"count\":"));
    } else if (strcmp(method, "big") == 0) {
        many_bytes(id, BIG_BYTES);
    } else if (strcmp(method, "too_long") == 0) {
        many_bytes(id, LONG_BYTES);
    } else if (strcmp(method, "hang") == 0) {
        for (;;)
            sleep_ms(1000);
    } else if (strcmp(method, "exit") == 0) {
        fprintf(stderr, "first line\n%s\n", word(line, "\"say\":\"", text));
        exit((int)number(line, "\"code\":"));
    } else if (strcmp(method, "throw") == 0) { /* as Node ends */
        fputs("file:///x.mjs:1\nthrow new Error('it is the matter')\n      ^\n\nError: it is the matter\n    at "
              "x.mjs:1:7\n"
              "    at ModuleJob.run (node:internal/modules:263:25) {\n  code: 'E'\n}\n\nNode.js v20.20.2\n",
              stderr);
        exit(1);
    } else if (strcmp(method, "crash") == 0) {
        kill(getpid(), SIGSEGV);
    } else if (strcmp(method, "answer_and_die") == 0) {
        answer(id, "\"last words\"");
        _exit(7);
    } else if (strcmp(method, "garbage") == 0) {
        send_text(word(line, "\"text\":\"", text));
        send_text("\n");
        answer(id, "\"too late\"");
    } else if (strcmp(method, "strangers") == 0) {
        send_text("{\"id\":99999,\"result\":1}\n{\"method\":\"result\",\"params\":{\"id\":88888}}\n");
        answer(id, "\"mine\"");
    } else if (strcmp(method, "pieces") == 0) {
        snprintf(text, sizeof(text), "{\"id\":%ld,\"result\":\"bit by bit\"}\n", id);
        for (const char *at = text; *at != '\0'; at++) {
            send_all(at, 1);
            sleep_ms(1);
        }
    } else if (strcmp(method, "close") == 0) {
        close(CHANNEL);
        for (;;)
            sleep_ms(1000);
    } else if (strcmp(method, "deaf") == 0) {
        shutdown(CHANNEL, SHUT_RD);
        answer(id, "\"what?\"");
        for (;;)
            sleep_ms(1000);
    } else if (strcmp(method, "surroundings") == 0) {
        tell_surroundings(id);
    } else if (strcmp(method, "fill") == 0) {
        fill_home(id);
    } else if (strcmp(method, "print") == 0) {
        printf("%s", word(line, "\"say\":\"", text));
        fflush(stdout);
        answer(id, "true");
    } else if (strcmp(method, "orphan") == 0) {
        answer(id, system("sleep 1000 >/dev/null 2>&1 & echo $! > \"$HOME/pid\"") == 0 ? "true" : "false");
    }
}

/* Asked to stop: with an argument "stubborn" it does not, else the call that sleeps is answered. Only calls of the
 * method "wait" look for that. */
static void wait_for_cancel(FILE *in, long id, bool stubborn)
{
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, in) > 0) {
        if (strstr(line, "\"cancel\"") == NULL || number(line, "\"id\":") != id || stubborn)
            continue;
        answer(id, "\"cancelled\"");
        free(line);
        return;
    }
    exit(0);
}

/* Answers the second of two calls first: for workers that take several at once. */
static void swap_answers(FILE *in, long first)
{
    char *line = NULL;
    size_t cap = 0;
    if (getline(&line, &cap, in) > 0) {
        answer(number(line, "\"id\":"), "\"second\"");
        answer(first, "\"first\"");
    }
    free(line);
}

int main(int argc, char **argv)
{
    bool stubborn = argc > 1 && strcmp(argv[1], "stubborn") == 0;
    FILE *in = fdopen(CHANNEL, "r");
    char *line = NULL;
    size_t cap = 0;
    if (in == NULL)
        return 9;
    while (getline(&line, &cap, in) > 0) {
        long id = number(line, "\"id\":");
        if (strstr(line, "\"method\":\"wait\"") != NULL)
            wait_for_cancel(in, id, stubborn);
        else if (strstr(line, "\"method\":\"swap\"") != NULL)
            swap_answers(in, id);
        else
            obey(line);
    }
    free(line);
    while (stubborn)
        sleep_ms(1000);
    return 0;
}
