/* What of a text is secret: names of variables, passwords in URLs. For environments, command lines, logs, problems. */
#ifndef ABX_PRIM_MASK_H
#define ABX_PRIM_MASK_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/* What stands for something secret. */
#define MASK_TEXT "***"

/* Whether a name tells of a secret (contract, section 6): it contains TOKEN, SECRET, PASSWORD, PASSWD or CREDENTIAL, or
 * one of its words, split at `_`, is KEY or ends in APIKEY, ACCESSKEY, SECRETKEY or PRIVATEKEY. In any case. */
bool mask_is_secret_name(const char *name, size_t len);

/* These append a text with what is secret in it as "***". They take any bytes (a NUL counts as a blank), cut no
 * character, take time in proportion to len and never wait. 0, or -1 where the buffer's maximum or memory does not do:
 * what it got then is no whole text. What is hidden:
 *   scheme://user:PASSWORD@      up to the last @ before / ? # or a blank; each of : / @ percent-encoded or not
 *   NAME=VALUE, --name=VALUE     where the name is secret ('-' counts as '_'); NAME[x]= and NAME+= too; a value ends as
 *                                a shell's word does, with what $( ) ` ` ( ) and quotes enclose
 *   --name VALUE
 *   "NAME": "VALUE"              members of JSON and Python, quotes escaped or not; numbers, [...] and {...} too
 *   NAME: VALUE                  a header: its name stands behind -H or --header, just behind a quote, or first in a
 *                                word of an argv; up to that word's end. Elsewhere it is prose and stays, as in
 *                                `token: expected ','` and `field "token": is required`
 *   Authorization: Bearer VALUE  (Basic and Token too), anywhere
 * When in doubt they hide more. */
int mask_text(struct buf *out, const char *text, size_t len) ABX_MUST_USE;
/* The same for a sentence that may quote a URL cut short, before its @: in scheme://user:REST, REST is hidden unless it
 * is a port. */
int mask_cut_text(struct buf *out, const char *text, size_t len) ABX_MUST_USE;
/* One word of an argv. *secret_follows (false before the first one) carries that the word before was an option with a
 * secret name. */
int mask_word(struct buf *out, const char *word, size_t len, bool *secret_follows) ABX_MUST_USE;
/* The passwords in URLs alone, encoded ones too. */
int mask_urls(struct buf *out, const char *text, size_t len) ABX_MUST_USE;
/* False where mask_text would surely change nothing: a few searches for single bytes. */
bool mask_may_change(const char *text, size_t len);

#endif
