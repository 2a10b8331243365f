/* How much of its share of the processors this process's control group uses, from one question to the next. */
#ifndef ABX_PRIM_CPU_METER_H
#define ABX_PRIM_CPU_METER_H

#include <stdint.h>

enum { CPU_METER_SPAN_MS = 100 };

struct cpu_meter;

/* NULL out of memory. Any thread may ask. */
struct cpu_meter *cpu_meter_new(void);
void cpu_meter_free(struct cpu_meter *meter); /* NULL is allowed */

struct cpu_use {
    double percent; /* of the quota, 0 to 100: a burst past it shows as 100 */
    double quota;   /* in processors: the group's, but not more than there are; else how many there are */
};
/* What was used since the last question that lies at least CPU_METER_SPAN_MS back; questions that follow one another
 * faster share an answer. Answers 0; or, as long as there is nothing to compare with, after how many ms to ask again.
 * root as in kernel_text.h; now_ns of a monotonic clock. Reads cgroup v2's cpu.stat, v1's cpuacct.usage or /proc/stat;
 * a count that runs backwards (the group was made anew) is no use at all. */
unsigned cpu_meter_ask(struct cpu_meter *meter, const char *root, uint64_t now_ns, struct cpu_use *out);

#endif
