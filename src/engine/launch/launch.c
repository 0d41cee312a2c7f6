/* Small questions about a launch, and its warnings. */
#include "engine/launch/launch.h"

#include <stdio.h>

void launch_vwarn(struct launch *launch, const char *code, const char *fmt, va_list args)
{
        char text[600];
        if (!launch->warnings)
                launch->warnings = arena_alloc(&launch->arena, LAUNCH_WARNINGS_MAX * sizeof *launch->warnings);
        if (launch->warnings_n == LAUNCH_WARNINGS_MAX)
                return;
        vsnprintf(text, sizeof text, fmt, args);
        struct warning *warning = &launch->warnings[launch->warnings_n++];
        SET(warning, warning, code, arena_text(&launch->arena, "%s", code));
        SET(warning, warning, text, arena_text(&launch->arena, "%s", text));
}

void launch_warn(struct launch *launch, const char *code, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        launch_vwarn(launch, code, fmt, args);
        va_end(args);
}

bool launch_wants_tools(const struct tools_request *request)
{
        return request->enabled || request->allow_n || request->client_n || HAS(request, tools_request, replay);
}

/* The runners report the end of the start; a language of the configuration has no runner of ours. */
bool launch_starts_slowly(const struct launch *launch)
{
        return launch->backend == &backend_native && !launch->language->command && !launch->language->starts_fast;
}
