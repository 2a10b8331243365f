/* Says in words for a client what the network, a server or its certificate is to blame for; see git_net.h. */
#include "helper/git_net.h"

#include <stdio.h>
#include <string.h>

/* Mbed TLS 2 looks for the host among the DNS names of a certificate, and leaves its addresses alone. */
static bool is_address(const char *host)
{
    return strchr(host, ':') || host[strspn(host, "0123456789.")] == '\0';
}

/* On one line, whatever a server or a library put into it. */
static void join_lines(char *text)
{
    size_t len = strlen(text);
    while (len > 0 && text[len - 1] == '\n')
        text[--len] = '\0';
    for (char *at = text; *at; at++)
        if (*at == '\n')
            *at = ';';
        else if ((unsigned char)*at < ' ' || *at == 0x7f)
            *at = ' ';
}

/* libgit2 gives all that Mbed TLS has against a certificate, each on a line. */
static int tell_certificate(const char *host, const char *reason, const char *what, struct err *err)
{
    static const struct {
        const char *theirs, *ours;
    } faults[] = {
        {"validity has expired", "has expired"},
        {"starts in the future", "is not valid yet"},
        {"does not match", "is for another host"},
        {"not correctly signed", "is not trusted"},
    };
    char list[128] = "";
    size_t len = 0;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (strstr(reason, faults[i].theirs))
            len += (size_t)snprintf(list + len, sizeof list - len, "%s%s", len > 0 ? ", " : "", faults[i].ours);
    if (len == 0)
        return err_set(err, ERR_GIT_NETWORK, "%s: the certificate of %.80s is not accepted: %s", what, host, reason);
    const char *help = "";
    if (strstr(reason, "not correctly signed"))
        help = " (abxd trusts whom its environment names in GIT_SSL_CAINFO, SSL_CERT_FILE or SSL_CERT_DIR, else the "
               "system's authorities)";
    else if (strstr(reason, "does not match") && is_address(host))
        help = " (addresses count only where they stand as a DNS name)";
    return err_set(err, ERR_GIT_NETWORK, "%s: the certificate of %.80s %s%s", what, host, list, help);
}

/* "SSL error: 0x… - SSL - The connection was reset": the words are for people. */
static int tell_tls(const struct git_net *net, const char *reason, const char *what, struct err *err)
{
    for (const char *dash; strncmp(reason, "SSL", 3) == 0 && (dash = strstr(reason, " - ")) != NULL;)
        reason = dash + 3;
    return err_set(err, ERR_GIT_NETWORK, "%s: TLS with %.80s port %u failed: %s", what, net->host, net->port, reason);
}

int git_net_fail(struct git_net *net, int git_code, const char *what, struct err *err)
{
    const git_error *last = git_error_last();
    int class = last ? last->klass : GIT_ERROR_NONE;
    char reason[640], said[sizeof net->said], text[sizeof err->text];
    snprintf(reason, sizeof reason, "%s", last && last->message ? last->message : "");
    git_fail(err, git_code, what);
    /* What libgit2 reads from a stream that is cut off is no fault of the client's repository. */
    if (err->code == ERR_INVALID_REQUEST && git_code == GIT_ERROR &&
        (class == GIT_ERROR_INDEXER || class == GIT_ERROR_FETCHHEAD || class == GIT_ERROR_ZLIB))
        err->code = ERR_GIT_NETWORK;
    if (err->code != ERR_GIT_NETWORK)
        return -1;
    if (strstr(err->text, "http status code: 404"))
        return err_set(err, ERR_REPOSITORY_NOT_FOUND,
                       "the server knows no such repository, or shows it with credentials only");
    join_lines(reason);
    if (git_code == GIT_ECERTIFICATE)
        return tell_certificate(net->host, reason, what, err);
    if (class == GIT_ERROR_SSL && git_code != GIT_EUSER)
        return tell_tls(net, reason, what, err);
    memcpy(said, net->said, sizeof said);
    join_lines(said);
    if (!said[0])
        return -1;
    memcpy(text, err->text, sizeof text);
    return err_set(err, ERR_GIT_NETWORK, "%s (the server says: %.80s)", text, said);
}
