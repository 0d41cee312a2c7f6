/* caisson(1). */
#include "front/cli/cli.h"

int main(int argc, char **argv)
{
        return cli_main(argc, argv);
}
