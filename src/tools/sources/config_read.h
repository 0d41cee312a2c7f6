/*
 * Reading the entries of the configuration; shared by server_config.c (MCP servers), config_defined.c (tools),
 * config_program.c (programs of both) and config_read.c (values).
 *
 * Functions with a reader return 0, or -CSN_E_CONFIG with entry and key in r->err.  *ret keeps its value without the
 * key.
 */
#ifndef TOOLS_SOURCES_CONFIG_READ_H
#define TOOLS_SOURCES_CONFIG_READ_H

#include "tools/sources/server_config.h"

struct config_reader {
        const struct settings *settings;
        struct registry *registry;
        struct arena *arena;
        struct csn_error *err;
        bool strict;                       /* the file of settings: an unknown key is an error */
        char where[300];                   /* place of the entry, as "mcpServers.github" */
};

/* Set the error of a key of the entry; NULL: of the entry itself. */
int config_wrong(struct config_reader *r, const char *key, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* ---- values (config_read.c) ---- */

int config_text(struct config_reader *r, json_t *json, const char *key, const char **ret);
int config_bool(struct config_reader *r, json_t *json, const char *key, bool *ret);
int config_ms(struct config_reader *r, json_t *json, const char *key, uint64_t *ret);
int config_size(struct config_reader *r, json_t *json, const char *key, uint64_t max, uint64_t *ret);
/* A list of texts, or one text. */
int config_texts(struct config_reader *r, json_t *json, const char *key, struct texts *ret);
/* Pairs of name and value, each as one text with `between`. */
int config_pairs(struct config_reader *r, json_t *json, const char *key, const char *between, struct texts *ret);
void config_add_text(struct config_reader *r, struct texts *list, const char *text);
/* Unknown keys are errors in the file of settings, else lines of the log. */
int config_check_keys(struct config_reader *r, json_t *json, const char *const *known);
/* A copy of the value with ${env:NAME} and ${file:/path} replaced.  *ret is the caller's reference. */
int config_put_secrets(struct config_reader *r, const char *key, json_t *json, json_t **ret);

/* ---- programs (config_program.c) ---- */

/* User, folders, environment and memory of a program; the caller sets argv, and flags before the call. */
int config_program(struct config_reader *r, json_t *json, struct launch_program *program);
/* Append a program to the launcher's table; *ret is its index. */
int config_add_program(struct config_reader *r, const struct launch_program *program, size_t *ret);

/* ---- tools (config_defined.c) ---- */

/* An entry of the section tools. */
int config_defined_tools(struct config_reader *r, json_t *json, struct server *server);

#endif
