/* Shared by the files of packages/index with input and output. */
#ifndef PACKAGES_INDEX_INDEX_PRIVATE_H
#define PACKAGES_INDEX_INDEX_PRIVATE_H

#include "net/http_client.h"
#include "packages/index/document.h"

#define DOCUMENT_AT_ONCE_MAX (32 * KIB)    /* bytes of a document for a parse in the loop */

/* ---- upstream.c ---- */

/* The configured upstream.  Embedded in the index. */
struct upstream {
        struct fetcher *fetcher;
        char *url;                         /* without "/" at its end */
        char *scheme, *host;               /* the origin: the token is sent to this scheme, host and port alone */
        unsigned port;
        char *authorization;               /* the header, or NULL */
        const struct package_trust *trust;   /* NULL: the host's */
        uint64_t request_ms;
};

/* Errors: CSN_E_CONFIG, CSN_E_SYSTEM. */
int upstream_init(struct upstream *upstream, struct loop *loop, const struct package_index_settings *settings,
        struct csn_error *err);
void upstream_done(struct upstream *upstream);

/* A request of libcurl (CURL *) accepts these authorities alone (trust.c). */
void package_trust_use(const struct package_trust *trust, void *easy);

/* A GET, redirects followed.  Embedded in its owner; all zeros means none. */
struct upstream_request {
        struct fetch fetch;
        struct upstream *upstream;
        const char *accept;                /* static text, or NULL */
        bool is_file;                      /* limited by its progress, not by its whole time */
        struct curl_slist *headers;
        char url[PACKAGE_URL_MAX];         /* after redirects */
        unsigned redirects;
        bool at_origin;                    /* url is at the upstream's scheme, host and port */
        bool refused_address;              /* url's host has no public address */
        bool too_large;                    /* bytes() has returned false */
        size_t ignored;                    /* bytes of answers with another status than 200 */
        /* The next bytes of an answer with status 200.  false: too many. */
        bool (*bytes)(struct upstream_request *request, const void *bytes, size_t len);
        /* Called once, from the loop: PACKAGE_FINE, or the reason. */
        void (*done)(struct upstream_request *request, enum package_problem problem, const char *text);
        void *owner;
};

/* Set bytes, done, owner, accept and is_file before.  false: the URL is not permitted, and done() is not called. */
bool upstream_start(struct upstream_request *request, struct upstream *upstream, const char *url);
/* The media type of the answer; "": none. */
const char *upstream_content_type(const struct upstream_request *request);
/* End without done(), and free.  Harmless twice. */
void upstream_stop(struct upstream_request *request);

/* ---- waiting.c ---- */

/* A pending wait for a project or a file.  Embedded in its owner. */
struct waiter {
        struct waiter *next;
        bool active;
        void (*ready)(struct waiter *waiter);
        void *owner;
};

void waiters_add(struct waiter **list, struct waiter *waiter);
void waiters_remove(struct waiter **list, struct waiter *waiter);
/* Call ready() of all, each after its removal. */
void waiters_call(struct waiter **list);

/* ---- spool.c ---- */

/* A transfer of a file or of the metadata of a wheel, during the transfer and afterwards. */
struct spool {
        struct package_index *index;
        struct spool *next;
        const struct document_file *file;
        bool is_metadata;
        bool is_finished;
        enum package_problem problem;
        char text[PACKAGE_TEXT_MAX];
        struct upstream_request request;
        int fd;
        uint64_t size;
        void *hash;                        /* EVP_MD_CTX of openssl */
        struct waiter *waiters;
};

/*
 * Wait for the verified bytes of an offered file.  waiter->ready() is called from the loop, or before the return if
 * the file was fetched before; the spool is valid during the call, and *ret is the spool from the return until then.
 */
void spool_wait(struct package_index *index, const struct document_file *file, bool is_metadata, struct waiter *waiter,
        struct spool **ret);
/* Cancel a wait; a transfer without waiters ends. */
void spool_leave(struct spool *spool, struct waiter *waiter);
void spools_close(struct package_index *index);

/* ---- project.c ---- */

enum project_state { PROJECT_IDLE, PROJECT_FETCHING, PROJECT_PARSING, PROJECT_LOADED };

struct project {
        struct package_project info;
        struct package_index *index;
        char name[PACKAGE_NAME_MAX];
        enum project_state state;
        struct upstream_request request;
        struct buf raw;                    /* the upstream's document */
        struct document_rules rules;       /* of the job */
        enum document_format format;
        struct document document;
        struct job job;
        struct waiter *waiters;
};

struct package_index {
        struct loop *loop;
        struct workers *workers;
        struct package_index_settings settings;    /* texts are in the arena; token and certificates are in upstream */
        struct arena arena;
        struct upstream upstream;
        struct project **projects;
        size_t projects_n;
        struct project invalid, surplus;   /* results for texts without a name, and for names above the ceiling */
        struct spool *spools;
        struct call *calls;                /* of package_index_load() and package_index_download() */
        uint64_t spooled_bytes, spooled_files, document_bytes;
        struct package_index_usage usage;
        enum package_problem failure;      /* package_index_failure() */
        char failure_text[PACKAGE_TEXT_MAX + 160];
        struct server *server;             /* connection.c */
};

/*
 * Wait for the document of a project: the result is a project whose document is loaded.  As spool_wait(): *ret is set,
 * and ready() may be called before the return.
 */
void project_wait(struct package_index *index, const char *name, size_t len, struct waiter *waiter,
        struct project **ret);
void project_leave(struct project *project, struct waiter *waiter);

/* The project of a canonical name.  NULL: not asked for. */
struct project *project_find(const struct package_index *index, const char *name);
/* Make an empty project a constant result, which is loaded. */
void project_fix(struct project *project, struct package_index *index, enum package_problem problem, const char *text);
/* Waits for a running job. */
void project_free(struct project *project);

/* The offered file of a path "/files/...", with or without ".metadata" at its end.  NULL: none. */
struct document_file *package_index_find_path(const struct package_index *index, const char *path,
        bool *ret_is_metadata);

/* ---- connection.c ---- */

int server_open(struct package_index *index, int listen_fd, struct csn_error *err);
void server_close(struct package_index *index);

#endif
