/* The usual case of a parse; see fast_parser.h.  States, productions and actions are tree-sitter's. */
#include "policy/analysis/fast_parser.h"

#include "policy/analysis/fast_tables.h"

#define VERSIONS_MAX 6                 /* tree-sitter drops further versions */
#define SLOTS (VERSIONS_MAX + 4)       /* as many, and some more within a step */
#define LINKS_MAX 8                    /* tree-sitter drops further links */
#define WAYS_MAX 16                    /* back from a place, of which tree-sitter knows 64 */
#define DEPTH_MAX 100                  /* of merged stacks */
#define ROOT_STATE 1
#define NO_TOKEN UINT16_MAX            /* a lexer's state: the end of a rule with a place anywhere */
#define SCANNER_KEPT 200               /* bytes of a scanner's state; some scanners cut a longer state */
#define SCANNERS_MAX (8 * MIB)
/* characters looked at and steps; programs written by people need 2 to 4 */
#define WORK_PER_BYTE 16
#define WORK_MIN (64 * KIB)

/* ---- a parse ---- */

/*
 * The stacks of several versions are one graph, as in tree-sitter: a place on a stack has the last pushed node and the
 * place below.  A place reached by two versions has several such links.
 */
struct link {
        uint32_t below, parse_node;
        uint32_t more;                 /* the next link of the same place; 0: none */
};

struct place {
        struct link link;
        uint32_t at;                   /* bytes read */
        int32_t precedence;            /* of the best way here */
        uint16_t state;
};

/* A way to read the text so far. */
struct version {
        uint32_t top;                  /* of `places` */
        uint32_t scanner;              /* its state: a place in `scanners` */
        bool gone;                     /* came to its end, or to nothing */
};

/* A way back from a version's top; `kids` has the passed nodes, the last first. */
struct way {
        uint32_t place, left;          /* left: nodes still to come, without extras */
        uint32_t *kids;
        uint32_t n, size;
};

struct token {
        uint32_t from, scanner_before; /* start of the lexer, and its scanner before */
        uint32_t start, end;
        uint32_t scanner;
        uint16_t symbol, state;        /* state: of the parser at the time */
        bool keyword, external;
        bool known;
        uint32_t parse_node;
};

struct parser {
        struct tables *tables;
        const TSLanguage *language;
        struct lexer lexer;
        struct parse_nodes *parse_nodes;
        struct place *places;          /* [0] is where the text begins */
        uint32_t places_n, places_size;
        uint32_t kept;                 /* places below are linked from somewhere */
        struct link *links;            /* beyond the first of a place; [0] is none */
        uint32_t links_n, links_size;
        struct version versions[SLOTS];
        uint32_t n;                    /* of versions */
        struct way ways[WAYS_MAX];
        struct token token;            /* read last; another version may want the same */
        void *scanner;
        uint32_t live;                 /* the present state of the scanner; NONE: unknown */
        char now[TREE_SITTER_SERIALIZATION_BUFFER_SIZE];
        struct buf states;             /* of the scanner, in a row */
        struct { uint32_t at, len; } *scanners;
        size_t scanners_n, scanners_size;
        uint64_t work, work_max;
        uint32_t root;                 /* NONE: not at the end yet */
        bool gave_up;
};

static void *room(void *list, uint32_t n, uint32_t *size, size_t each)
{
        if (n < *size)
                return list;
        *size = *size ? 2 * *size : 64;
        return mem_resize(list, *size * each);
}

/*
 * Room for a last node.  The most frequent nodes are written in place, by their members: a copy of a structure just put
 * together waits for the stores of its parts, each time.
 */
static inline struct parse_node *add_parse_node(struct parser *q)
{
        struct parse_nodes *parse_nodes = q->parse_nodes;
        parse_nodes->list = room(parse_nodes->list, parse_nodes->n, &parse_nodes->size, sizeof *parse_nodes->list);
        return &parse_nodes->list[parse_nodes->n++];
}

static inline uint32_t last_parse_node(const struct parser *q)
{
        return q->parse_nodes->n - 1;
}

static inline void add_kid(struct parse_nodes *parse_nodes, uint32_t kid)
{
        parse_nodes->kids =
                room(parse_nodes->kids, parse_nodes->kids_n, &parse_nodes->kids_size, sizeof *parse_nodes->kids);
        parse_nodes->kids[parse_nodes->kids_n++] = kid;
}

static inline const struct place *top_of(const struct parser *q, const struct version *version)
{
        return &q->places[version->top];
}

static inline void push(struct parser *q, struct version *version, uint32_t parse_node, uint16_t state)
{
        q->places = room(q->places, q->places_n, &q->places_size, sizeof *q->places);
        const struct parse_node *from = &q->parse_nodes->list[parse_node];
        const uint32_t below = version->top, at = from->end;
        const int32_t precedence = q->places[below].precedence + from->precedence;
        q->places[q->places_n] =
                (struct place){ .link = { below, parse_node, 0 }, .at = at, .precedence = precedence, .state = state };
        version->top = q->places_n++;
}

/* ---- tokens ---- */

static bool same_scanner(const struct parser *q, uint32_t a, uint32_t b)
{
        return a == b ||
                (q->scanners[a].len == q->scanners[b].len &&
                        memcmp(q->states.bytes + q->scanners[a].at, q->states.bytes + q->scanners[b].at,
                                q->scanners[a].len) == 0);
}

static void add_scanner(struct parser *q, const char *state, uint32_t len)
{
        q->scanners = q->scanners_n < q->scanners_size
                ? q->scanners
                : mem_resize(q->scanners, (q->scanners_size = 2 * q->scanners_size + 64) * sizeof *q->scanners);
        q->scanners[q->scanners_n].at = (uint32_t)q->states.len;
        q->scanners[q->scanners_n++].len = len;
        if (!buf_add(&q->states, state, len))
                q->gave_up = true;
}

/*
 * A scanner is defined by its state.  To hand over the state each time, as tree-sitter does, costs more than to see an
 * equal state.
 */
static bool scan(struct parser *q, const struct version *version, uint16_t state, bool all, struct token *token)
{
        const TSLanguage *language = q->language;
        uint32_t before = version->scanner;
        const char *bytes = q->states.bytes + q->scanners[before].at;
        uint32_t len = q->scanners[before].len;
        if (q->live != before)
                language->external_scanner.deserialize(q->scanner, len ? bytes : NULL, len);
        lexer_begin(&q->lexer, top_of(q, version)->at);
        bool found = language->external_scanner.scan(q->scanner, &q->lexer.data,
                language->external_scanner.states + (size_t)state * language->external_token_count);
        lexer_finish(&q->lexer);
        uint32_t now_len = language->external_scanner.serialize(q->scanner, q->now);
        /* A few bytes, each just stored: memcmp(3) would load several at once, and wait for the stores. */
        bool same = now_len == len;
        for (uint32_t i = 0; same && i < len; i++)
                same = q->now[i] == bytes[i];
        q->live = same && len < SCANNER_KEPT ? before : NONE;
        if (!found)
                return false;
        uint16_t symbol = language->external_scanner.symbol_map[q->lexer.data.result_symbol];
        /* Empty tokens without a new state may never end. */
        if (same && q->lexer.end <= top_of(q, version)->at) {
                const TSParseActionEntry *entry = actions_of(q->tables, token->state, symbol);
                if (entry->entry.count && entry[1].action.type == TSParseActionTypeShift && entry[1].action.shift.extra)
                        q->gave_up = true;
                if (all)
                        return false;
        }
        token->symbol = symbol;
        token->scanner = before;
        token->external = true;
        if (!same) {
                token->scanner = (uint32_t)q->scanners_n;
                add_scanner(q, q->now, now_len);
        }
        return true;
}

static bool lex_in(struct parser *q, const struct version *version, TSLexMode mode, bool all, struct token *token)
{
        struct lexer *lexer = &q->lexer;
        uint32_t at = top_of(q, version)->at;
        if (mode.external_lex_state) {
                bool found = scan(q, version, mode.external_lex_state, all, token);
                q->work += lexer->at - at;
                if (found)
                        return true;
        }
        lexer_begin(lexer, at);
        lexer->runs = true;
        bool found = q->language->lex_fn(&lexer->data, mode.lex_state);
        lexer->runs = false;
        lexer_finish(lexer);
        q->work += lexer->at - at + 1;
        token->symbol = lexer->data.result_symbol;
        return found;
}

/* Read a token; false: no token, or a case for tree-sitter. */
static bool lex(struct parser *q, const struct version *version, uint16_t state)
{
        const TSLanguage *language = q->language;
        TSLexMode mode = language->lex_modes[state];
        struct lexer *lexer = &q->lexer;
        struct token *token = &q->token;
        *token = (struct token){ .from = top_of(q, version)->at,
                .scanner_before = version->scanner,
                .scanner = version->scanner,
                .state = state,
                .parse_node = NONE };
        if (mode.lex_state == NO_TOKEN)
                q->gave_up = true;
        /* The outcome of a mistake matters only where another version may go on. */
        if (q->gave_up ||
                (!lex_in(q, version, mode, false, token) &&
                        (q->n == 1 || !lex_in(q, version, language->lex_modes[0], true, token))))
                return false;
        token->start = lexer->start;
        token->end = lexer->end;
        if (!token->external && token->symbol == language->keyword_capture_token && token->symbol) {
                lexer_begin(lexer, token->start);
                token->keyword = language->keyword_lex_fn(&lexer->data, 0);
                lexer_finish(lexer);
                uint16_t word = lexer->data.result_symbol;
                if (token->keyword && lexer->end == token->end && actions_of(q->tables, state, word)->entry.count)
                        token->symbol = word;
        }
        q->gave_up = q->gave_up || lexer->strange;
        token->known = true;
        return !q->gave_up;
}

/* Whether the last token is also the token to read now; as in tree-sitter. */
static bool is_current(struct parser *q, const struct version *version, uint16_t state)
{
        const struct token *token = &q->token;
        if (!token->known || token->from != top_of(q, version)->at ||
                !same_scanner(q, token->scanner_before, version->scanner))
                return false;
        const TSLexMode *now = &q->language->lex_modes[state], *then = &q->language->lex_modes[token->state];
        const TSParseActionEntry *entry = actions_of(q->tables, state, token->symbol);
        if (now->lex_state == NO_TOKEN)
                return false;
        if (entry->entry.count && now->lex_state == then->lex_state &&
                now->external_lex_state == then->external_lex_state &&
                (token->symbol != q->language->keyword_capture_token || (!token->keyword && token->state == state)))
                return true;
        if (token->start == token->end && token->symbol)
                return false;
        return now->external_lex_state == 0 && entry->entry.reusable;
}

/* ---- where versions meet ---- */

/* Text before a token and outside of the token counts, too. */
static bool is_like(const struct parser *q, const struct link *a, const struct link *b)
{
        const struct parse_node *x = &q->parse_nodes->list[a->parse_node], *y = &q->parse_nodes->list[b->parse_node];
        if (a->parse_node == b->parse_node)
                return true;
        return x->symbol == y->symbol && x->n == y->n && x->extra == y->extra &&
                x->end - x->start == y->end - y->start &&
                x->start - q->places[a->below].at == y->start - q->places[b->below].at &&
                (x->n || same_scanner(q, x->first, y->first));
}

static bool same_place(const struct place *a, const struct place *b)
{
        return a->state == b->state && a->at == b->at;
}

static void add_link(struct parser *q, uint32_t to, struct link link, unsigned depth);

static void add_links(struct parser *q, uint32_t to, uint32_t from, unsigned depth)
{
        for (struct link link = q->places[from].link;; link = q->links[link.more]) {
                add_link(q, to, link, depth);
                if (!link.more)
                        return;
        }
}

/* As in tree-sitter, and in its order: the first link stays where nothing else decides. */
static void add_link(struct parser *q, uint32_t to, struct link link, unsigned depth)
{
        struct place *place = &q->places[to];
        struct link *old = &place->link;
        int32_t own = q->parse_nodes->list[link.parse_node].precedence,
                precedence = q->places[link.below].precedence + own;
        unsigned n = 1;
        if (link.below == to)
                return;
        if (depth == DEPTH_MAX) {
                q->gave_up = true;
                return;
        }
        q->work++;
        for (;; old = &q->links[old->more], n++) {
                bool like = is_like(q, old, &link);
                if (like && old->below == link.below) {
                        if (own > q->parse_nodes->list[old->parse_node].precedence) {
                                old->parse_node = link.parse_node;
                                place->precedence = precedence;
                        }
                        return;
                }
                if (like && same_place(&q->places[old->below], &q->places[link.below])) {
                        add_links(q, old->below, link.below, depth + 1);
                        place->precedence = precedence > place->precedence ? precedence : place->precedence;
                        return;
                }
                if (!old->more)
                        break;
        }
        if (n == LINKS_MAX) {
                q->gave_up = true;
                return;
        }
        old->more = q->links_n;
        q->links = room(q->links, q->links_n, &q->links_size, sizeof *q->links);
        q->links[q->links_n++] = (struct link){ link.below, link.parse_node, 0 };
        place->precedence = precedence > place->precedence ? precedence : place->precedence;
        q->kept = q->places_n;
}

static void drop_version(struct parser *q, uint32_t i)
{
        q->n--;
        memmove(&q->versions[i], &q->versions[i + 1], (q->n - i) * sizeof *q->versions);
}

/* Merge the second version into the first; false: the two stay apart. */
static bool merge(struct parser *q, uint32_t i, uint32_t j)
{
        const struct version *a = &q->versions[i], *b = &q->versions[j];
        if (a->gone || b->gone || !same_place(top_of(q, a), top_of(q, b)) || !same_scanner(q, a->scanner, b->scanner))
                return false;
        if (a->top != b->top)
                add_links(q, a->top, b->top, 0);
        drop_version(q, j);
        return true;
}

/* ---- steps ---- */

static void shift(struct parser *q, struct version *version, uint16_t state, uint16_t symbol, bool extra)
{
        struct token *token = &q->token;
        if (token->parse_node == NONE || q->parse_nodes->list[token->parse_node].symbol != symbol ||
                q->parse_nodes->list[token->parse_node].extra != extra) {
                const uint32_t start = token->start, end = token->end, first = token->external ? token->scanner : 0;
                *add_parse_node(q) = (struct parse_node){
                        .start = start, .end = end, .first = first, .symbol = symbol, .extra = extra
                };
                token->parse_node = last_parse_node(q);
        }
        push(q, version, token->parse_node, state);
        version->scanner = token->scanner;
}

/* A new node with the passed nodes of a way as its children, without the last extras. */
static struct parse_node build(struct parser *q, const TSParseAction *action, const struct way *way, uint32_t extras,
        uint32_t at)
{
        struct parse_nodes *parse_nodes = q->parse_nodes;
        uint32_t n = way->n - extras;
        struct parse_node parse_node = { .symbol = action->reduce.symbol,
                .production = action->reduce.production_id,
                .n = n,
                .start = at,
                .end = at };
        if (!n)
                return parse_node;
        parse_node.start = parse_nodes->list[way->kids[way->n - 1]].start;
        parse_node.end = parse_nodes->list[way->kids[extras]].end;
        parse_node.first = n == 1 ? way->kids[extras] : parse_nodes->kids_n;
        for (uint32_t i = way->n; i-- > extras;) {
                parse_node.precedence += parse_nodes->list[way->kids[i]].precedence;
                if (n > 1)
                        add_kid(parse_nodes, way->kids[i]);
        }
        return parse_node;
}

/*
 * Whether the first of two readings of a text is less: in the order of the text, by symbols and by numbers of children.
 * The same node in both readings is equal.
 */
static bool is_less(struct parser *q, const struct parse_node *a, const struct parse_node *b)
{
        const struct parse_nodes *parse_nodes = q->parse_nodes;
        struct { const struct parse_node *a, *b; uint32_t i; } way[DEPTH_MAX];
        uint32_t n = 0;
        for (;;) {
                if (a->symbol != b->symbol)
                        return a->symbol < b->symbol;
                if (a->n != b->n)
                        return a->n < b->n;
                if (n == DEPTH_MAX || ++q->work > q->work_max) {
                        q->gave_up = true;
                        return false;
                }
                way[n].a = a;
                way[n].b = b;
                way[n++].i = 0;
                for (uint32_t x = 0, y = 0; x == y;) {
                        while (n && way[n - 1].i == way[n - 1].a->n)
                                n--;
                        if (!n)
                                return false;
                        uint32_t i = way[n - 1].i++;
                        x = parse_node_child(parse_nodes, way[n - 1].a, i);
                        y = parse_node_child(parse_nodes, way[n - 1].b, i);
                        a = &parse_nodes->list[x];
                        b = &parse_nodes->list[y];
                }
        }
}

/* Whether tree-sitter takes the right reading: by the higher precedence, then by is_less(). */
static bool is_better(struct parser *q, const struct parse_node *left, const struct parse_node *right)
{
        return left->precedence == right->precedence ? is_less(q, right, left) : right->precedence > left->precedence;
}

static void add_kid_to(struct way *way, uint32_t parse_node)
{
        way->kids = room(way->kids, way->n, &way->size, sizeof *way->kids);
        way->kids[way->n++] = parse_node;
}

/* A step back, by a link; other links start from a copy. */
static void step_back(const struct parser *q, struct way *way, struct link link)
{
        add_kid_to(way, link.parse_node);
        way->place = link.below;
        way->left -= !q->parse_nodes->list[link.parse_node].extra;
}

static struct way *copy_way(struct parser *q, const struct way *from, uint32_t *n)
{
        if (*n == WAYS_MAX) {
                q->gave_up = true;
                return NULL;
        }
        struct way *to = &q->ways[(*n)++];
        to->place = from->place;
        to->left = from->left;
        to->n = 0;
        for (uint32_t i = 0; i < from->n; i++)
                add_kid_to(to, from->kids[i]);
        return to;
}

/* All ways back over `count` nodes: in q->ways, in tree-sitter's order, the order of arrival. */
static uint32_t ways_back(struct parser *q, uint32_t top, uint32_t count)
{
        uint32_t n = 1, done = 0;
        q->ways[0].place = top;
        q->ways[0].left = count;
        q->ways[0].n = 0;
        while (done < n && !q->gave_up)
                for (uint32_t i = done, now = n; i < now; i++) {
                        struct way *way = &q->ways[i];
                        if (!way->left) {
                                struct way arrived = *way;
                                memmove(&q->ways[done + 1], &q->ways[done], (i - done) * sizeof arrived);
                                q->ways[done++] = arrived;
                                continue;
                        }
                        const struct link first = q->places[way->place].link;
                        for (uint32_t more = first.more; more && !q->gave_up; more = q->links[more].more) {
                                struct way *other = copy_way(q, way, &n);
                                if (other)
                                        step_back(q, other, q->links[more]);
                        }
                        step_back(q, way, first);
                }
        return n;
}

static uint32_t trailing_extras(const struct parser *q, const struct way *way)
{
        uint32_t n = 0;
        while (n < way->n && q->parse_nodes->list[way->kids[n]].extra)
                n++;
        return n;
}

/* Ways to the same place are readings of the same rule, and the best stays. */
static void reduce_ways(struct parser *q, uint32_t from, const TSParseAction *action)
{
        const struct version before = q->versions[from];
        uint32_t n = ways_back(q, before.top, action->reduce.child_count), at = top_of(q, &before)->at;
        bool done[WAYS_MAX] = { false };
        for (uint32_t i = 0; i < n && !q->gave_up; i++) {
                const struct way *best = &q->ways[i];
                if (done[i])
                        continue;
                uint32_t extras = trailing_extras(q, best);
                struct parse_node parse_node = build(q, action, best, extras, at);
                for (uint32_t j = i + 1; j < n; j++) {
                        const struct way *way = &q->ways[j];
                        if (done[j] || way->place != best->place)
                                continue;
                        uint32_t other_extras = trailing_extras(q, way);
                        const struct parse_node other = build(q, action, way, other_extras, at);
                        done[j] = true;
                        if (is_better(q, &parse_node, &other)) {
                                parse_node = other;
                                best = way;
                                extras = other_extras;
                        }
                }
                parse_node.precedence += action->reduce.dynamic_precedence;
                if (q->n == SLOTS) {
                        q->gave_up = true;
                        return;
                }
                struct version *version = &q->versions[q->n++];
                uint16_t state = look_up(q->tables, q->places[best->place].state, action->reduce.symbol);
                *version = (struct version){ .top = best->place, .scanner = before.scanner };
                *add_parse_node(q) = parse_node;
                push(q, version, last_parse_node(q), state);
                while (extras--)
                        push(q, version, best->kids[extras], state);
                for (uint32_t j = 0; j + 1 < q->n; j++)
                        if (j != from && merge(q, j, q->n - 1))
                                break;
        }
}

/* The usual case of reduce_ways(): a single version, a single way, and no extras; false: another case. */
static bool reduce_plainly(struct parser *q, const TSParseAction *action)
{
        struct version *version = &q->versions[0];
        struct parse_nodes *parse_nodes = q->parse_nodes;
        uint32_t n = action->reduce.child_count, at = version->top, end = q->places[at].at, start = end;
        int32_t precedence = action->reduce.dynamic_precedence;
        while (parse_nodes->kids_n + n >= parse_nodes->kids_size)
                parse_nodes->kids = room(parse_nodes->kids, parse_nodes->kids_size, &parse_nodes->kids_size,
                        sizeof *parse_nodes->kids);
        uint32_t *kids = parse_nodes->kids + parse_nodes->kids_n;
        for (uint32_t i = n; i-- > 0;) {
                const struct link *link = &q->places[at].link;
                const struct parse_node *child = &parse_nodes->list[link->parse_node];
                if (link->more || child->extra)
                        return false;
                kids[i] = link->parse_node;
                precedence += child->precedence;
                start = child->start;
                at = link->below;
        }
        const uint32_t first = n == 1 ? kids[0] : n ? parse_nodes->kids_n : 0;
        const uint16_t symbol = action->reduce.symbol, production = action->reduce.production_id;
        parse_nodes->kids_n += n == 1 ? 0 : n;
        version->top = at;
        q->places_n = at + 1 > q->kept ? at + 1 : q->kept;
        *add_parse_node(q) = (struct parse_node){ .start = start,
                .end = end,
                .n = n,
                .first = first,
                .symbol = symbol,
                .production = production,
                .precedence = precedence };
        push(q, version, last_parse_node(q), look_up(q->tables, q->places[at].state, symbol));
        return true;
}

/* The root gets the nodes before and after the program. */
static void accept(struct parser *q, struct version *version)
{
        struct parse_nodes *parse_nodes = q->parse_nodes;
        struct way *way = &q->ways[0];
        way->n = 0;
        shift(q, version, ROOT_STATE, q->token.symbol, true);
        uint32_t place = version->top, main = NONE;
        for (; place; place = q->places[place].link.below) {
                const struct link *link = &q->places[place].link;
                if (link->more)
                        q->gave_up = true;
                if (!parse_nodes->list[link->parse_node].extra && main == NONE)
                        main = way->n;
                add_kid_to(way, link->parse_node);
        }
        const struct parse_node old = parse_nodes->list[way->kids[main]];
        struct parse_node root = old;
        root.first = parse_nodes->kids_n;
        for (uint32_t i = way->n; i-- > 0;) {
                if (i != main)
                        add_kid(parse_nodes, way->kids[i]);
                for (uint32_t k = 0; i == main && k < old.n; k++)
                        add_kid(parse_nodes, parse_node_child(parse_nodes, &old, k));
        }
        root.n = parse_nodes->kids_n - root.first;
        root.start = parse_nodes->list[parse_nodes->kids[root.first]].start;
        root.end = top_of(q, version)->at;
        if (root.n == 1)
                root.first = parse_nodes->kids[root.first];
        version->gone = true;
        if (q->root == NONE || is_better(q, &parse_nodes->list[q->root], &root)) {
                *add_parse_node(q) = root;
                q->root = last_parse_node(q);
        }
}

/*
 * All actions of the grammar for a token in a state.  Each reduction makes versions of its own, and the first version
 * of the last reduction takes the place of this version unless the token is shifted here.
 */
static bool act(struct parser *q, uint32_t at, const TSParseActionEntry *entry, uint16_t symbol, bool *ret_reduced)
{
        struct version *version = &q->versions[at];
        uint32_t last = NONE;
        *ret_reduced = false;
        for (unsigned i = 1; i <= entry->entry.count; i++) {
                const TSParseAction *action = &entry[i].action;
                if (action->type == TSParseActionTypeShift && !action->shift.repetition) {
                        shift(q, version, action->shift.extra ? top_of(q, version)->state : action->shift.state, symbol,
                                action->shift.extra);
                        return true;
                }
                if (action->type == TSParseActionTypeReduce) {
                        uint32_t before = q->n;
                        *ret_reduced = true;
                        if (before == 1 && entry->entry.count == 1 && reduce_plainly(q, action))
                                return false;
                        reduce_ways(q, at, action);
                        last = q->n > before ? before : last;
                } else if (action->type == TSParseActionTypeAccept) {
                        accept(q, version);
                        return true;
                } else if (action->type == TSParseActionTypeRecover) {
                        version->gone = true;
                        return true;
                }
        }
        if (last != NONE) {
                *version = q->versions[last];
                drop_version(q, last);
        } else if (*ret_reduced) {
                version->gone = true;   /* became a part of another version */
        }
        return false;
}

/* Go on until the version has another token, or has come to its end. */
static void advance(struct parser *q, uint32_t at)
{
        struct version *version = &q->versions[at];
        uint16_t state = top_of(q, version)->state, symbol;
        bool reduced;
        if (!is_current(q, version, state) && !lex(q, version, state)) {
                version->gone = true;
                return;
        }
        symbol = q->token.symbol;
        for (;;) {
                const TSParseActionEntry *entry = actions_of(q->tables, top_of(q, version)->state, symbol);
                if (++q->work > q->work_max)
                        q->gave_up = true;
                if (act(q, at, entry, symbol, &reduced) || version->gone || q->gave_up)
                        return;
                if (reduced)
                        continue;
                /* A word without a meaning here may be a name. */
                uint16_t word = q->language->keyword_capture_token;
                if (!q->token.keyword || symbol == word ||
                        !actions_of(q->tables, top_of(q, version)->state, word)->entry.count) {
                        version->gone = true;
                        return;
                }
                symbol = word;
        }
}

/* ---- versions ---- */

/* Versions at the same place are merged; of the others, the version with the higher precedence comes first. */
static void condense(struct parser *q)
{
        for (uint32_t i = 0; i < q->n;)
                if (q->versions[i].gone)
                        drop_version(q, i);
                else
                        i++;
        for (uint32_t i = 1; i < q->n; i++)
                for (uint32_t j = 0; j < i; j++) {
                        if (merge(q, j, i)) {
                                i--;
                                break;
                        }
                        struct version *a = &q->versions[j], *b = &q->versions[i], old = *a;
                        if (top_of(q, a)->precedence < top_of(q, b)->precedence) {
                                *a = *b;
                                *b = old;
                        }
                }
        if (q->n > VERSIONS_MAX)
                q->gave_up = true;
}

static void run(struct parser *q)
{
        uint32_t last = 0;
        while (q->n && !q->gave_up) {
                for (uint32_t i = 0; i < q->n; i++)
                        while (!q->versions[i].gone && !q->gave_up) {
                                advance(q, i);
                                uint32_t at = top_of(q, &q->versions[i])->at;
                                if (at > last || (i && at == last)) {
                                        last = at;
                                        break;
                                }
                        }
                if (q->n > 1 || q->versions[0].gone)
                        condense(q);
        }
}

bool fast_parser_parse(const struct TSLanguage *language, const char *text, uint32_t len, struct parse_nodes *ret)
{
        struct parser q = { .tables = tables_of(language),
                .language = language,
                .parse_nodes = ret,
                .root = NONE,
                .live = NONE,
                .n = 1,
                .work_max = WORK_MIN + WORK_PER_BYTE * (uint64_t)len };
        *ret = (struct parse_nodes){ 0 };
        if (!q.tables || (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0))
                return false;
        q.lexer = (struct lexer){ .data = lexer_functions, .text = text, .len = len };
        buf_init(&q.states, SCANNERS_MAX);
        add_scanner(&q, "", 0);
        if (language->external_scanner.create)
                q.scanner = language->external_scanner.create();
        q.places = room(NULL, 0, &q.places_size, sizeof *q.places);
        q.places[q.places_n++] = (struct place){ .state = ROOT_STATE };
        q.links = room(NULL, 0, &q.links_size, sizeof *q.links);
        q.links[q.links_n++] = (struct link){ 0 };
        run(&q);
        if (language->external_scanner.destroy)
                language->external_scanner.destroy(q.scanner);
        for (size_t i = 0; i < WAYS_MAX; i++)
                free(q.ways[i].kids);
        free(q.places);
        free(q.links);
        free(q.scanners);
        buf_done(&q.states);
        ret->root = q.root;
        return q.root != NONE && !q.gave_up;
}

void fast_parser_free(struct parse_nodes *parse_nodes)
{
        free(parse_nodes->list);
        free(parse_nodes->kids);
        *parse_nodes = (struct parse_nodes){ 0 };
}
