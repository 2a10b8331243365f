/* Where in a text the password of a URL stands, percent-encoded or not. For mask alone. */
#ifndef ABX_PRIM_MASK_URL_H
#define ABX_PRIM_MASK_URL_H

#include <stdbool.h>
#include <stddef.h>

struct mask_url {
    size_t password, end; /* the password's first byte and past its last one; equal: there is none */
    size_t next;          /* where the authority begins: look on there, or at `end` */
    size_t barren;        /* before it, behind `end`, no other URL has a password: keep it between calls (0 at first) */
};

/* Whether a URL's "://" stands at `at` (< len), each character of it as itself or as %XX; then *url tells of it.
 * `cut`: the URL may lack its end, the @ too. All URLs of a text, in order: time in proportion to its length. */
bool mask_url_at(const char *text, size_t len, size_t at, bool cut, struct mask_url *url);

#endif
