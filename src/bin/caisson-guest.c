/* caisson-guest: process 1 of a persistent sandbox.  The engine is at descriptor 3. */
#include "guest/guest.h"

#define SOCKET_FD 3

int main(void)
{
        guest_serve(SOCKET_FD);
}
