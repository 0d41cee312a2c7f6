/*
 * caisson-guest: process 1 of a persistent sandbox, with the engine at descriptor 3; and with the argument "stream",
 * process 1 of a container, with the engine at standard input and output.
 */
#include "guest/guest.h"

#define SOCKET_FD 3

int main(int argc, char **argv)
{
        if (argc == 2 && strcmp(argv[1], "stream") == 0)
                guest_serve_stream();
        guest_serve(SOCKET_FD);
}
