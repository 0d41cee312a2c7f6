/* How many clients may be connected at once; see connections.h. */
#include "front/service/connections.h"

#include "engine/engine.h"
#include "front/http/http.h"

#include <sys/resource.h>

unsigned service_connections_max(bool local)
{
        struct rlimit limit;
        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return HTTP_CONNECTIONS_MAX;
        size_t all = engine_client_descriptors(limit.rlim_cur), shared = min_u64(all / 4, HTTP_LOCAL_MAX);
        return (unsigned)min_u64(max_u64(local ? shared : all - 2 * shared, 4), HTTP_CONNECTIONS_MAX);
}
