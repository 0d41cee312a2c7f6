/*
 * sources: the sources of tools that the configuration names.
 *
 *   sources                sections mcpServers and tools of the configuration -> sources; start, reload, end
 *   server_config          the entries of the configuration, and MCP servers among them
 *   config_read            values of an entry, checked, with secrets inserted     (no I/O but files with secrets)
 *   config_program, config_defined  programs of entries; tools of the section tools
 *   launcher_client        processes, started by the tool launcher (supervisor/tool_launcher.c)
 *   mcp, mcp_session, mcp_requests  the client of the Model Context Protocol, independent of the transport
 *   mcp_stdio, mcp_http    the transports
 *   defined                tools that the configuration itself defines
 *   http_endpoint, command their kinds: an HTTP endpoint; a program of this host
 *
 * Only programs linked with libcurl have this folder; caisson run has not.
 */
#ifndef TOOLS_SOURCES_SOURCES_H
#define TOOLS_SOURCES_SOURCES_H

#include "tools/tools.h"

struct sources;

/*
 * Read the configuration, insert secrets, and start the launcher if the configuration names programs of this host.
 * Needs the rights of the caller's start.  *ret is the caller's until sources_close().  Errors: CSN_E_CONFIG naming the
 * entry, CSN_E_SYSTEM.
 */
int sources_prepare(const struct settings *settings, struct sources **ret, struct csn_error *err);
/*
 * Add a source for each entry, start the servers and request their tools.  tools must outlive sources.  Errors:
 * CSN_E_CONFIG, CSN_E_SYSTEM.
 */
int sources_open(struct sources *sources, struct tools *tools, struct csn_error *err);
/*
 * Call lost() once the tool launcher has ended or has not answered a request; until sources_close().  Errors: those of
 * loop_watch().
 */
int sources_watch(struct sources *sources, void (*lost)(void *owner), void *owner, struct csn_error *err);
/* After tools_close(), which closes the sources, and before the engine's loop ends.  NULL is fine. */
void sources_close(struct sources *sources);

#endif
