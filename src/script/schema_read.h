/* Schemas from the tables that abx.params makes. For load_schema.c and tables.c. */
#ifndef ABX_SCRIPT_SCHEMA_READ_H
#define ABX_SCRIPT_SCHEMA_READ_H

#include "model/schema.h"

#include <lua.h>
#include <stdbool.h>

struct schema_reader {
    lua_State *L;
    struct arena *arena; /* everything is made in there: schema_deinit is not for these */
    bool answers;        /* bytes and events may occur */
    void (*on_fault)(void *ctx, const char *where, const char *text);
    void *ctx;
    bool failed;
};

/* The schema at index; `where` names it in faults. */
void schema_read(struct schema_reader *reader, int index, const char *where, struct schema *out);
/* A table name -> schema, as the fields of a SCHEMA_OBJECT. */
void schema_read_fields(struct schema_reader *reader, int index, const char *where, struct schema *out);

#endif
