/* The known name that somebody may have meant who wrote an unknown one. For the messages of script/ and its bindings.
 */
#ifndef ABX_SCRIPT_NEAREST_H
#define ABX_SCRIPT_NEAREST_H

struct nearest {
    const char *written, *name; /* both borrowed; name is NULL until one is near enough */
    int steps;
    char hint[64];
};

void nearest_init(struct nearest *nearest, const char *written);
/* At most two letters may be changed, added or left out. Of equally near ones the first of the alphabet stays. */
void nearest_offer(struct nearest *nearest, const char *known);
/* " (did you mean 'status'?)", or "". Lives in *nearest. */
const char *nearest_hint(struct nearest *nearest);

#endif
