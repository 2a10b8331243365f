/* What every answer gets before it leaves the pipeline: common headers, CORS, and the conditions of files. */
#ifndef ABX_REQUEST_ANSWER_H
#define ABX_REQUEST_ANSWER_H

#include "request/exchange.h"

/* Turns the response in place; a file may become 206, 304, 412 or 416. */
void answer_complete(struct exchange *exchange, struct response *response);

/* A response with these bytes (none where text is NULL); content_type is a literal. -1 out of memory: then it is a bare
 * 500. */
int answer_text(struct response *response, int status, const char *content_type, const char *text);

#endif
