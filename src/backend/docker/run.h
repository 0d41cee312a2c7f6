/* docker run: one program in one container. */
#ifndef BACKEND_DOCKER_RUN_H
#define BACKEND_DOCKER_RUN_H

#include "backend/docker/container.h"
#include "backend/far_ends.h"

enum run_step {
        STEP_NONE,      /* before the program of the engine */
        STEP_CONTAINER, /* until a container is ready */
        STEP_PUT,       /* input files */
        STEP_LISTEN,    /* sockets for tools and for the proxy */
        STEP_PROGRAM,   /* the program starts and runs */
        STEP_SETTLE,    /* after the program: its leftover processes, its usage */
        STEP_LIST,      /* names of the files after the program */
        STEP_GET,       /* content of new and changed files */
        STEP_OVER,      /* until all output is read */
};

/* A file in the home directory. */
struct run_file {
        char *name;
        uint64_t size, mtime_ms, mode;
        bool is_there; /* after the program */
};

struct run_connection;

/* A listening socket inside, and its counterpart on this host. */
struct run_socket {
        struct guest_op op;
        struct docker_run *run;
        uint64_t port; /* 0: the tool socket */
        bool wanted, listens;
        char path[80];                   /* of the engine's listening socket on this host */
};

struct docker_run {
        struct docker_run *next;
        struct backend_link *link;
        uint32_t id;
        void *owner;
        const struct backend_program *what;
        struct container_key key;
        struct far_ends ends;
        struct container *container;
        enum run_step step;
        struct guest_op program, file, facts;
        struct run_socket sockets[2];
        char sockets_folder[64]; /* or "" */
        struct run_connection *connections;
        size_t connections_waiting;        /* bytes of programs for connections on this host */
        size_t at;               /* of the input files, or of `after` */
        int source;              /* descriptor of the input file, or -1 */
        struct wire_file input;  /* the input file in transfer */
        size_t input_at;         /* sent bytes of the input file */
        int target;              /* descriptor of the output file, or -1 */
        struct arena arena;      /* names of files */
        struct run_file *before; /* input files */
        struct run_file *after;  /* new and changed files */
        size_t before_n, after_n, after_max;
        size_t entries_n;                  /* of the list */
        bool list_cut;
        uint64_t room;       /* bytes left for output files */
        size_t stdin_at;     /* sent bytes of standard input */
        uint64_t stdin_room; /* bytes of room at the guest */
        struct timer wall, poll, late, step_timer;
        uint64_t asked_us, began_us, ended_us;
        bool asked;              /* the program may have begun */
        bool looks; /* seen() is expected */
        bool kills; /* the requested facts follow the kill of all processes */
        bool exited, settled;
        uint64_t status, reasons, leftovers;
        struct guest_facts used;
        struct csn_error error; /* code 0: none */
        /* Go on to this step; and end the run with this error, with removal of the container. */
        void (*go)(struct docker_run *run, enum run_step step);
        void (*fail)(struct docker_run *run, const struct csn_error *error);
        void (*flow)(struct docker_run *run); /* connections_waiting has changed */
};

/* ---- run_files.c ---- */

/* Send the next input file, or go on to STEP_LISTEN. */
void run_put_next(struct docker_run *run);
/* The stream has room: send more of the input file. */
void run_put_more(struct docker_run *run);
void run_list(struct docker_run *run);
/* Fetch the next new or changed file, or go on to STEP_OVER. */
void run_get_next(struct docker_run *run);
/* Remove an incomplete output file. */
void run_files_stop(struct docker_run *run);
void run_files_done(struct docker_run *run);

/* ---- run_sockets.c ---- */

/* Make the sockets for these flags of a shape, and fill in their descriptors.  Errors: CSN_E_SYSTEM. */
int run_sockets_open(struct docker_run *run, uint64_t flags, struct backend_ends *ends, struct csn_error *err);
/* Listen inside with each socket in turn, and then go on to STEP_PROGRAM. */
void run_sockets_listen(struct docker_run *run);
void run_sockets_close(struct docker_run *run);

#endif
