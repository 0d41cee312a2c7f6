/* The frames of a run's private channel: a strict state machine over hostile bytes. */
#include "wire/wire.h"

#define IN(state) (1U << (state))
#define SMALL_JSON (256 * KIB)
#define FRAMES_MAX 4096
#define LONG_MIN_BYTES MIB     /* a payload in several frames with a higher limit gets its room at once */

/* States allowing a frame, its largest payload, and the state after its last piece. */
static const struct {
        unsigned states;
        size_t max;
        enum channel_state next;
        bool once;
} types[CHANNEL_TYPES] = {
        [CHANNEL_HELLO] =   { IN(CHANNEL_NEW),     4 * KIB,    CHANNEL_READY,   true },
        [CHANNEL_SYNTAX] =  { IN(CHANNEL_READY),   SMALL_JSON, CHANNEL_ENDED,   true },
        [CHANNEL_STARTED] = { IN(CHANNEL_READY),   0,          CHANNEL_RUNNING, true },
        [CHANNEL_ERROR] =   { IN(CHANNEL_RUNNING), SMALL_JSON, CHANNEL_RUNNING, true },
        [CHANNEL_VALUE] =   { IN(CHANNEL_RUNNING), 0,          CHANNEL_RUNNING, true },
        [CHANNEL_DONE] =    { IN(CHANNEL_RUNNING), 0,          CHANNEL_ENDED,   true },
        [CHANNEL_EXITING] = { IN(CHANNEL_ENDED),   3,          CHANNEL_GONE,    true },
        [CHANNEL_DISPLAY] = { IN(CHANNEL_RUNNING), 24 * MIB,   CHANNEL_RUNNING, false },
        [CHANNEL_MESSAGE] = { IN(CHANNEL_RUNNING), CHANNEL_MESSAGE_MAX, CHANNEL_RUNNING, false },
};

void channel_init(struct channel *channel, size_t value_max)
{
        *channel = (struct channel){ .state = CHANNEL_NEW };
        for (size_t i = 0; i < CHANNEL_TYPES; i++)
                buf_init(&channel->part[i], types[i].max);
        /* The JSON of a value is a little longer than the value: type name, escapes of its head. */
        buf_init(&channel->part[CHANNEL_VALUE], value_max * 2 + 4 * KIB);
}

void channel_done(struct channel *channel)
{
        for (size_t i = 0; i < CHANNEL_TYPES; i++)
                buf_done(&channel->part[i]);
}

static int broken(struct channel *channel, struct csn_error *err, const char *why)
{
        channel->state = CHANNEL_BROKEN;
        return err_set(err, CSN_E_PROTOCOL, 0, "the private channel was misused: %s", why);
}

int channel_take(struct channel *channel, const uint8_t *bytes, size_t len, struct csn_error *err)
{
        if (channel->state == CHANNEL_BROKEN)
                return broken(channel, err, "it is closed");
        if (len < CHANNEL_HEADER || len > CHANNEL_FRAME_MAX || memcmp(bytes, "CSN1", 4) != 0)
                return broken(channel, err, "no frame");
        enum channel_type type = bytes[4];
        unsigned flags = bytes[5];
        size_t payload = (size_t)bytes[8] | (size_t)bytes[9] << 8 | (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
        if (payload != len - CHANNEL_HEADER || bytes[6] || bytes[7] || (flags & ~(unsigned)CHANNEL_MORE))
                return broken(channel, err, "header is wrong");
        if (type == 0 || type >= CHANNEL_TYPES || !(types[type].states & IN(channel->state)) ||
                (type == CHANNEL_MESSAGE && !channel->has_messages))
                return broken(channel, err, "frame is not allowed now");
        if (channel->pending && channel->pending != type)
                return broken(channel, err, "pieces of two frames are mixed");
        if (!channel->pending && types[type].once && channel->part[type].bytes)
                return broken(channel, err, "frame came twice");
        if (type != CHANNEL_MESSAGE && ++channel->frames > FRAMES_MAX)
                return broken(channel, err, "too many frames");
        if (flags & CHANNEL_MORE && !channel->pending && channel->part[type].max > LONG_MIN_BYTES)
                buf_reserve(&channel->part[type], channel->part[type].max);
        if (!buf_add(&channel->part[type], bytes + CHANNEL_HEADER, payload))
                return broken(channel, err, "frame is too long");
        if (flags & CHANNEL_MORE) {
                channel->pending = type;
        } else {
                channel->pending = 0;
                channel->state = types[type].next;
        }
        return 0;
}

int channel_exit_status(const struct channel *channel)
{
        const struct buf *digits = &channel->part[CHANNEL_EXITING];
        int status = 0;
        if (channel->state != CHANNEL_GONE || !digits->len)
                return -1;
        for (size_t i = 0; i < digits->len; i++) {
                if (digits->bytes[i] < '0' || digits->bytes[i] > '9')
                        return -1;
                status = status * 10 + digits->bytes[i] - '0';
        }
        return status <= 255 ? status : -1;
}
