/* Whether the daemon, told to end, has work left, and the wake-up of its states when the last work ends. */
#include "front/daemon/daemon.h"

bool daemon_is_working(const struct daemon *daemon)
{
        return daemon->requests || (daemon->service && !service_is_idle(daemon->service));
}

/* By a timer, because the caller may be in the middle of the list of requests or connections. */
void daemon_look(struct daemon *daemon)
{
        bool waits = (daemon->state == FLUSHING && !daemon->connections) ||
                     ((daemon->state == DRAINING || daemon->state == CANCELLING) && !daemon_is_working(daemon));
        if (waits)
                loop_timer(daemon->loop, &daemon->deadline, 0);
}
