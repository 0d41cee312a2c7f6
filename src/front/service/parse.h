/*
 * parse: JSON from a client into a struct or a tree, within ceilings; by a helper thread if the text is long.
 *
 * A client decides how long a text is and how many values the text has, and both decide how long a parser takes.  So
 * the number of values has a ceiling, which is checked before a tree is made, and a text above PARSE_AT_ONCE_MAX bytes
 * is parsed outside of the event loop.
 */
#ifndef FRONT_SERVICE_PARSE_H
#define FRONT_SERVICE_PARSE_H

#include "base/worker.h"
#include "front/http/http.h"

#define PARSE_AT_ONCE_MAX (32 * KIB)       /* bytes of a text that is parsed in the loop */
#define PARSE_VALUES_MAX 200000            /* values and names of a text that becomes a struct */
#define PARSE_CASES_VALUES_MAX 1000000     /* the same for a request to grade */

/* What a text becomes.  All functions are called in a helper thread: they use their arguments only. */
struct parse_kind {
        /* The result is the tree, from this function; the other members are not used.  NULL: a struct. */
        json_t *(*load)(const char *text, size_t len, struct csn_error *err);
        const struct object *object;
        /* Decode a tree, which may be changed, into the object's struct; NULL: model_decode(). */
        int (*decode)(json_t *json, struct arena *arena, void *ret, struct csn_error *err);
        /* Whether the result is the tree and no struct, because the front completes the tree; NULL: never. */
        bool (*keeps_tree)(const json_t *json);
        size_t values_max;
        bool is_line;                      /* the members "id" and "cancel" are taken out first */
};

/*
 * A front's own struct of a body in the format of another service, so that the handler has no long work left.  Such a
 * body is parsed before the handler is called, a short one at once.
 */
struct parse_converter {
        void (*handle)(struct http_request *request); /* the handler of the routes whose bodies are converted */
        /* Called in the loop: values for convert(), from the arena.  NULL: none. */
        void *(*begin)(struct http_request *request, struct arena *arena);
        /* Called in a helper thread, as load() of struct parse_kind.  NULL: by the kind of the body. */
        json_t *(*load)(const char *text, size_t len, struct csn_error *err);
        /*
         * Called in a helper thread: the struct, from the arena.  tree: the body, which may be changed; NULL: no
         * object, or over a ceiling, as error->text says.  context: from begin().  NULL: the handler takes the tree.
         */
        void *(*convert)(json_t *tree, const struct csn_error *error, void *context, struct arena *arena);
        /* Free the memory of the struct that is not from the arena, in any thread.  NULL: nothing. */
        void (*drop)(void *given);
        bool keeps_tree; /* for the handler; else the helper thread frees the tree */
};

/* A text on its way.  The caller's until parse_free(). */
struct parse {
        /* The result.  error.code 0: good; error.sys EFBIG: the text has more values than values_max. */
        struct csn_error error;
        void *given;                       /* the struct, in `arena`; NULL: a line that has "cancel" */
        struct arena arena;
        json_t *tree;
        json_t *id, *cancel;               /* of a line, or NULL; an integer beyond 64 bits is a text */
        char sha256[65];                   /* of the text, if that was asked for */

        /* Private. */
        struct parse_kind kind;
        const struct parse_converter *converter; /* NULL: a body without one */
        void *context;                           /* from begin() of the converter */
        struct job job;
        struct workers *workers;           /* NULL: parsed at once */
        char share[WORKER_SHARE_MAX];
        char *text;
        size_t len;
        bool digests;
        void (*done)(void *owner);         /* NULL: parse_free() was called while the job worked */
        void *owner;
};

/*
 * Parse a text from malloc(3), which becomes the callee's.  done() is called from the loop, never before parse_start()
 * returns.  share: the tenant.  digests: compute sha256, too.
 */
struct parse *parse_start(struct workers *workers, const char *share, const struct parse_kind *kind, char *text,
        size_t len, bool digests, void (*done)(void *owner), void *owner);
/* The same at once, for at most PARSE_AT_ONCE_MAX bytes, which stay the caller's. */
struct parse *parse_now(const struct parse_kind *kind, const char *text, size_t len);
/* done() is not called any more.  NULL is allowed. */
void parse_free(struct parse *parse);
/* Move the struct of a good result to *ret, and its memory to an arena. */
void parse_take(struct parse *parse, struct arena *arena, void *ret);
/* Move the memory of the struct to an arena; the memory that drop() of a converter frees becomes the caller's. */
void parse_move(struct parse *parse, struct arena *arena);

/* ---- bodies of requests ---- */

/*
 * Parse the body of a request before its handler is called, if the body is JSON by its route, and long or converted:
 * events->parse() of the listeners.  The text of a long body is gone then: request->body has its length alone.
 */
bool parse_body(void *owner, struct http_request *request);
/* The parsed body; NULL: the body is short and not converted, and whole in request->body. */
struct parse *parse_of(const struct http_request *request);
/*
 * The tree of a BODY_TREE, which may have U+0000: see json_body_parse().  The caller's reference; NULL with err->text:
 * no object, or over a ceiling.
 */
json_t *json_body(const struct http_request *request, struct csn_error *err);

#endif
