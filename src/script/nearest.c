/* The known name that is nearest to an unknown one. Called wherever script/ refuses a key. */
#include "script/nearest.h"

#include <stdio.h>
#include <string.h>

enum { TOO_FAR = 3, LONGEST = 24 };

/* How many letters must be changed, added or left out; TOO_FAR stands for many. */
static int distance(const char *a, const char *b)
{
    size_t a_len = strlen(a), b_len = strlen(b);
    if (a_len > LONGEST || b_len > LONGEST)
        return TOO_FAR;
    int row[LONGEST + 1];
    for (size_t j = 0; j <= b_len; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= a_len; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= b_len; j++) {
            int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            int shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < shift ? change : shift;
        }
    }
    return row[b_len] < TOO_FAR ? row[b_len] : TOO_FAR;
}

void nearest_init(struct nearest *nearest, const char *written)
{
    *nearest = (struct nearest){.written = written, .steps = TOO_FAR};
}

void nearest_offer(struct nearest *nearest, const char *known)
{
    int steps = distance(known, nearest->written);
    if (steps > nearest->steps || steps == TOO_FAR)
        return;
    if (steps == nearest->steps && strcmp(known, nearest->name) > 0)
        return;
    nearest->steps = steps;
    nearest->name = known;
}

const char *nearest_hint(struct nearest *nearest)
{
    nearest->hint[0] = '\0';
    if (nearest->name != NULL)
        snprintf(nearest->hint, sizeof(nearest->hint), " (did you mean '%s'?)", nearest->name);
    return nearest->hint;
}
