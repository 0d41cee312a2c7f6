/* caisson-policy FOLDER...: the process in which source text is looked at; see policy/policy.h. */
#include "policy/policy.h"

int main(int argc, char **argv)
{
        return worker_main((const char *const *)(uintptr_t)(argv + 1), argc > 0 ? (size_t)argc - 1 : 0);
}
