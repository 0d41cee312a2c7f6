/* From tree-sitter's tree to a flat array; see tree.h. */
#include "policy/tree.h"

#include <tree_sitter/api.h>

#define SKIPPED UINT16_MAX

struct builder {
        struct tree *tree;
        size_t size;
        uint16_t *kinds;               /* by tree-sitter's symbol */
        uint8_t *fields;               /* by its field id */
        uint16_t error;                /* the kind of what does not parse */
        bool tokens;
};

static unsigned find_word(const char *const *words, const char *word)
{
        for (unsigned i = 1; words[i]; i++)
                if (strcmp(words[i], word) == 0)
                        return i;
        return 0;
}

/* Grammars have some hundred symbols and this is asked for each text, so it is looked up once for each grammar. */
struct grammar_map {
        const struct grammar *grammar;
        uint16_t *kinds;
        uint8_t *fields;
};

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
        maps[i] = (struct grammar_map){ grammar, mem_alloc(symbols * sizeof(uint16_t)), mem_alloc(fields + 1) };
        for (uint32_t s = 0; s < symbols; s++) {
                const char *name = ts_language_symbol_name(language, (TSSymbol)s);
                if (ts_language_symbol_type(language, (TSSymbol)s) != TSSymbolTypeRegular)
                        continue;
                maps[i].kinds[s] = grammar->skipped && strcmp(grammar->skipped, name) == 0 ? SKIPPED : (uint16_t)find_word(grammar->kinds, name);
        }
        for (uint32_t f = 1; f <= fields; f++)
                maps[i].fields[f] = (uint8_t)find_word(grammar->fields, ts_language_field_name_for_id(language, (TSFieldId)f));
        return &maps[i];
}

static void note_broken(struct tree *tree, uint32_t at)
{
        if (!tree->broken)
                tree->broken_at = at;
        tree->broken = true;
}

/* Nodes come and go with the cursor; `parents` is the way from the root to it, in numbers of ours. */
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

static bool add_node(struct builder *b, TSTreeCursor *cursor, struct way *way)
{
        struct tree *tree = b->tree;
        TSNode from = ts_tree_cursor_current_node(cursor);
        uint8_t field = b->fields[ts_tree_cursor_current_field_id(cursor)];
        bool named = ts_node_is_named(from), missing = ts_node_is_missing(from);
        TSSymbol symbol = ts_node_symbol(from);
        if (missing || symbol == (TSSymbol)-1)
                note_broken(tree, ts_node_start_byte(from));
        uint16_t kind = symbol == (TSSymbol)-1 ? b->error : named ? b->kinds[symbol] : 0;
        if ((kind == SKIPPED || (!named && !field && !b->tokens)) && ts_node_child_count(from) == 0)
                return true;
        if (tree->n == TREE_NODES_MAX)
                return false;
        if (tree->n == b->size) {
                b->size = 2 * b->size;
                tree->nodes = mem_resize(tree->nodes, b->size * sizeof *tree->nodes);
        }
        uint32_t me = tree->n++;
        struct node *node = &tree->nodes[me];
        *node = (struct node){ .start = ts_node_start_byte(from), .end = ts_node_end_byte(from), .field = field, .token = !named,
                               .kind = kind == SKIPPED ? 0 : kind };
        if (way->n && way->parents) {
                node->parent = way->parents[way->n - 1];
                uint32_t *last = &way->lasts[way->n - 1];
                if (*last)
                        tree->nodes[*last].next = me;
                else
                        tree->nodes[node->parent].child = me;
                *last = me;
        }
        return true;
}

static bool copy_nodes(struct builder *b, TSTreeCursor *cursor)
{
        struct way way = { 0 };
        bool fits = add_node(b, cursor, &way);
        for (bool down = true; fits;) {
                uint32_t me = b->tree->n - 1;
                if (down && ts_tree_cursor_goto_first_child(cursor)) {
                        way_push(&way, me);
                        fits = add_node(b, cursor, &way);
                        continue;
                }
                if (ts_tree_cursor_goto_next_sibling(cursor)) {
                        down = true;
                        fits = add_node(b, cursor, &way);
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

static int copy_tree(const struct grammar *grammar, const TSTree *from, struct tree *tree, struct arena *arena, struct csn_error *err)
{
        const struct grammar_map *map = map_of(grammar);
        struct builder builder = { .tree = tree, .size = 256 + tree->len / 8, .kinds = map->kinds, .fields = map->fields,
                                   .error = (uint16_t)find_word(grammar->kinds, "ERROR"), .tokens = grammar->tokens };
        tree->nodes = mem_alloc(builder.size * sizeof *tree->nodes);
        TSTreeCursor cursor = ts_tree_cursor_new(ts_tree_root_node(from));
        bool fits = copy_nodes(&builder, &cursor);
        ts_tree_cursor_delete(&cursor);
        struct node *nodes = tree->nodes;
        tree->nodes = arena_alloc(arena, tree->n * sizeof *nodes);
        memcpy(tree->nodes, nodes, tree->n * sizeof *nodes);
        free(nodes);
        return fits ? 0 : err_field(err, "/code", "the program is too complex to be checked: more than %d nodes", TREE_NODES_MAX);
}

/* What must not be freed, and is not lost either. */
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

int tree_parse(const struct grammar *grammar, const char *text, size_t len, struct arena *arena, struct tree *ret, struct csn_error *err)
{
        struct tree tree = { .text = text, .len = len };
        TSParser *parser = ts_parser_new();
        TSTree *from = NULL;
        ts_parser_set_timeout_micros(parser, TREE_TIME_US);
        if (ts_parser_set_language(parser, grammar->language()))
                from = ts_parser_parse_string(parser, NULL, text, (uint32_t)len);
        int rc = from ? copy_tree(grammar, from, &tree, arena, err)
                      : err_field(err, "/code", "the program is too complex to be checked: its parser took more than %d s",
                                TREE_TIME_US / 1000000);
        release(from, parser, (!from || tree.broken) && len >= UINT16_MAX);
        if (rc == 0)
                *ret = tree;
        return rc;
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
