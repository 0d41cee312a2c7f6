/*
 * sources: where tools come from, by the configuration.
 *
 *   sources    mcpServers and tools of the configuration into sources; start, reload, end
 *   server     one entry: what it says, checked, with its secrets in place          (no I/O but files that hold secrets)
 *   launch     processes for it, by the launcher (supervisor/tool_launcher.c)
 *   mcp        the Model Context Protocol as its client, whatever carries it
 *   mcp_stdio, mcp_http   what carries it
 *   sse        a stream of events into messages                                     (pure, fuzzed)
 *   defined    tools that the configuration itself defines
 *   endpoint, command     an HTTP endpoint; a program of this host
 *
 * A program that has libcurl has this part of the folder; caisson run does without.
 */
#ifndef TOOLS_SOURCES_H
#define TOOLS_SOURCES_H

#include "tools/tools.h"

struct sources;

/*
 * Read the configuration, put secrets into place, and start the launcher if programs of this host are needed.  All that takes
 * rights.  Errors: CSN_E_CONFIG naming the entry, CSN_E_SYSTEM.
 */
int sources_prepare(const struct settings *settings, struct sources **ret, struct csn_error *err);
/* Add a source for each entry; servers are started and asked for their tools.  tools has to live as long. */
int sources_open(struct sources *sources, struct tools *tools, struct csn_error *err);
/* After tools_close(), which closes the sources, and before the engine's loop ends.  NULL is fine. */
void sources_close(struct sources *sources);

#endif
