/* The sending end of the channel (docs/protocols/runner-channel.md), as class Channel in runner.py. */
#ifndef LANG_PYTHON_RUN_CHANNEL_H
#define LANG_PYTHON_RUN_CHANNEL_H

#include "base/base.h"

/*
 * Identity of the channel's descriptor: a program may close the descriptor and get the same number for a file of its
 * own.
 */
struct where {
        int fd, pid;
        unsigned long long device, inode;
};

/*
 * Move a descriptor far up, as Channel.move_away(), out of reach of programs that close or count low descriptors.  The
 * copy is close-on-exec.  Returns the new descriptor; -1: fd is not open.
 */
int channel_move_away(int fd);

/* The number after the move, if free. */
#define CHANNEL_USUAL_FD 900

/* Move descriptor 3 by channel_move_away().  false: there is no channel. */
bool channel_open(struct where *ret_where);

/*
 * Send a frame of at most CHANNEL_FRAME_MAX bytes, of a type of enum channel_type; `how`: flags of send(2).  false: not
 * sent, with errno.
 */
bool channel_send(const struct where *to, int type, int flags, const char *payload, size_t len, int how);

/* Send a whole message, across signals.  A lost channel is ignored. */
void channel_say(const struct where *to, int type, const char *payload, size_t len);

#endif
