/* From tree-sitter's tree to a flat array; see tree.h. */
#include "policy/analysis/tree.h"
#include "policy/analysis/fast_parser.h"

#include <time.h>

/* In this order: each header leaves out the declarations of the other. */
#include <tree_sitter/parser.h>

#include <tree_sitter/api.h>

#define SKIPPED UINT16_MAX

struct builder {
        struct tree *tree;
        size_t size;
        uint16_t *kinds;               /* by tree-sitter's symbol */
        uint8_t *fields;               /* by its field id */
        uint8_t *places;               /* by production and child */
        uint16_t error;                /* the kind of unparsable text */
        bool tokens;
};

static unsigned find_word(const char *const *words, const char *word)
{
        for (unsigned i = 1; words[i]; i++)
                if (strcmp(words[i], word) == 0)
                        return i;
        return 0;
}

/* Grammars have some hundred symbols, and each text needs their kinds: the map is made once for each grammar. */
struct grammar_map {
        const struct grammar *grammar;
        uint16_t *kinds;
        uint8_t *fields;
        uint8_t *places;               /* of a production's children: their fields */
};

/* Of several fields in a place the first counts, as for a cursor. */
static void note_places(const TSLanguage *language, uint32_t production, const uint8_t *fields, uint8_t *ret)
{
        const TSFieldMapSlice slice = language->field_map_slices[production];
        for (uint32_t i = slice.length; i-- > 0;) {
                const TSFieldMapEntry *entry = &language->field_map_entries[slice.index + i];
                if (!entry->inherited && entry->child_index < language->max_alias_sequence_length)
                        ret[entry->child_index] = fields[entry->field_id];
        }
}

static const struct grammar_map *map_of(const struct grammar *grammar)
{
        static struct grammar_map maps[8];
        size_t i = 0;
        while (i + 1 < ARRAY_LEN(maps) && maps[i].grammar && maps[i].grammar != grammar)
                i++;
        if (maps[i].grammar)
                return &maps[i];
        const TSLanguage *language = grammar->language();
        uint32_t symbols = ts_language_symbol_count(language), fields = ts_language_field_count(language);
        maps[i] = (struct grammar_map){ grammar, mem_alloc(symbols * sizeof(uint16_t)), mem_alloc(fields + 1),
                mem_alloc((size_t)language->production_id_count * language->max_alias_sequence_length) };
        for (uint32_t s = 0; s < symbols; s++) {
                const char *name = ts_language_symbol_name(language, (TSSymbol)s);
                if (ts_language_symbol_type(language, (TSSymbol)s) != TSSymbolTypeRegular)
                        continue;
                maps[i].kinds[s] = grammar->skipped && strcmp(grammar->skipped, name) == 0
                        ? SKIPPED
                        : (uint16_t)find_word(grammar->kinds, name);
        }
        for (uint32_t f = 1; f <= fields; f++)
                maps[i].fields[f] =
                        (uint8_t)find_word(grammar->fields, ts_language_field_name_for_id(language, (TSFieldId)f));
        for (uint32_t p = 1; p < language->production_id_count; p++)
                note_places(language, p, maps[i].fields,
                        &maps[i].places[(size_t)p * language->max_alias_sequence_length]);
        return &maps[i];
}

static void note_broken(struct tree *tree, uint32_t at)
{
        if (!tree->broken)
                tree->broken_at = at;
        tree->broken = true;
}

/* Room for a node of our tree, after its parent and all earlier nodes of the text; NULL: too many nodes. */
static inline struct node *add_node(struct builder *b, uint32_t parent, uint32_t *last)
{
        struct tree *tree = b->tree;
        if (tree->n == TREE_NODES_MAX)
                return NULL;
        if (tree->n == b->size) {
                b->size = 2 * b->size;
                tree->nodes = mem_resize(tree->nodes, b->size * sizeof *tree->nodes);
        }
        uint32_t me = tree->n++;
        if (last && *last)
                tree->nodes[*last].next = me;
        else if (last)
                tree->nodes[parent].child = me;
        if (last)
                *last = me;
        return &tree->nodes[me];
}

/* Nodes come and go with the cursor; `parents` is the way from the root to the cursor, in our numbers. */
struct way {
        uint32_t *parents, *lasts;     /* a parent, and its last child so far */
        size_t n, size;
};

static void way_push(struct way *way, uint32_t parent)
{
        if (!way->parents || way->n == way->size) {
                way->size = way->size ? 2 * way->size : 256;
                way->parents = mem_resize(way->parents, way->size * sizeof *way->parents);
                way->lasts = mem_resize(way->lasts, way->size * sizeof *way->lasts);
        }
        way->parents[way->n] = parent;
        way->lasts[way->n++] = 0;
}

static bool add_current(struct builder *b, TSTreeCursor *cursor, struct way *way)
{
        TSNode from = ts_tree_cursor_current_node(cursor);
        uint8_t field = b->fields[ts_tree_cursor_current_field_id(cursor)];
        bool named = ts_node_is_named(from), missing = ts_node_is_missing(from), child = way->n && way->parents;
        TSSymbol symbol = ts_node_symbol(from);
        if (missing || symbol == (TSSymbol)-1)
                note_broken(b->tree, ts_node_start_byte(from));
        uint16_t kind = symbol == (TSSymbol)-1 ? b->error : named ? b->kinds[symbol] : 0;
        if ((kind == SKIPPED || (!named && !field && !b->tokens)) && ts_node_child_count(from) == 0)
                return true;
        uint32_t parent = child ? way->parents[way->n - 1] : 0;
        struct node *node = add_node(b, parent, child ? &way->lasts[way->n - 1] : NULL);
        if (!node)
                return false;
        *node = (struct node){ .start = ts_node_start_byte(from),
                .end = ts_node_end_byte(from),
                .field = field,
                .token = !named,
                .kind = kind == SKIPPED ? 0 : kind,
                .parent = parent };
        return true;
}

static bool copy_nodes(struct builder *b, TSTreeCursor *cursor)
{
        struct way way = { 0 };
        bool fits = add_current(b, cursor, &way);
        for (bool down = true; fits;) {
                uint32_t me = b->tree->n - 1;
                if (down && ts_tree_cursor_goto_first_child(cursor)) {
                        way_push(&way, me);
                        fits = add_current(b, cursor, &way);
                        continue;
                }
                if (ts_tree_cursor_goto_next_sibling(cursor)) {
                        down = true;
                        fits = add_current(b, cursor, &way);
                        continue;
                }
                if (!ts_tree_cursor_goto_parent(cursor))
                        break;
                way.n--;
                down = false;
        }
        free(way.parents);
        free(way.lasts);
        return fits;
}

static bool copy_tree(struct builder *b, const TSTree *from)
{
        TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(from));
        bool fits = copy_nodes(b, &cursor);
        ts_tree_cursor_delete(&cursor);
        return fits;
}

/* ---- from nodes ---- */

/* A node on the way from the root; a node without a name is a part of the node above. */
struct level {
        uint32_t parse_node, child, place;   /* the next child, and its place among the children of the rule */
        uint32_t node;                 /* ours */
        uint32_t shown;                /* the level with the node */
        uint32_t last;                 /* the last child of `shown` so far */
        uint8_t field;                 /* for the children of a node without a name */
};

struct levels {
        struct level *list;
        uint32_t n, size;
};

static inline struct level *push_level(struct levels *levels)
{
        if (levels->n == levels->size) {
                levels->size = levels->size ? 2 * levels->size : 256;
                levels->list = mem_resize(levels->list, levels->size * sizeof *levels->list);
        }
        return &levels->list[levels->n++];
}

/*
 * Add the next child of the level on top.  Rules with a single child and no name, of which there are many, are passed
 * at once.
 */
static bool add_parse_node(struct builder *b, const struct parse_nodes *parse_nodes, const TSLanguage *language,
        struct levels *levels)
{
        struct level *level = &levels->list[levels->n - 1];
        const struct parse_node *parent = &parse_nodes->list[level->parse_node], *parse_node;
        uint32_t at = parse_node_child(parse_nodes, parent, level->child++), place = level->place, shown = level->shown,
                 node = level->node;
        uint8_t field = level->field;
        TSSymbol alias;
        level->place += !parse_nodes->list[at].extra;
        for (;; parent = parse_node, at = parse_node->first, place = 0) {
                parse_node = &parse_nodes->list[at];
                alias = 0;
                if (parse_node->extra) {
                        field = 0;
                } else if (parent->production) {
                        size_t info = (size_t)parent->production * language->max_alias_sequence_length + place;
                        alias = language->alias_sequences[info];
                        field = b->places[info] ? b->places[info] : field;
                }
                if (alias || language->symbol_metadata[parse_node->symbol].visible)
                        break;
                if (parse_node->n == 1)
                        continue;
                if (parse_node->n)
                        *push_level(levels) =
                                (struct level){ .parse_node = at, .node = node, .shown = shown, .field = field };
                return true;
        }
        TSSymbol symbol = alias ? alias : parse_node->symbol;
        bool named = language->symbol_metadata[symbol].named;
        uint16_t kind = named ? b->kinds[language->public_symbol_map[symbol]] : 0;
        if ((kind == SKIPPED || (!named && !field && !b->tokens)) && !parse_node->n)
                return true;
        const uint32_t start = parse_node->start, end = parse_node->end, below = levels->n;
        struct node *new = add_node(b, node, &levels->list[shown].last);
        if (!new)
                return false;
        *new = (struct node){ .start = start,
                .end = end,
                .parent = node,
                .kind = kind == SKIPPED ? 0 : kind,
                .field = field,
                .token = !named };
        if (parse_node->n)
                *push_level(levels) = (struct level){ .parse_node = at, .node = b->tree->n - 1, .shown = below };
        return true;
}

static bool copy_parse_nodes(struct builder *b, const struct parse_nodes *parse_nodes, const TSLanguage *language)
{
        const struct parse_node *root = &parse_nodes->list[parse_nodes->root];
        struct levels levels = { 0 };
        struct node *top = add_node(b, 0, NULL);
        bool fits = top;
        if (top)
                *top = (struct node){ .start = root->start,
                        .end = root->end,
                        .kind = b->kinds[language->public_symbol_map[root->symbol]] };
        *push_level(&levels) = (struct level){ .parse_node = parse_nodes->root };
        while (fits && levels.n) {
                const struct level *level = &levels.list[levels.n - 1];
                if (level->child == parse_nodes->list[level->parse_node].n)
                        levels.n--;
                else
                        fits = add_parse_node(b, parse_nodes, language, &levels);
        }
        free(levels.list);
        return fits;
}

/* ---- either ---- */

static int copy(const struct grammar *grammar, const TSTree *from, const struct parse_nodes *parse_nodes,
        struct tree *tree, struct arena *arena, struct csn_error *err)
{
        const struct grammar_map *map = map_of(grammar);
        struct builder builder = { .tree = tree,
                .size = 256 + tree->len / 8,
                .kinds = map->kinds,
                .fields = map->fields,
                .places = map->places,
                .error = (uint16_t)find_word(grammar->kinds, "ERROR"),
                .tokens = grammar->tokens };
        tree->nodes = mem_resize(NULL, builder.size * sizeof *tree->nodes);
        bool fits = from ? copy_tree(&builder, from) : copy_parse_nodes(&builder, parse_nodes, grammar->language());
        struct node *nodes = tree->nodes;
        tree->nodes = arena_alloc(arena, tree->n * sizeof *nodes);
        memcpy(tree->nodes, nodes, tree->n * sizeof *nodes);
        free(nodes);
        return fits ? 0
                    : err_field(err, "/code", "the program is too complex to be checked: more than %d nodes",
                              TREE_NODES_MAX);
}

/* Trees and parsers after an overrun: not to be freed, but still reachable. */
static struct kept {
        TSTree *tree;
        TSParser *parser;
        struct kept *next;
} *kept;

bool tree_is_worn(void)
{
        return kept != NULL;
}

static void release(TSTree *tree, TSParser *parser, bool overrun)
{
        if (overrun) {
                struct kept *one = mem_alloc(sizeof *one);
                *one = (struct kept){ tree, parser, kept };
                kept = one;
                return;
        }
        ts_tree_delete(tree);
        ts_parser_delete(parser);
}

static uint64_t cpu_us(void)
{
        struct timespec now;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int tree_parse_slowly(const struct grammar *grammar, const char *text, size_t len, struct arena *arena,
        struct tree *ret, struct csn_error *err)
{
        struct tree tree = { .text = text, .len = len };
        TSParser *parser = ts_parser_new();
        TSTree *from = NULL;
        ts_parser_set_timeout_micros(parser, TREE_TIME_US);
        /*
         * tree-sitter looks at the clock on the wall; other processes may have had all of the time.  Then the parser is
         * called again and goes on.
         */
        const uint64_t end = cpu_us() + TREE_TIME_US;
        bool known = ts_parser_set_language(parser, grammar->language());
        for (int i = 0; known && !from && (i == 0 || (i < TREE_TIMES_MAX && cpu_us() < end)); i++)
                from = ts_parser_parse_string(parser, NULL, text, (uint32_t)len);
        int rc = from
                ? copy(grammar, from, NULL, &tree, arena, err)
                : err_field(err, "/code", "the program is too complex to be checked: its parser took more than %d s",
                          TREE_TIME_US / 1000000);
        release(from, parser, (!from || tree.broken) && len >= UINT16_MAX);
        if (rc == 0)
                *ret = tree;
        return rc;
}

bool tree_parse_fast(const struct grammar *grammar, const char *text, size_t len, struct arena *arena, struct tree *ret)
{
        struct tree tree = { .text = text, .len = len };
        struct parse_nodes parse_nodes;
        bool good = fast_parser_parse(grammar->language(), text, (uint32_t)len, &parse_nodes) &&
                copy(grammar, NULL, &parse_nodes, &tree, arena, NULL) == 0;
        fast_parser_free(&parse_nodes);
        if (good)
                *ret = tree;
        return good;
}

int tree_parse(const struct grammar *grammar, const char *text, size_t len, struct arena *arena, struct tree *ret,
        struct csn_error *err)
{
        return tree_parse_fast(grammar, text, len, arena, ret) ? 0
                                                               : tree_parse_slowly(grammar, text, len, arena, ret, err);
}

uint32_t tree_field(const struct tree *tree, uint32_t parent, unsigned field)
{
        uint32_t child = tree->nodes[parent].child;
        while (child && tree->nodes[child].field != field)
                child = tree->nodes[child].next;
        return child;
}

uint32_t tree_kind(const struct tree *tree, uint32_t parent, unsigned kind)
{
        uint32_t child = tree->nodes[parent].child;
        while (child && tree->nodes[child].kind != kind)
                child = tree->nodes[child].next;
        return child;
}

uint32_t *tree_order(const struct tree *tree, struct arena *arena)
{
        uint32_t *order = arena_alloc(arena, tree->n * sizeof *order), n = 0;
        for (uint32_t at = 0;;) {
                while (tree->nodes[at].child)
                        at = tree->nodes[at].child;
                order[n++] = at;
                while (at && !tree->nodes[at].next) {
                        at = tree->nodes[at].parent;
                        order[n++] = at;
                }
                if (!at)
                        return order;
                at = tree->nodes[at].next;
        }
}
