/* From a response as plain data to libmicrohttpd's. */
#ifndef ABX_NET_HTTP_REPLY_H
#define ABX_NET_HTTP_REPLY_H

#include "net/http_connection.h"

/* Queues connection->response, which must live until the request is completed. close: the connection ends after it.
 * MHD_NO where memory is out: libmicrohttpd then closes. */
enum MHD_Result http_reply_queue(struct http_connection *connection, bool close);

#endif
