/*
 * packages/index: the only package index within reach of a resolver in a sandbox.
 *
 * pip or npm runs in a sandbox without network.  Inside, a socket listens on 127.0.0.1:3128; its descriptor was passed
 * out to the engine, and the index answers on the socket.  The index fetches documents and files from a configured
 * upstream, with TLS and a token of its own, hides the files without permission by the settings, and rewrites all
 * addresses to itself.  So the resolver chooses among permitted files only.
 *
 *   names.c          names, file names, versions, times, lists            (pure)
 *   simple_json.c    PEP 691 documents                                    (pure, fuzzed)
 *   simple_html.c    PEP 503 pages                                        (pure, fuzzed)
 *   npm_document.c   documents of an npm registry                         (pure, fuzzed)
 *   filter.c         which files may be offered                           (pure, fuzzed)
 *   document.c       the documents that the index serves                  (pure, fuzzed)
 *   upstream.c       requests to the upstream: redirects, token, addresses
 *   spool.c          files: fetched whole, verified, kept until the index is closed
 *   project.c        projects: documents that are fetched and kept
 *   waiting.c        lists of waiters
 *   index.c          the functions of this header
 *   connection.c     the resolver's connections: accept, read the head, answer
 *
 * What the index serves: GET /simple/NAME/ (PEP 691 JSON), GET /NAME and GET /@SCOPE%2fNAME (npm), and the addresses
 * /files/HASH/NAME/FILE of offered files.  The bytes of a file are served after their hash
 * was found to be the hash of the document.
 *
 * The token is sent to the upstream's own scheme, host and port alone.  No text of this folder contains the token, or
 * an address of the upstream.
 */
#ifndef PACKAGES_INDEX_INDEX_H
#define PACKAGES_INDEX_INDEX_H

#include "base/base.h"
#include "base/worker.h"

#define PACKAGE_INDEX_BASE "http://127.0.0.1:3128"

#define PACKAGE_DOCUMENT_BYTES_MAX (64 * MIB)       /* of a document of the upstream */
#define PACKAGE_DOCUMENTS_BYTES_MAX (512 * MIB)     /* of all documents of an index */
#define PACKAGE_DOCUMENT_FILES_MAX 50000            /* files or versions of a document */
#define PACKAGE_PROJECTS_MAX 1000                   /* names for which an index asks its upstream */
#define PACKAGE_METADATA_BYTES_MAX (4 * MIB)        /* of the metadata file of a wheel (PEP 658) */
#define PACKAGE_CONNECTIONS_MAX 16                  /* simultaneous; a further connection waits in the kernel's queue */
#define PACKAGE_REQUESTS_MAX 20000                  /* of an index; then its socket is closed */
#define PACKAGE_REDIRECTS_MAX 3
#define PACKAGE_TEXT_MAX 300                        /* of a reason, with its NUL */

enum package_kind { PACKAGE_PYTHON, PACKAGE_NODE };

/* Reasons for a failed resolution; the names are values of the field "code" of errors. */
enum package_problem {
        PACKAGE_FINE,
        PACKAGE_NOT_FOUND,
        PACKAGE_UNREACHABLE,       /* the upstream does not answer, or has an error of its own: later may help */
        PACKAGE_UNTRUSTED,         /* the upstream sent a wrong document, or a redirect to a forbidden address */
        PACKAGE_TOO_NEW,
        PACKAGE_NO_UPLOAD_TIME,
        PACKAGE_NO_WHEEL,
        PACKAGE_NOT_ALLOWED,
        PACKAGE_TOO_LARGE,
        PACKAGE_TOO_MANY,
        PACKAGE_HASH_MISMATCH,
};

/* "package_not_found", "index_unreachable" and so on; PACKAGE_FINE has none: "". */
const char *package_problem_name(enum package_problem problem);

/* Certificates of authorities (trust.c). */
struct package_trust;

/*
 * Parse certificates in PEM, 0.4 ms each: before the loop runs, or in a helper thread.  *ret is the caller's
 * until package_trust_free().  Errors: CSN_E_CONFIG (no certificate, or one that cannot be read).
 */
int package_trust_new(const char *pem, struct package_trust **ret, struct csn_error *err);
/* NULL is allowed. */
void package_trust_free(struct package_trust *trust);

/* package_index_open() copies all texts. */
struct package_index_settings {
        enum package_kind kind;
        const char *url;               /* of the upstream: "https://pypi.org/simple", "https://registry.npmjs.org" */
        /* "USER:PASSWORD" is sent as Basic, any other text as Bearer.  NULL or "": none. */
        const char *token;
        /*
         * The upstream's authorities, which have to outlive the index.  NULL: the host's, by their hashes in
         * /etc/ssl/certs.
         */
        const struct package_trust *trust;
        const char *base_url;          /* of this index in the view of its clients; NULL: PACKAGE_INDEX_BASE */
        /* Folder for unlinked files (O_TMPFILE of open(2)).  NULL: memory (memfd_create(2)). */
        const char *spool_folder;
        uint64_t min_age_ms;           /* younger files are hidden */
        bool require_upload_time;      /* files without a time are hidden, and HTML pages refused */
        bool wheels_only;              /* Python: false lets source archives pass */
        /*
         * Names, which are compared in canonical form.  "*" at the end of an entry stands for any text.  allow_n 0: all
         * names.  deny wins.
         */
        char *const *allow;
        size_t allow_n;
        char *const *deny;
        size_t deny_n;
        uint64_t max_bytes;            /* of all fetched files, and so of each file; 0: 1 GiB */
        uint64_t max_files;            /* fetched files, each of which has an open descriptor; 0: 256 */
        uint64_t request_ms;           /* for a request to the upstream; 0: 30000 */
        const char *share;             /* of helper threads (base/worker.h): the tenant; NULL: "" */
};

/* An offered file.  The texts are the index' until package_index_close(). */
struct package_file {
        const char *name;              /* canonical */
        const char *version;
        const char *filename;          /* without a "/" */
        const char *path;              /* at this index: "/files/HASH/NAME/FILENAME" */
        const char *hash;              /* Python: 64 digits of SHA-256.  Node: "sha512-BASE64" */
        int64_t upload_time_ms;        /* since 1970; 0: unknown */
        uint64_t size;                 /* as the document says; 0: unknown */
        const char *requires_python;   /* "": none */
        bool has_install_script;       /* Node */
};

/* Numbers of files, of a document or of all documents. */
struct package_counts {
        uint64_t offered;
        uint64_t hidden_by_age;        /* younger than min_age_ms */
        uint64_t hidden_without_time;
        uint64_t hidden_by_kind;       /* no wheel, or a wrong name, version or address */
        uint64_t hidden_yanked;
        uint64_t hidden_without_hash;
};

/* A requested name. */
struct package_project {
        const char *name;              /* canonical */
        bool is_loaded;                /* the members below are valid */
        enum package_problem problem;  /* why nothing is offered; PACKAGE_FINE: something is */
        const char *text;              /* the problem as a sentence, or which files were hidden and why; "": none */
        struct package_counts counts;
};

struct package_index_usage {
        uint64_t requests;             /* of clients */
        uint64_t documents;            /* fetched */
        uint64_t downloads;            /* files fetched and verified */
        uint64_t bytes;                /* from the upstream */
        uint64_t hidden_by_list;       /* names excluded by allow or deny */
        struct package_counts counts;
};

struct package_index;

/*
 * Serve the listening socket listen_fd, which becomes the callee's even on failure; -1: no client, only the functions
 * below.  workers (engine_workers()) must outlive the index.  *ret is the caller's until package_index_close().
 * Errors: CSN_E_CONFIG (the URL, the certificates), CSN_E_SYSTEM.
 */
int package_index_open(struct loop *loop, struct workers *workers, int listen_fd,
        const struct package_index_settings *settings, struct package_index **ret, struct csn_error *err);
/*
 * Close all connections, files and the listening socket, and free the index; no callback is called.  A running job of a
 * helper thread is waited for.  NULL is allowed.
 */
void package_index_close(struct package_index *index);

/* Close the listening socket and all connections: no client is served any more.  Documents and files stay. */
void package_index_stop_serving(struct package_index *index);

/*
 * Load the document of a project without a client.  done() is called once, perhaps before the return, unless the index
 * is closed before; done() must not close the index.
 */
void package_index_load(struct package_index *index, const char *name,
        void (*done)(void *owner, const struct package_project *project), void *owner);

/* The project of a name, in any spelling; NULL: not asked for. */
const struct package_project *package_index_project(const struct package_index *index, const char *name);
/* Projects in the order of their first requests; NULL: no further project. */
const struct package_project *package_index_project_at(const struct package_index *index, size_t at);

/*
 * The offered file of an address: a path or a URL ("http://127.0.0.1:3128/files/...").  NULL: no such file was offered.
 * A resolver's lock is judged by this function: the result is from the index, not from the resolver.
 */
const struct package_file *package_index_file(const struct package_index *index, const char *url);

/*
 * Fetch a file; a file is fetched once.  done() is called once, perhaps before the return, unless the index is
 * closed before; done() must not close the index.  fd has the verified bytes (`size` of them), is the index' until
 * package_index_close(), and is shared with other readers: use pread(2), or linkat(2) from the spool folder.
 * -1: problem and text are the reason.
 */
void package_index_download(struct package_index *index, const struct package_file *file,
        void (*done)(void *owner, int fd, uint64_t size, enum package_problem problem, const char *text), void *owner);

/*
 * The reason for which the index could not serve a file, the last one; PACKAGE_FINE: none.  *ret_text names the file,
 * and is the index' until the next failure.
 */
enum package_problem package_index_failure(const struct package_index *index, const char **ret_text);

void package_index_usage(const struct package_index *index, struct package_index_usage *ret);

#endif
