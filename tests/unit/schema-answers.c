/* For tests that compare: a line with {"schema":…, "value":…} is answered with "yes", or "no" and why. */
#include "tools/tools.h"

#include <stdio.h>

int main(void)
{
        char *line = NULL;
        size_t size = 0;
        while (getline(&line, &size, stdin) > 0) {
                struct csn_error err;
                json_t *json = json_loads(line, JSON_ALLOW_NUL, NULL);
                if (schema_check(json_object_get(json, "schema"), json_object_get(json, "value"), &err) == 0)
                        puts("yes");
                else
                        printf("no %s\n", err.text);
                json_decref(json);
        }
        free(line);
        return 0;
}
