/* What a template is here; see e2b.h. */
#include "front/e2b/e2b.h"

static const struct e2b_template templates[] = {
        { "rki5dems9wqfm4r03t7g", "base", "system", false },
        { "nlhz8vlwyupq845jsdg9", "code-interpreter-v1", "data", true },
};

const struct e2b_template *e2b_template_named(const char *name)
{
        const char *slash = strrchr(name, '/'), *bare = slash ? slash + 1 : name;
        size_t len = strcspn(bare, ":");
        if (bare[len] && strcmp(bare + len, ":default") != 0)
                return NULL;
        for (size_t i = 0; i < ARRAY_LEN(templates); i++) {
                const struct e2b_template *one = &templates[i];
                if ((strlen(one->id) == len && memcmp(one->id, bare, len) == 0) || (strlen(one->name) == len && memcmp(one->name, bare, len) == 0))
                        return one;
        }
        return NULL;
}

int e2b_template_find(const struct api *api, const char *tenant, const char *name, const struct e2b_template **ret, struct e2b_image **ret_image,
                      struct csn_error *err)
{
        err->code = 0;
        *ret = e2b_template_named(name);
        if (!*ret)
                *ret = e2b_snapshot_find(api, tenant, name, ret_image, err);
        if (*ret)
                return 0;
        return err->code ? -err->code : err_set(err, CSN_E_INPUT, ENOENT, "template '%.100s' not found", name);
}

/* ---- what is told of them ---- */

static json_t *describe(const struct e2b_template *template)
{
        return json_pack("{s:s, s:s, s:i, s:i, s:i, s:b, s:[s], s:[s], s:s, s:s, s:n, s:i, s:i, s:s, s:s}", "templateID", template->id, "buildID",
                         "00000000-0000-0000-0000-000000000000", "cpuCount", 2, "memoryMB", 1024, "diskSizeMB", 512, "public", 1, "aliases",
                         template->name, "names", template->name, "createdAt", "2026-01-01T00:00:00.000Z", "updatedAt", "2026-01-01T00:00:00.000Z",
                         "lastSpawnedAt", "spawnCount", 0, "buildCount", 1, "buildStatus", "ready", "envdVersion", E2B_ENVD_VERSION);
}

void e2b_list_templates(struct http_request *request)
{
        json_t *list = json_array();
        for (size_t i = 0; i < ARRAY_LEN(templates); i++)
                json_array_append_new(list, describe(&templates[i]));
        http_json(request, MHD_HTTP_OK, list);
}

/* The template of the path; NULL: there is none, and that is answered. */
static const struct e2b_template *named(struct http_request *request)
{
        const struct e2b_template *template = e2b_template_named(http_part(request, 0));
        if (!template)
                e2b_error(request, MHD_HTTP_NOT_FOUND, "template '%.100s' not found", http_part(request, 0));
        return template;
}

void e2b_get_template(struct http_request *request)
{
        const struct e2b_template *template = named(request);
        if (template)
                http_json(request, MHD_HTTP_OK, describe(template));
}

void e2b_template_alias(struct http_request *request)
{
        const struct e2b_template *template = named(request);
        if (template)
                http_json(request, MHD_HTTP_OK, json_pack("{s:s, s:b}", "templateID", template->id, "public", 1));
}

void e2b_delete_template(struct http_request *request)
{
        const char *name = http_part(request, 0);
        if (e2b_snapshot_forget(api_of(request), request->tenant, name))
                e2b_no_content(request);
        else if (e2b_template_named(name))
                e2b_error(request, MHD_HTTP_FORBIDDEN, "template '%.100s' is part of this server", name);
        else
                e2b_error(request, MHD_HTTP_NOT_FOUND, "template '%.100s' not found", name);
}
