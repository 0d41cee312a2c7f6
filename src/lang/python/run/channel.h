/* The sending end of the channel (docs/protocols/runner-channel.md), as Channel in runner.py has it. */
#ifndef PYTHON_CHANNEL_H
#define PYTHON_CHANNEL_H

#include "base/base.h"

/* What Channel knows of its descriptor: a program may have closed it, and got the same number for a file of its own. */
struct where {
        int fd, pid;
        unsigned long long device, inode;
};

/* Programs that close or count the low descriptors should not meet ours: moved far up, as Channel.move_away() does.  It is closed on exec; -1: fd is none. */
int channel_move_away(int fd);

/* Where it is moved to if that is free. */
#define CHANNEL_USUAL_FD 900

/* Descriptor 3, moved to where programs do not meet it.  False if there is no channel. */
bool channel_open(struct where *ret_where);

/* A frame of up to CHANNEL_FRAME_MAX, of a type of enum channel_type, with the flags of send(2); false if it was not sent, with errno. */
bool channel_send(const struct where *to, int type, int flags, const char *payload, size_t len, int how);

/* The same, of a whole message, whatever signals come.  A channel that is lost changes nothing for who speaks. */
void channel_say(const struct where *to, int type, const char *payload, size_t len);

#endif
