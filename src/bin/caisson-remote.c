/* caisson-remote COMMAND PART ...: what caisson sandbox and caisson context become.  See front/remote/remote.h. */
#include "front/remote/remote.h"

int main(int argc, char **argv)
{
        return remote_main(argc, argv);
}
