/* From a failure to the answer that clients see: application/problem+json (RFC 9457). */
#ifndef ABX_REQUEST_PROBLEM_H
#define ABX_REQUEST_PROBLEM_H

#include "model/response.h"
#include "model/schema.h"

/* "Not Found"; the reason phrase of any status that we use. */
const char *problem_title(int status);

/* Appends the object. status 0: the code's own. errors may be NULL; its faults become `errors`. */
int problem_write(struct buf *out, int status, const struct err *err, const struct field_errors *errors,
                  const char *request_id) ABX_MUST_USE;

/* Makes *response (initialised by this) the whole answer: status, body, Content-Type and what the status asks for
 * (Retry-After with 429). -1 out of memory: then it is a bare 500. */
int problem_response(struct response *response, int status, const struct err *err, const struct field_errors *errors,
                     const char *request_id);

/* One failure for several faulty fields: code, the first field, and a sentence that counts them. Returns -1. */
int problem_from_fields(struct err *err, const struct field_errors *errors);

#endif
