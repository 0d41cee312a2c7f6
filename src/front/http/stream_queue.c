/*
 * The queue of a stream: bytes not read by the client yet, in blocks; and when its producer has to wait.
 *
 * A block is freed after its last byte is read, so the memory of a queue is its unread bytes and at most two blocks
 * more.  A buffer growing by doubling keeps read bytes until its end; with hundreds of slow readers most bytes in
 * memory would be read already.
 */
#include "front/http/http_private.h"

#define BLOCK_SIZE (16 * KIB)
#define BLOCK_FIRST (1 * KIB)              /* most streams have a few hundred bytes in their queue */

struct http_block {
        struct http_block *next;
        size_t from, to, size;             /* unread bytes, and the size of the array */
        char bytes[];
};

static struct http_block *block_new(struct http_queue *queue, size_t len)
{
        size_t size = queue->len ? BLOCK_SIZE : max_u64(min_u64(len, BLOCK_SIZE), BLOCK_FIRST);
        struct http_block *block = mem_resize(NULL, sizeof *block + size);   /* without zeros: all bytes are written */
        *block = (struct http_block){ .size = size };
        *(queue->last ? &queue->last->next : &queue->first) = block;
        return queue->last = block;
}

void stream_add(struct http_queue *queue, const char *bytes, size_t len)
{
        while (len) {
                struct http_block *block = queue->last;
                if (!block || block->to == block->size)
                        block = block_new(queue, len);
                size_t n = min_u64(len, block->size - block->to);
                memcpy(block->bytes + block->to, bytes, n);
                block->to += n;
                queue->len += n;
                bytes += n;
                len -= n;
        }
}

const char *stream_front(const struct http_queue *queue, size_t *ret_len)
{
        const struct http_block *block = queue->first;
        *ret_len = block ? block->to - block->from : 0;
        return block ? block->bytes + block->from : NULL;
}

void stream_drop(struct http_queue *queue, size_t len)
{
        struct http_block *block = queue->first;
        block->from += len;
        queue->len -= len;
        if (block->from < block->to)
                return;
        queue->first = block->next;
        if (!queue->first)
                queue->last = NULL;
        free(block);
}

size_t stream_read(struct http_queue *queue, char *bytes, size_t size)
{
        size_t n = 0, len;
        for (const char *front; n < size && (front = stream_front(queue, &len)); n += len) {
                len = min_u64(len, size - n);
                memcpy(bytes + n, front, len);
                stream_drop(queue, len);
        }
        return n;
}

void stream_free(struct http_queue *queue)
{
        for (struct http_block *block = queue->first, *next; block; block = next) {
                next = block->next;
                free(block);
        }
        *queue = (struct http_queue){ 0 };
}

/* ---- the queue of a request ---- */

size_t http_queued(const struct http_request *request)
{
        return request->queue.len;
}

void http_charge_queue(struct http_request *request)
{
        uint64_t queued = http_queued(request), *charged = &request->charged[SHARE_STREAMS];
        if (queued > *charged)
                share_count(request->holder, SHARE_STREAMS, queued - *charged);
        else
                share_give(request->holder, SHARE_STREAMS, *charged - queued);
        *charged = queued;
}

bool http_has_room(struct http_request *request)
{
        size_t queued = http_queued(request), low = request->waits ? HTTP_STREAM_LOW / 2 : HTTP_STREAM_LOW;
        request->waits = queued >= HTTP_STREAM_MIN &&
                (queued >= low || !share_fits(request->holder, SHARE_STREAMS, BLOCK_SIZE));
        return !request->waits;
}

void http_tell_room(struct http_request *request)
{
        if (request->waits && http_has_room(request) && request->room && !request->ended)
                request->room(request);
}
