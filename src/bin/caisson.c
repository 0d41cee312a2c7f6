/* caisson(1). */
#include "front/views/views.h"

int main(int argc, char **argv)
{
        return cli_main(argc, argv);
}
