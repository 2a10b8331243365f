/* Tells secret names from others; called by mask and by all that shows variables. */
#include "prim/mask_name.h"

#include "prim/mask.h"
#include "prim/mask_chars.h"

static bool is_key_word(const char *word, size_t len)
{
    return (len == 3 && starts_with(word, len, "KEY")) || ends_with(word, len, "APIKEY") ||
           ends_with(word, len, "ACCESSKEY") || ends_with(word, len, "SECRETKEY") || ends_with(word, len, "PRIVATEKEY");
}

static bool is_secret_part(const char *at, size_t len)
{
    switch (*at | 0x20) {
    case 't':
        return starts_with(at, len, "TOKEN");
    case 's':
        return starts_with(at, len, "SECRET");
    case 'p':
        return starts_with(at, len, "PASSWORD") || starts_with(at, len, "PASSWD");
    case 'c':
        return starts_with(at, len, "CREDENTIAL");
    default:
        return false;
    }
}

bool mask_name_is_secret(const char *name, size_t len, bool dash_splits)
{
    size_t word = 0;
    for (size_t i = 0; i < len; i++) {
        if (is_secret_part(name + i, len - i))
            return true;
        if (name[i] == '_' || (dash_splits && name[i] == '-')) {
            if (is_key_word(name + word, i - word))
                return true;
            word = i + 1;
        }
    }
    return is_key_word(name + word, len - word);
}

bool mask_is_secret_name(const char *name, size_t len)
{
    return mask_name_is_secret(name, len, false);
}
