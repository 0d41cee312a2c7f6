/* caisson(1). */
#include "front/front.h"

int main(int argc, char **argv)
{
        return cli_main(argc, argv);
}
