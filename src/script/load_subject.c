/* What a fault is about, and the line where it stands: looked up in the text, since Lua keeps no lines of tables.
 * Called by the other load_*.c files. */
#include "script/load.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int line_of(const struct source *source, const char *where)
{
    int line = 1;
    for (const char *at = source->text; at < where; at++)
        line += *at == '\n';
    return line;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether `key =` stands right before `at`. */
static bool follows_key(const struct loader *loader, const char *at, const char *key)
{
    const char *start = loader->source.text;
    size_t len = strlen(key);
    while (at > start && isspace((unsigned char)at[-1]))
        at--;
    if (at == start || *--at != '=')
        return false;
    while (at > start && isspace((unsigned char)at[-1]))
        at--;
    return (size_t)(at - start) >= len && strncmp(at - len, key, len) == 0 &&
           (at - len == start || !is_word(at[-(ptrdiff_t)len - 1]));
}

/* +1 where a brace opens, -1 where one closes. Those in strings are taken to come in pairs, as in "/a/{b}". */
static int step(char c)
{
    return (c == '{') - (c == '}');
}

static const char *opening_brace(const struct loader *loader, const char *at)
{
    for (int depth = 0; at > loader->source.text; at--) {
        depth += step(*at);
        if (depth == 1)
            break;
    }
    return at;
}

static const char *closing_brace(const char *at)
{
    int depth = 0;
    for (; *at != '\0'; at++) {
        depth += step(*at);
        if (depth == 0 && *at == '}')
            break;
    }
    return at;
}

void load_subject_file(struct loader *loader, const char *what)
{
    struct subject *subject = &loader->subject;
    const char *text = loader->source.text;
    *subject = (struct subject){.line = 1, .first = text, .end = text + strlen(text)};
    snprintf(subject->what, sizeof(subject->what), "%s", what);
}

bool load_subject_find(struct loader *loader, const char *what, const char *key, const char *text, int nth)
{
    size_t len = strlen(text);
    for (const char *at = loader->source.text; len > 0 && (at = strstr(at, text)) != NULL; at += len) {
        bool quoted = at > loader->source.text && (at[-1] == '"' || at[-1] == '\'') && at[len] == at[-1];
        if (!quoted || !follows_key(loader, at - 1, key) || --nth > 0)
            continue;
        struct subject *subject = &loader->subject;
        *subject = (struct subject){.line = line_of(&loader->source, at), .first = opening_brace(loader, at)};
        subject->end = closing_brace(subject->first);
        snprintf(subject->what, sizeof(subject->what), "%s", what);
        return true;
    }
    return false;
}

static bool is_key(const struct source *source, const char *at, const char *key)
{
    size_t len = strlen(key);
    if ((at > source->text && is_word(at[-1])) || strncmp(at, key, len) != 0)
        return false;
    const char *after = at + len;
    after += strspn(after, "\"'] \t");
    return after[0] == '=' && after[1] != '=';
}

/* The first `key =` from `first` on; with own, only among the members of the table that begins there. */
static const char *find_key(const struct source *source, const char *first, const char *end, const char *key, bool own)
{
    int depth = 0;
    for (const char *at = first; key[0] != '\0' && at < end; at++) {
        depth += step(*at);
        if ((!own || depth == 1) && is_key(source, at, key))
            return at;
    }
    return NULL;
}

static void add_fault(struct loader *loader, int line, const char *fmt, va_list args) ABX_PRINTF(3, 0);
static void add_fault(struct loader *loader, int line, const char *fmt, va_list args)
{
    char text[400];
    vsnprintf(text, sizeof(text), fmt, args);
    load_fault(loader, line, "%s: %s", loader->subject.what, text);
}

void load_fault_at(struct loader *loader, const char *key, const char *fmt, ...)
{
    const struct subject *subject = &loader->subject;
    const char *at = key ? find_key(&loader->source, subject->first, subject->end, key, true) : NULL;
    va_list args;
    va_start(args, fmt);
    add_fault(loader, at ? line_of(&loader->source, at) : subject->line, fmt, args);
    va_end(args);
}

void load_fault_in(struct loader *loader, const char *outer, const char *key, const char *fmt, ...)
{
    const struct subject *subject = &loader->subject;
    const char *table = find_key(&loader->source, subject->first, subject->end, outer, true);
    const char *at = find_key(&loader->source, table ? table : subject->first, subject->end, key, false);
    va_list args;
    at = at ? at : table;
    va_start(args, fmt);
    add_fault(loader, at ? line_of(&loader->source, at) : subject->line, fmt, args);
    va_end(args);
}
