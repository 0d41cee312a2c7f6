/* Headers of requests; see http_headers.h. */
#include "net/http_headers.h"

bool header_lists(const char *list, const char *member)
{
        size_t len = strlen(member);
        for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',') {
                at += strspn(at, " \t");
                if (strncasecmp(at, member, len) == 0 && (!at[len] || strchr(" \t;,", at[len])))
                        return true;
        }
        return false;
}

bool header_range(const char *text, uint64_t *ret_offset, uint64_t *ret_length)
{
        char *end;
        if (!text || strncmp(text, "bytes=", 6) != 0 || text[6] < '0' || text[6] > '9')
                return false;
        unsigned long long from = strtoull(text + 6, &end, 10), to = UINT64_MAX;
        if (*end++ != '-')
                return false;
        if (*end >= '0' && *end <= '9')
                to = strtoull(end, &end, 10);
        if (*end || to < from)
                return false;
        *ret_offset = min_u64(from, INT64_MAX);
        *ret_length = to == UINT64_MAX ? UINT64_MAX : to - from + 1;
        return true;
}

bool header_event(const char *text, uint64_t *ret)
{
        char *end;
        if (text[0] < '0' || text[0] > '9')
                return false;
        *ret = strtoull(text, &end, 10);
        return !*end;
}

const char *header_bearer(const char *authorization)
{
        if (strncasecmp(authorization, "Bearer ", 7) != 0)
                return authorization;
        return authorization + 7 + strspn(authorization + 7, " ");
}
