/* Keys of a repository's configuration that name files anywhere: overridden where they lead out of the base. */
#ifndef ABX_HELPER_GIT_OVERRIDE_H
#define ABX_HELPER_GIT_OVERRIDE_H

#include "helper/git.h"

/* Looks at core.excludesFile, core.attributesFile, core.hooksPath and mailmap.file of the opened repository; those that
 * lead out count as /dev/null from then on, as long as it is open. Nothing is written. */
int git_override_config(const struct git_call *call, struct err *err) ABX_MUST_USE;

#endif
