/* Names of tools and of their servers. */
#include "tools/tools_private.h"

static bool is_plain(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_made_of(const char *name, const char *others, const char *not_first)
{
        size_t len = strlen(name);
        if (!len || len > TOOL_NAME_MAX || strchr(not_first, name[0]))
                return false;
        for (size_t i = 0; i < len; i++)
                if (!is_plain(name[i]) && !strchr(others, name[i]))
                        return false;
        return true;
}

bool tools_is_server(const char *name)
{
        return is_made_of(name, "_-", "_-");
}

bool tools_is_name(const char *name)
{
        return is_made_of(name, "_-./", "_");
}
