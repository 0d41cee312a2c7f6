/*
 * kube_stream: objects out of the answer of a list or a watch, bytes in, objects out.
 *
 * The answer has any length; one object has at most KUBE_OBJECT_MAX bytes.  Memory is needed for one object at a time.
 */
#ifndef GATEWAY_KUBE_STREAM_H
#define GATEWAY_KUBE_STREAM_H

#include "base/base.h"

#include <jansson.h>

/* etcd refuses objects above 1.5 MiB. */
#define KUBE_OBJECT_MAX (2 * MIB)

enum kube_stream_kind {
        KUBE_LIST,                         /* {"kind": "PodList", "metadata": {…}, "items": [{…}, …]} */
        KUBE_WATCH                         /* a line for each event: {"type": "ADDED", "object": {…}} */
};

enum kube_event_type { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED, KUBE_BOOKMARK, KUBE_ERROR, KUBE_EVENT_TYPES };

struct kube_stream_events {
        /* An item of a list is KUBE_ADDED.  The object is the stream's. */
        void (*object)(void *owner, enum kube_event_type type, const json_t *object);
        /* The member `metadata` of a list. */
        void (*metadata)(void *owner, const json_t *metadata);
};

struct kube_stream {
        enum kube_stream_kind kind;
        const struct kube_stream_events *events;
        void *owner;
        struct buf object;                 /* incomplete object or line */
        unsigned depth;                    /* open brackets */
        char key[16];                      /* of a list: the newest key at depth 1, cut */
        size_t key_len;
        bool in_text, escaped, is_key;     /* in_text: between quotes; is_key: a text at depth 1 would be a key */
        bool in_items, is_object, is_metadata, is_over;
};

/* The caller ends with kube_stream_done(). */
void kube_stream_init(struct kube_stream *stream, enum kube_stream_kind kind, const struct kube_stream_events *events,
        void *owner);
void kube_stream_done(struct kube_stream *stream);
/*
 * Parse the next bytes.  Events of unknown types are ignored.  Errors: CSN_E_PROTOCOL (no JSON, an object that is too
 * long, bytes behind a list); the stream takes nothing more.
 */
int kube_stream_take(struct kube_stream *stream, const char *bytes, size_t len, struct csn_error *err);
/* Whether a list is complete.  An incomplete line of a watch is no error: the next watch has its event again. */
bool kube_stream_is_complete(const struct kube_stream *stream);

#endif
