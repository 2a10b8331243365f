/* Names of methods; loader and router translate with it. */
#include "model/route.h"

#include <string.h>

static const char *const names[METHOD_COUNT] = {"GET", "POST", "PUT", "PATCH", "DELETE"};

const char *method_name(enum method method)
{
    return names[method];
}

int method_parse(const char *text, enum method *out)
{
    for (int i = 0; i < METHOD_COUNT; i++)
        if (strcmp(names[i], text) == 0) {
            *out = (enum method)i;
            return 0;
        }
    return -1;
}
