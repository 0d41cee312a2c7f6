/* caisson-policy [--user=UID:GID] FOLDER...: the process in which source text is looked at; see policy/policy.h. */
#include "policy/policy.h"

#include <stdio.h>

int main(int argc, char **argv)
{
        struct worker_user user = { (uid_t)-1, (gid_t)-1 };
        int given = argc > 1 && sscanf(argv[1], "--user=%u:%u", &user.uid, &user.gid) == 2;
        return worker_main(&user, (const char *const *)(uintptr_t)(argv + 1 + given),
                argc > 0 ? (size_t)(argc - 1 - given) : 0);
}
