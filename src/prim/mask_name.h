/* mask_is_secret_name for names of any kind. For mask alone. */
#ifndef ABX_PRIM_MASK_NAME_H
#define ABX_PRIM_MASK_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* `dash_splits`: '-' parts words as '_' does, as in the names of options and headers. */
bool mask_name_is_secret(const char *name, size_t len, bool dash_splits);

#endif
