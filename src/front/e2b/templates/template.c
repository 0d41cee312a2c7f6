/* Base templates, and templates built by clients; see front/e2b/e2b.h and build.h. */
#include "front/e2b/templates/build.h"

/* ENOENT is set after err_set(), so the text does not mention a file. */
static int none(struct csn_error *err, const char *name, const char *what)
{
        err_set(err, CSN_E_INPUT, 0, "template '%.100s' %s", name, what);
        err->sys = ENOENT;
        return -err->code;
}

/* A built template, with its files.  NULL with err->code 0: no template of this name. */
static const struct e2b_template *find_built(const struct service *service, const char *tenant, const char *name,
                                             struct e2b_image **ret_image, json_t **ret_build_spec,
                                             struct csn_error *err)
{
        json_t *kept = template_store_find(service, tenant, name), *build = template_store_tagged(kept,
                template_store_tag(name)), *build_spec = json_object_get(build, "recipe");
        const char *layer = e2b_text(build_spec, "layer");
        const struct e2b_template *template = build_spec ? e2b_template_named(e2b_text(build_spec, "base")) : NULL;
        int fd = template && layer[0] ? template_store_open(service, TEMPLATE_STORE_LAYER, tenant, layer) : -1;
        err->code = 0;
        if (kept && !template)
                none(err, name,
                        build ? "has no build that is ready" : "has no build that is ready, and none with this tag");
        else if (template && layer[0] && fd < 0)
                err_set(err, CSN_E_SYSTEM, ENOENT, "the files of template '%.100s' have gone; build it again", name);
        if (template && !err->code) {
                *ret_build_spec = json_incref(build_spec);
                if (fd >= 0)
                        *ret_image = e2b_image_of(service, tenant, fd);
        }
        json_decref(kept);
        return err->code ? NULL : template;
}

int e2b_template_find(const struct service *service, const char *tenant, const char *name,
                      const struct e2b_template **ret, struct e2b_image **ret_image,
                      json_t **ret_build_spec, struct csn_error *err)
{
        err->code = 0;
        *ret = e2b_template_named(name);
        if (!*ret)
                *ret = find_built(service, tenant, name, ret_image, ret_build_spec, err);
        if (!*ret && !err->code)
                *ret = e2b_snapshot_find(service, tenant, name, ret_image, ret_build_spec, err);
        if (*ret)
                return 0;
        return err->code ? -err->code : none(err, name, "not found");
}

/* ---- descriptions ---- */

static json_t *describe(const struct e2b_template *template)
{
        return json_pack("{s:s, s:s, s:i, s:i, s:i, s:b, s:[s], s:[s], s:s, s:s, s:n, s:i, s:i, s:s, s:s}",
                "templateID", template->id, "buildID", "00000000-0000-0000-0000-000000000000", "cpuCount", 2,
                "memoryMB", 1024, "diskSizeMB", 512, "public", 1, "aliases", template->name, "names", template->name,
                "createdAt", "2026-01-01T00:00:00.000Z", "updatedAt", "2026-01-01T00:00:00.000Z", "lastSpawnedAt",
                "spawnCount", 0, "buildCount", 1, "buildStatus", "ready", "envdVersion", E2B_ENVD_VERSION);
}

static json_t *describe_kept(const json_t *kept)
{
        const json_t *builds = json_object_get(kept, "builds"), *newest = json_array_get(builds, 0);
        json_int_t cpus = json_integer_value(json_object_get(kept, "cpuCount")),
                   memory = json_integer_value(json_object_get(kept, "memoryMB"));
        return json_pack("{s:s, s:s, s:I, s:I, s:i, s:b, s:[s], s:[s], s:s, s:s, s:n, s:i, s:I, s:s, s:s}",
                "templateID", e2b_text(kept, "id"), "buildID", e2b_text(newest, "id"), "cpuCount", cpus ? cpus : 2,
                "memoryMB", memory ? memory : 1024, "diskSizeMB", 512, "public", 0, "aliases", e2b_text(kept, "name"),
                "names", e2b_text(kept, "name"), "createdAt", e2b_text(kept, "createdAt"), "updatedAt",
                e2b_text(kept, "updatedAt"), "lastSpawnedAt", "spawnCount", 0, "buildCount",
                (json_int_t)json_array_size(builds), "buildStatus", e2b_text(newest, "status"), "envdVersion",
                E2B_ENVD_VERSION);
}

void e2b_list_templates(struct http_request *request)
{
        json_t *list = json_array(), *all = kept_all(service_of(request), request->tenant), *kept;
        size_t i;
        json_array_foreach(all, i, kept) {
                json_array_append_new(list, describe_kept(kept));
        }
        for (i = 0; e2b_base_template(i); i++)
                json_array_append_new(list, describe(e2b_base_template(i)));
        json_decref(all);
        http_json(request, MHD_HTTP_OK, list);
}

/*
 * The template of the path: a base template, or a built template as the caller's reference.  False: none; the request
 * is answered.
 */
static bool named(struct http_request *request, const struct e2b_template **ret, json_t **ret_kept)
{
        const char *name = http_part(request, 0);
        *ret = e2b_template_named(name);
        *ret_kept = *ret ? NULL : template_store_find(service_of(request), request->tenant, name);
        if (*ret || *ret_kept)
                return true;
        e2b_error(request, MHD_HTTP_NOT_FOUND, "template '%.100s' not found", name);
        return false;
}

void e2b_get_template(struct http_request *request)
{
        const struct e2b_template *template;
        json_t *kept;
        if (!named(request, &template, &kept))
                return;
        http_json(request, MHD_HTTP_OK, template ? describe(template) : describe_kept(kept));
        json_decref(kept);
}

/* A tag in the name is checked, too. */
void e2b_template_alias(struct http_request *request)
{
        const struct e2b_template *template;
        json_t *kept;
        if (!named(request, &template, &kept))
                return;
        if (kept && strchr(http_part(request, 0), ':') &&
                !template_store_tagged(kept, template_store_tag(http_part(request, 0))))
                e2b_error(request, MHD_HTTP_NOT_FOUND, "template '%.100s' not found", http_part(request, 0));
        else
                http_json(request, MHD_HTTP_OK,
                        json_pack("{s:s, s:b}", "templateID", template ? template->id : e2b_text(kept, "id"), "public",
                                template != NULL));
        json_decref(kept);
}

void e2b_delete_template(struct http_request *request)
{
        struct service *service = service_of(request);
        const char *name = http_part(request, 0);
        struct csn_error err;
        json_t *kept = template_store_find(service, request->tenant, name);
        if (kept && template_store_forget(service, kept, &err) < 0)
                http_fail(request, &err);
        else if (kept || e2b_snapshot_forget(service, request->tenant, name))
                e2b_no_content(request);
        else if (e2b_template_named(name))
                e2b_error(request, MHD_HTTP_FORBIDDEN, "template '%.100s' is part of this server", name);
        else
                e2b_error(request, MHD_HTTP_NOT_FOUND, "template '%.100s' not found", name);
        json_decref(kept);
}
