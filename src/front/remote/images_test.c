/* caisson image test: programs in an image that use its interpreters and libraries. */
#include "front/remote/remote.h"

#include "images/images.h"

int remote_test_image(struct remote *remote)
{
        return remote_usage(remote, "later %s", "");
}
