/* Gathers the parameters of a request and has the schema check them; called by the pipeline, and on its pool jobs. */
#include "request/validate.h"

#include "base/utf8.h"
#include "request/problem.h"

#include <string.h>

static int no_memory(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "out of memory for this request");
}

static struct value string_value(const char *text, size_t len)
{
    struct value value = {.type = VALUE_STRING};

    value.as.string.text = text;
    value.as.string.len = len;
    return value;
}

/* Room for the path's parameters, which it fills in, and for `more` members after them. */
static int begin_object(const struct route *route, const struct router_match *match, size_t more, struct arena *arena,
                        struct value *object, struct field_errors *errors)
{
    struct value_member *members = arena_alloc(arena, (match->param_count + more + 1) * sizeof(*members));

    if (!members)
        return -1;
    *object = (struct value){.type = VALUE_OBJECT};
    object->as.object.members = members;
    for (size_t i = 0; i < match->param_count; i++) {
        const struct router_param *param = &match->params[i];
        const struct schema_field *field = schema_field_find(&route->params, param->name.text, param->name.len);
        struct value_member *member = &members[object->as.object.count];

        member->name = arena_strndup(arena, param->name.text, param->name.len);
        member->name_len = param->name.len;
        if (!member->name)
            return -1;
        if (!utf8_valid(param->value.text, param->value.len) && (!field || field->schema.type != SCHEMA_PATH)) {
            field_errors_add(errors, ERR_INVALID_REQUEST, member->name, "is not UTF-8");
            continue;
        }
        member->value = field ? schema_from_text(&field->schema, param->value.text, param->value.len)
                              : string_value(param->value.text, param->value.len);
        object->as.object.count++;
    }
    return 0;
}

static bool from_path(const struct router_match *match, const char *name, size_t name_len)
{
    for (size_t i = 0; i < match->param_count; i++) {
        if (match->params[i].name.len == name_len && memcmp(match->params[i].name.text, name, name_len) == 0)
            return true;
    }
    return false;
}

static int check(const struct route *route, const struct value *object, struct arena *arena, struct value *out,
                 struct field_errors *errors, struct err *err)
{
    if (schema_check(&route->params, object, route->rest, arena, out, errors) < 0 && errors->count == 0)
        return no_memory(err);
    return errors->count > 0 ? problem_from_fields(err, errors) : 0;
}

int validate_query(const struct route *route, const struct router_match *match, const char *query, struct arena *arena,
                   struct value *out, struct field_errors *errors, struct err *err)
{
    struct query_field *fields;
    struct value object;
    size_t count;

    if (target_query(query, arena, &fields, &count, err) < 0) {
        if (err->field[0])
            field_errors_add(errors, err->code, err->field, "%s", err->text);
        return -1;
    }
    if (begin_object(route, match, count, arena, &object, errors) < 0)
        return no_memory(err);
    for (size_t i = 0; i < count; i++) {
        const struct slice *name = &fields[i].name, *value = &fields[i].value;
        const struct schema_field *field = schema_field_find(&route->params, name->text, name->len);
        struct value_member *member = &object.as.object.members[object.as.object.count];

        if (from_path(match, name->text, name->len)) {
            field_errors_add(errors, ERR_INVALID_REQUEST, name->text, "comes from the path");
            continue;
        }
        if (!utf8_valid(value->text, value->len) && (!field || field->schema.type != SCHEMA_PATH)) {
            field_errors_add(errors, ERR_INVALID_REQUEST, name->text, "is not UTF-8");
            continue;
        }
        member->name = name->text;
        member->name_len = name->len;
        member->value =
            field ? schema_from_text(&field->schema, value->text, value->len) : string_value(value->text, value->len);
        object.as.object.count++;
    }
    return check(route, &object, arena, out, errors, err);
}

/* Members of the body that bear the name of a path parameter: with `rest` they are arguments like the others (a command
 * may well have one called "name"), so they join the gathered ones after the check. */
static int rest_append(const struct route *route, const struct value *extra, struct arena *arena, struct value *out)
{
    size_t more = extra->as.object.count, had;
    struct value *rest = value_member(out, route->rest, strlen(route->rest));
    struct value_member *members;

    if (!rest) {
        had = out->as.object.count;
        members = arena_alloc(arena, (had + 1) * sizeof(*members));
        if (!members)
            return -1;
        if (had > 0)
            memcpy(members, out->as.object.members, had * sizeof(*members));
        members[had] = (struct value_member){.name = route->rest, .name_len = strlen(route->rest), .value = *extra};
        out->as.object.members = members;
        out->as.object.count = had + 1;
        return 0;
    }
    had = rest->as.object.count;
    members = arena_alloc(arena, (had + more) * sizeof(*members));
    if (!members)
        return -1;
    if (had > 0)
        memcpy(members, rest->as.object.members, had * sizeof(*members));
    memcpy(members + had, extra->as.object.members, more * sizeof(*members));
    rest->as.object.members = members;
    rest->as.object.count = had + more;
    return 0;
}

int validate_json(const struct route *route, const struct router_match *match, const char *text, size_t len,
                  struct arena *arena, struct value *out, struct field_errors *errors, struct err *err)
{
    struct value body = {.type = VALUE_OBJECT}, object, extra = {.type = VALUE_OBJECT};

    if (len > 0 && value_parse(arena, text, len, &body, err) < 0)
        return -1;
    if (body.type != VALUE_OBJECT)
        return err_set(err, ERR_INVALID_REQUEST, "the body must be a JSON object, not %s", value_type_name(body.type));
    if (begin_object(route, match, body.as.object.count, arena, &object, errors) < 0)
        return no_memory(err);
    extra.as.object.members = arena_alloc(arena, (match->param_count + 1) * sizeof(*extra.as.object.members));
    if (!extra.as.object.members)
        return no_memory(err);
    for (size_t i = 0; i < body.as.object.count; i++) {
        const struct value_member *member = &body.as.object.members[i];

        if (!from_path(match, member->name, member->name_len))
            object.as.object.members[object.as.object.count++] = *member;
        else if (route->rest)
            extra.as.object.members[extra.as.object.count++] = *member;
        else
            field_errors_add(errors, ERR_INVALID_REQUEST, member->name, "comes from the path");
    }
    if (check(route, &object, arena, out, errors, err) < 0)
        return -1;
    if (extra.as.object.count > 0 && rest_append(route, &extra, arena, out) < 0)
        return no_memory(err);
    return 0;
}

int validate_no_query(const char *query, struct arena *arena, struct field_errors *errors, struct err *err)
{
    struct query_field *fields;
    size_t count;

    if (!query || !*query)
        return 0;
    if (target_query(query, arena, &fields, &count, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        field_errors_add(errors, ERR_INVALID_REQUEST, fields[i].name.text,
                         "is not taken from the query, but from the body");
    return count > 0 ? problem_from_fields(err, errors) : 0;
}

int validate_keep_match(struct router_match *match, struct arena *arena)
{
    for (size_t i = 0; i < match->param_count; i++) {
        struct slice *value = &match->params[i].value;

        value->text = arena_strndup(arena, value->text, value->len);
        if (!value->text)
            return -1;
    }
    return 0;
}
