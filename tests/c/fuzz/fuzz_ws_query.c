/* What comes with a terminal's handshake, as a query, as a list of sub-protocols and as a path: any bytes must be
 * refused, or become what is in range. */
#include "net/ws_query.h"
#include "prim/terminal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
    if (!truth)
        abort();
}

static bool size_is_good(bool given, unsigned count)
{
    return given ? count >= 1 && count <= TERMINAL_SIZE_MAX : count == 0;
}

static void check_query(const char *text, size_t len)
{
    struct ws_query query;
    struct err err;
    char ticket[WS_QUERY_TICKET_MAX];
    ws_query_ticket(text, len, ticket);
    require(memchr(ticket, '\0', sizeof ticket) != NULL);
    if (ws_query_parse(text, len, &query, &err) < 0) {
        require(err.code == ERR_INVALID_REQUEST && err.text[0] != '\0');
        return;
    }
    require(query.since >= TERMINAL_SINCE_ALL);
    require(size_is_good(query.has_cols, query.size.cols) && size_is_good(query.has_rows, query.size.rows));
    require(strcmp(query.ticket, ticket) == 0);
}

static void check_offer(const char *text, size_t len)
{
    static const char wrong = 0x7f;
    struct ws_offer offer;
    ws_offer_parse(text, len, &offer);
    require(offer.any || (!offer.known && offer.token.len == 0));
    bool is_wrong = offer.token.len == 1 && offer.token.data[0] == wrong;
    for (size_t i = 0; i < offer.token.len && !is_wrong; i++)
        require(offer.token.data[i] > ' ' && offer.token.data[i] < 0x7f);
    require(offer.token.len <= len);
    ws_offer_deinit(&offer);
}

static void check_path(const char *text, size_t len)
{
    size_t id_len = 0;
    const char *id = ws_path_id(text, len, &id_len);
    if (id)
        require(id_len >= 1 && id_len <= WS_PATH_ID_MAX && id + id_len == text + len && !memchr(id, '/', id_len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_query((const char *)data, size);
    check_offer((const char *)data, size);
    check_path((const char *)data, size);
    return 0;
}
