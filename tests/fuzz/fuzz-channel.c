/*
 * The private channel: a stream of frames as a hostile program would send them; two bytes of length before each.  They
 * are taken as those of a run, and as those of a context, where displays are taken out as they come and the next
 * execution follows the end of one.
 */
#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define VALUE_MAX 1000

static void require(bool condition)
{
        if (!condition)
                abort();
}

static void begin(struct channel *channel, bool context)
{
        channel_init(channel, VALUE_MAX);
        if (context)
                channel->state = CHANNEL_READY;    /* its HELLO came when it was started */
}

/*
 * As src/engine/persistent/context.c has it: a display is the caller's when it is whole, and at the end a new execution
 * begins.
 */
static void serve(struct channel *channel, const uint8_t *bytes, size_t len)
{
        struct buf *display = &channel->part[CHANNEL_DISPLAY];
        struct csn_error err;
        int rc = channel_take(channel, bytes, len, &err);
        require(rc < 0 || bytes[4] != CHANNEL_EXECUTE);    /* that is ours to say */
        if (rc == 0 && bytes[4] == CHANNEL_DISPLAY && !channel->pending) {
                require(channel->state == CHANNEL_RUNNING && display->bytes && strlen(display->bytes) <= display->len);
                size_t max = display->max;
                buf_done(display);
                buf_init(display, max);
        }
        if (rc < 0 || channel->state == CHANNEL_ENDED) {
                channel_done(channel);
                begin(channel, true);
        }
}

static void take(struct channel *channel, const uint8_t *bytes, size_t len)
{
        struct csn_error err;
        enum channel_state before = channel->state;
        int rc = channel_take(channel, bytes, len, &err);
        require((rc < 0) == (channel->state == CHANNEL_BROKEN) && !(before == CHANNEL_BROKEN && rc == 0));
        require(rc == 0 || err.code == CSN_E_PROTOCOL);
        require(channel_exit_status(channel) >= -1 && channel_exit_status(channel) <= 255);
}

static void play(const uint8_t *bytes, size_t len, bool context)
{
        struct channel channel;
        begin(&channel, context);
        while (len >= 2) {
                size_t frame = (size_t)bytes[0] | (size_t)bytes[1] << 8;
                bytes += 2;
                len -= 2;
                if (frame > len)
                        frame = len;
                if (context)
                        serve(&channel, bytes, frame);
                else
                        take(&channel, bytes, frame);
                require(channel.part[CHANNEL_VALUE].len <= VALUE_MAX * 2 + 4096);
                bytes += frame;
                len -= frame;
        }
        channel_done(&channel);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
        play(bytes, len, false);
        play(bytes, len, true);
        return 0;
}
