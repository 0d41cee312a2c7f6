/* The HTTP fronts of the daemon: a line for each.  OpenAPI and the page /docs follow this order. */
#include "front/daemon/fronts.h"

#define FRONTS(X) \
        X(api_front) \
        X(grading_front) \
        X(tool_call_front) \
        X(sandboxfusion_front) \
        X(piston_front) \
        X(judge0_front) \
        X(scalebox_front) \
        X(nemo_front) \
        X(reward_front) \
        X(watch_front) \
        X(librechat_front) \
        X(mcp_front) \
        X(e2b_front) \
        X(web_front) \
        X(gateway_front) \
        X(operations_front)

#define DECLARE(name) extern const struct front name;
#define ADDRESS(name) &(name),

FRONTS(DECLARE)

const struct front *const daemon_fronts[] = { FRONTS(ADDRESS) NULL };
