/*
 * YAML by libyaml: the only maintained configuration library for C in Debian (TOML libraries are not packaged or
 * not maintained there).  Only its event parser is used, for a small part of the language.
 */
#include "model/settings.h"

#include <strings.h>
#include <yaml.h>

#define SIZE_MAX_YAML MIB
#define DEPTH_MAX 16
#define NODES_MAX 5000

struct reader {
        yaml_parser_t parser;
        const char *name;
        struct arena *arena;
        struct csn_error *err;
        unsigned nodes;
};

static int wrong(struct reader *r, unsigned line, const char *what)
{
        return err_set(r->err, CSN_E_CONFIG, 0, "%s:%u: %s", r->name, line, what);
}

static int next(struct reader *r, yaml_event_t *event)
{
        if (!yaml_parser_parse(&r->parser, event)) {
                const char *problem = r->parser.problem ? r->parser.problem : "not YAML";
                bool is_token = strstr(problem, "cannot start any token");
                return err_set(r->err, CSN_E_CONFIG, 0, "%s:%u: %s%s", r->name,
                        (unsigned)r->parser.problem_mark.line + 1, problem,
                        is_token ? " (a tab? YAML indents with blanks; or a text that needs quotes)" : "");
        }
        return 0;
}

static int read_node(struct reader *r, yaml_event_t *event, unsigned depth, struct yaml_node *ret);

/* Texts only: a plain "null" or "~" would be a text too, but is never meant as a word. */
static int scalar(struct reader *r, const yaml_event_t *event, const char **ret)
{
        unsigned line = (unsigned)event->start_mark.line + 1;
        const char *text = (const char *)event->data.scalar.value;
        bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
        if (event->data.scalar.anchor || event->data.scalar.tag)
                return wrong(r, line, "anchors and tags are not used here");
        if (memchr(text, 0, event->data.scalar.length))
                return wrong(r, line, "a NUL byte has no place in a text");
        if (plain && (strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0))
                return wrong(r, line, "null is no value here; leave the line out");
        *ret = plain && !text[0] ? NULL : arena_copy(r->arena, text, event->data.scalar.length);
        return 0;
}

static int read_key(struct reader *r, yaml_event_t *event, const struct yaml_node *parent,
                    struct yaml_node *node)
{
        unsigned line = (unsigned)event->start_mark.line + 1;
        if (event->type != YAML_SCALAR_EVENT)
                return wrong(r, line, "a key has to be a plain word");
        if (scalar(r, event, &node->key) < 0)
                return -CSN_E_CONFIG;
        if (!node->key)
                return wrong(r, line, "a key is missing");
        for (const struct yaml_node *other = parent->children; other; other = other->next)
                if (other->key && strcmp(other->key, node->key) == 0)
                        return err_set(r->err, CSN_E_CONFIG, 0, "%s:%u: %s is there twice (line %u)", r->name,
                                       line, node->key, other->line);
        yaml_event_delete(event);
        return next(r, event);
}

static int read_children(struct reader *r, bool is_list, unsigned depth, struct yaml_node *parent)
{
        struct yaml_node **tail = &parent->children;
        yaml_event_type_t end = is_list ? YAML_SEQUENCE_END_EVENT : YAML_MAPPING_END_EVENT;
        parent->is_list = is_list;
        for (;;) {
                yaml_event_t event;
                if (next(r, &event) < 0)
                        return -CSN_E_CONFIG;
                if (event.type == end) {
                        yaml_event_delete(&event);
                        return 0;
                }
                struct yaml_node *node = arena_alloc(r->arena, sizeof *node);
                node->line = (unsigned)event.start_mark.line + 1;
                int rc = is_list ? 0 : read_key(r, &event, parent, node);
                if (rc == 0)
                        rc = read_node(r, &event, depth, node);
                yaml_event_delete(&event);
                if (rc < 0)
                        return rc;
                *tail = node;
                tail = &node->next;
        }
}

static int read_node(struct reader *r, yaml_event_t *event, unsigned depth, struct yaml_node *ret)
{
        unsigned line = (unsigned)event->start_mark.line + 1;
        if (depth > DEPTH_MAX)
                return wrong(r, line, "nested too deeply");
        if (++r->nodes > NODES_MAX)
                return wrong(r, line, "too many entries");
        switch (event->type) {
        case YAML_SCALAR_EVENT:
                ret->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
                return scalar(r, event, &ret->value);
        case YAML_SEQUENCE_START_EVENT:
                if (event->data.sequence_start.anchor || event->data.sequence_start.tag)
                        return wrong(r, line, "anchors and tags are not used here");
                return read_children(r, true, depth + 1, ret);
        case YAML_MAPPING_START_EVENT:
                if (event->data.mapping_start.anchor || event->data.mapping_start.tag)
                        return wrong(r, line, "anchors and tags are not used here");
                return read_children(r, false, depth + 1, ret);
        default:
                return wrong(r, line, "aliases are not used here");
        }
}

static int read_document(struct reader *r, struct yaml_node *ret)
{
        for (;;) {
                yaml_event_t event;
                if (next(r, &event) < 0)
                        return -CSN_E_CONFIG;
                yaml_event_type_t type = event.type;
                int rc = 0;
                if (type == YAML_MAPPING_START_EVENT && !ret->line) {
                        ret->line = (unsigned)event.start_mark.line + 1;
                        rc = read_node(r, &event, 0, ret);
                } else if (type == YAML_SCALAR_EVENT && event.data.scalar.length == 0) {
                        ret->line = 1;   /* a file of comments */
                } else if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT &&
                           type != YAML_DOCUMENT_END_EVENT && type != YAML_STREAM_END_EVENT) {
                        rc = wrong(r, (unsigned)event.start_mark.line + 1,
                                   "expected one mapping of names to values");
                }
                yaml_event_delete(&event);
                if (rc < 0 || type == YAML_STREAM_END_EVENT)
                        return rc;
        }
}

int yaml_parse(const char *text, size_t len, const char *name, struct arena *arena, struct yaml_node *ret,
               struct csn_error *err)
{
        struct reader reader = { .name = name, .arena = arena, .err = err };
        *ret = (struct yaml_node){ 0 };
        if (len > SIZE_MAX_YAML)
                return wrong(&reader, 1, "larger than 1 MiB");
        if (!yaml_parser_initialize(&reader.parser))
                return wrong(&reader, 1, "no memory for the parser");
        yaml_parser_set_input_string(&reader.parser, (const unsigned char *)text, len);
        int rc = read_document(&reader, ret);
        yaml_parser_delete(&reader.parser);
        return rc;
}
