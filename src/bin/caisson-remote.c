/* caisson-remote COMMAND PART ...: what caisson sandbox and caisson context become.  See front/remote.h. */
#include "front/remote.h"

int main(int argc, char **argv)
{
        return remote_main(argc, argv);
}
