/* Talks with remotes; see the header. Credentials go to one origin only: libgit2 names the URL that it began with also
 * when a redirect led elsewhere, so that where the connection really ends is looked at too. */
#include "helper/git_net.h"

#include "helper/git_stream.h"
#include "helper/git_trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int read_credentials(struct git_net *net, struct err *err)
{
    const cJSON *given = cJSON_GetObjectItemCaseSensitive(net->call->params, "credentials");
    if (!cJSON_IsObject(given))
        return 0;
    const char *username = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(given, "username"));
    const char *password = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(given, "password"));
    const char *token = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(given, "token"));
    if ((token != NULL) == (username != NULL || password != NULL) || (!token && (!username || !password))) {
        err_set(err, ERR_INVALID_REQUEST, "either username and password, or token");
        return err_field(err, "credentials");
    }
    /* Servers that take tokens by Basic want them as the password and let any user name pass. */
    net->username = token ? "x-access-token" : username;
    net->password = token ? token : password;
    return 0;
}

static bool is_trusted_here(const struct git_net *net)
{
    return net->trusts && net->port == net->trusted.port && strcasecmp(net->host, net->trusted.host) == 0;
}

static int on_connect(void *ctx, const char *host, const char *port)
{
    struct git_net *net = ctx;
    struct err err;
    net->encrypted = false;
    net->port = (unsigned)strtoul(port, NULL, 10);
    snprintf(net->host, sizeof(net->host), "%s", host);
    /* libgit2 keeps what it was given, and would send it there as soon as it is asked. */
    if (!net->given || is_trusted_here(net))
        return 0;
    err_set(&err, ERR_GIT_NETWORK, "the server sends on to %.100s port %.10s, which the credentials are not for", host,
            port);
    return git_stop(&err);
}

static int on_certificate(git_cert *cert, int valid, const char *host, void *ctx)
{
    (void)cert, (void)host;
    struct git_net *net = ctx;
    struct err err;
    if (git_trust_check(&err) != 0)
        return git_stop(&err);
    net->encrypted = valid != 0;
    return GIT_PASSTHROUGH; /* as libgit2 found it */
}

static int on_credentials(git_credential **out, const char *url, const char *user_of_url, unsigned allowed, void *ctx)
{
    (void)user_of_url;
    struct git_net *net = ctx;
    struct err err;
    struct git_origin origin;
    if (!net->password)
        err_set(&err, ERR_GIT_NETWORK, "the server wants credentials, and none were given");
    else if (net->given)
        err_set(&err, ERR_GIT_NETWORK, "the server refused the credentials");
    else if (git_origin_of(url, &origin) != 0 || !net->trusts || !git_origin_equal(&origin, &net->trusted) ||
             !is_trusted_here(net) || net->encrypted != net->trusted.https)
        err_set(&err, ERR_GIT_NETWORK, "%.120s port %u wants credentials, and those given are for another server",
                net->host, net->port);
    else if (!(allowed & GIT_CREDENTIAL_USERPASS_PLAINTEXT))
        err_set(&err, ERR_GIT_NETWORK, "the server takes no user name with password");
    else {
        net->given = true;
        return git_credential_userpass_plaintext_new(out, net->username, net->password);
    }
    return git_stop(&err);
}

/* Servers say there why they refuse; progress lines end in CR and are of no use later. */
static int on_said(const char *text, int len, void *ctx)
{
    struct git_net *net = ctx;
    size_t kept = strlen(net->said), room = sizeof(net->said) - 1;
    for (int i = 0; i < len; i++) {
        if (text[i] == '\r') {
            while (kept > 0 && net->said[kept - 1] != '\n')
                kept--;
            continue;
        }
        if (kept == room) {
            memmove(net->said, net->said + room / 2, room - room / 2);
            kept = room - room / 2;
        }
        net->said[kept++] = text[i];
    }
    net->said[kept] = '\0';
    return git_call_late(net->call) ? git_stop(NULL) : 0;
}

static int on_received(const git_indexer_progress *progress, void *ctx)
{
    (void)progress;
    struct git_net *net = ctx;
    return git_call_late(net->call) ? git_stop(NULL) : 0;
}

static int on_packed(int stage, uint32_t current, uint32_t total, void *ctx)
{
    (void)stage, (void)current, (void)total;
    return on_received(NULL, ctx);
}

static int on_sent(unsigned current, unsigned total, size_t bytes, void *ctx)
{
    (void)current, (void)total, (void)bytes;
    return on_received(NULL, ctx);
}

static int on_updated(const char *ref, const git_oid *old, const git_oid *new, void *ctx)
{
    struct git_net *net = ctx;
    if (net->lists)
        git_net_out_update(&net->call->result, ref, old, new);
    return 0;
}

void git_net_callbacks(struct git_net *net, git_remote_callbacks *callbacks)
{
    callbacks->credentials = on_credentials;
    callbacks->certificate_check = on_certificate;
    callbacks->sideband_progress = on_said;
    callbacks->transfer_progress = on_received;
    callbacks->pack_progress = on_packed;
    callbacks->push_transfer_progress = on_sent;
    callbacks->update_tips = on_updated;
    callbacks->payload = net;
}

static int begin(struct git_net *net, struct git_call *call, struct err *err)
{
    net->call = call;
    if (git_stream_install(call->deadline_ns, on_connect, net) != 0)
        return err_set(err, ERR_INTERNAL, "libgit2 takes no streams");
    return read_credentials(net, err);
}

int git_net_init(struct git_net *net, struct git_call *call, const struct git_url *url, struct err *err)
{
    *net = (struct git_net){.trusts = !url->is_path, .trusted = url->origin};
    return begin(net, call, err);
}

/* Whom the stored URL names, before the repository's configuration rewrites it. */
static void trust_stored(struct git_net *net, const char *name)
{
    git_config *config = NULL;
    char key[300];
    const char *url;
    snprintf(key, sizeof(key), "remote.%.250s.url", name);
    if (git_repository_config_snapshot(&config, net->call->repo) == 0 && git_config_get_string(&url, config, key) == 0)
        net->trusts = git_origin_of(url, &net->trusted) == 0;
    git_config_free(config);
}

/* Paths become absolute: libgit2 would take them as relative to wherever this process stands. */
static int check_urls(struct git_net *net, bool push, struct err *err)
{
    const char *pushurl = git_remote_pushurl(net->remote);
    const char *text = push && pushurl ? pushurl : git_remote_url(net->remote);
    struct git_url url;
    if (!text || !*text) {
        err_set(err, ERR_INVALID_REQUEST, "the remote has no URL");
        return err_field(err, "remote");
    }
    if (git_url_read(net->call, "remote", text, net->call->root, true, &url, err) != 0)
        return -1;
    int rc = git_remote_set_instance_url(net->remote, url.text);
    if (rc == 0 && pushurl)
        rc = git_remote_set_instance_pushurl(net->remote, url.text);
    return rc == 0 ? 0 : git_fail(err, rc, "cannot use the remote");
}

int git_net_open(struct git_net *net, struct git_call *call, const char *name, bool push, struct err *err)
{
    *net = (struct git_net){0};
    if (begin(net, call, err) != 0)
        return -1;
    int rc = strlen(name) > 250 ? GIT_EINVALIDSPEC : git_remote_lookup(&net->remote, call->repo, name);
    if (rc == GIT_ENOTFOUND || rc == GIT_EINVALIDSPEC) {
        err_set(err, ERR_REFERENCE_NOT_FOUND, "no such remote: %.150s", name);
        return err_field(err, "remote");
    }
    if (rc != 0)
        return git_fail(err, rc, "cannot look up the remote");
    trust_stored(net, name);
    if (check_urls(net, push, err) == 0)
        return 0;
    git_net_deinit(net);
    return -1;
}

void git_net_deinit(struct git_net *net)
{
    git_remote_free(net->remote);
    net->remote = NULL;
}

int git_net_strings(const struct git_call *call, const char *name, git_strarray *out, struct err *err)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(call->params, name), *item;
    size_t count = cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0;
    git_strarray strings = {.strings = calloc(count + 1, sizeof(char *))};
    if (!strings.strings)
        return err_set(err, ERR_INTERNAL, "out of memory");
    cJSON_ArrayForEach(item, list) if (cJSON_IsString(item)) strings.strings[strings.count++] = item->valuestring;
    *out = strings;
    return 0;
}

static void out_oid(struct json_out *out, const char *name, const git_oid *oid)
{
    if (git_oid_is_zero(oid))
        json_out_null(out, name);
    else
        git_out_oid(out, name, oid);
}

void git_net_out_update(struct json_out *out, const char *ref, const git_oid *old, const git_oid *new)
{
    json_out_open(out, NULL, '{');
    json_out_text(out, "ref", ref);
    out_oid(out, "old", old);
    out_oid(out, "new", new);
    json_out_close(out, '}');
}
