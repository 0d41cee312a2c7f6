/* Hostile answers of an API server: the same objects however the bytes come, and pods within their bounds. */
#include "gateway/kube/kube.h"
#include "gateway/kube/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void on_object(void *owner, enum kube_event_type type, const json_t *object)
{
        struct kube_pod pod;
        if (type >= KUBE_EVENT_TYPES || !json_is_object(object))
                abort();
        if (!kube_pod_read(object, &pod)) {
                buf_printf(owner, "%d\n", type);
                return;
        }
        if (!pod.name[0] || strchr(pod.name, '/') || !pod.uid[0] || pod.worker || pod.owner || pod.next)
                abort();
        buf_printf(owner, "%d %s %s %s %s %d\n", type, pod.name, pod.phase, pod.reason, pod.waiting, pod.ready);
}

static void on_metadata(void *owner, const json_t *metadata)
{
        if (!json_is_object(metadata))
                abort();
        buf_add(owner, "m\n", 2);
}

static const struct kube_stream_events events = { on_object, on_metadata };

static int take(enum kube_stream_kind kind, const char *bytes, size_t len, size_t step, struct buf *ret)
{
        struct kube_stream stream;
        struct csn_error err;
        int rc = 0;
        kube_stream_init(&stream, kind, &events, ret);
        for (size_t at = 0; rc == 0 && at < len; at += step)
                rc = kube_stream_take(&stream, bytes + at, min_u64(step, len - at), &err);
        if (stream.object.len > KUBE_OBJECT_MAX)
                abort();
        kube_stream_done(&stream);
        return rc;
}

/* The first byte chooses a list or a watch. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        struct buf once, slowly;
        if (!len)
                return 0;
        enum kube_stream_kind kind = bytes[0] & 1 ? KUBE_WATCH : KUBE_LIST;
        const char *text = (const char *)bytes + 1;
        size_t n = len - 1;
        buf_init(&once, MIB);
        buf_init(&slowly, MIB);
        int rc = take(kind, text, n, n ? n : 1, &once);
        if (take(kind, text, n, 3, &slowly) != rc || once.len != slowly.len ||
                (once.len && memcmp(once.bytes, slowly.bytes, once.len) != 0))
                abort();
        buf_done(&once);
        buf_done(&slowly);
        return 0;
}
