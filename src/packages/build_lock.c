/*
 * Locks of Node: a package-lock.json in the request replaces the resolver's answer.
 *
 * The lock is an unverified claim, as the resolver's answer.  An entry counts by name, version and SHA-512: its address
 * becomes the address of the index's file with these three, and judge() accepts no other file.  So the index has to
 * know the document of each name first.
 */
#include "packages/packages_private.h"

#include "packages/index/document.h"

#include <stdio.h>
#include <stdlib.h>

#define FOLDER "node_modules/"
#define LOADS_MAX 8 /* documents fetched at the same time */

/* ---- reading ---- */

static int bad_lock(struct csn_error *err, const char *folder, const char *why)
{
        return err_field(err, "/lock", "lock: %.100s%s%s", folder, folder[0] ? " " : "", why);
}

/* The last name of a folder such as node_modules/a/node_modules/@b/c: @b/c. */
static const char *module_of(const char *folder)
{
        const char *name = folder, *next;
        while ((next = strstr(name, FOLDER)))
                name = next + sizeof FOLDER - 1;
        return name;
}

/* The name of an entry's package; for an alias a member names the package. */
static const char *name_of(const char *folder, const json_t *entry)
{
        const char *own = json_string_value(json_object_get(entry, "name"));
        return own ? own : module_of(folder);
}

static int check_entry(const char *folder, const json_t *entry, struct csn_error *err)
{
        char canonical[PACKAGE_NAME_MAX];
        const char *name = name_of(folder, entry), *from = json_string_value(json_object_get(entry, "resolved"));
        const char *hash = json_string_value(json_object_get(entry, "integrity"));
        if (!json_is_object(entry) || strncmp(folder, FOLDER, sizeof FOLDER - 1) != 0)
                return bad_lock(err, folder, "is no folder of a module; a layer has packages of the registry alone");
        if (!package_name_canonical(PACKAGE_NODE, name, strlen(name), canonical))
                return bad_lock(err, folder, "has a name that no package of the registry has");
        if (from && strncmp(from, "http://", 7) != 0 && strncmp(from, "https://", 8) != 0)
                return bad_lock(err, folder, "is from git or a folder; a layer has packages of the registry alone");
        if (!json_is_string(json_object_get(entry, "version")) || !hash || strncmp(hash, "sha512-", 7) != 0)
                return bad_lock(err, folder, "has no version, or no integrity that begins with sha512-");
        return 0;
}

/* The packages on which the project of the lock depends, as the packages of the request. */
static int add_named(struct package_set *set, json_t *entries, const char *kind, struct csn_error *err)
{
        const char *name;
        json_t *range, *named = json_object_get(json_object_get(entries, ""), kind);
        json_object_foreach(named, name, range) {
                const json_t *entry = json_object_get(entries, arena_text(set->arena, FOLDER "%s", name));
                const char *version = json_string_value(json_object_get(entry, "version"));
                if (!version && strcmp(kind, "optionalDependencies") == 0)
                        continue;
                if (!version)
                        return bad_lock(err, name, "is a dependency without an entry");
                if (package_set_add(set, arena_text(set->arena, "%s@%s", name, version), "/lock", err) < 0)
                        return -err->code;
        }
        return 0;
}

static int take_entries(struct package_set *set, json_t *entries, json_t *ret, struct csn_error *err)
{
        const char *folder;
        json_t *entry;
        json_object_foreach(entries, folder, entry) {
                if (!folder[0] || json_is_true(json_object_get(entry, "dev")))
                        continue;
                if (check_entry(folder, entry, err) < 0)
                        return -err->code;
                json_object_set(ret, folder, entry);
        }
        if (add_named(set, entries, "dependencies", err) < 0 ||
                add_named(set, entries, "optionalDependencies", err) < 0)
                return -err->code;
        return set->n ? 0 : bad_lock(err, "", "the project of the lock depends on no package");
}

int lock_read(struct package_set *set, const char *text, struct csn_error *err)
{
        json_error_t why;
        json_t *lock = json_loads(text, JSON_REJECT_DUPLICATES, &why), *entries = json_object_get(lock, "packages");
        json_t *taken = json_object();
        json_int_t version = json_integer_value(json_object_get(lock, "lockfileVersion"));
        int rc = 0;
        if (!lock)
                rc = err_field(err, "/lock", "lock is no JSON: %.100s in line %d; give the text of a package-lock.json",
                        why.text, why.line);
        else if ((version != 2 && version != 3) || !json_is_object(entries))
                rc = bad_lock(err, "", "lockfileVersion has to be 2 or 3, with packages; npm 7 and later write such a lock");
        else
                rc = take_entries(set, entries, taken, err);
        if (rc == 0) {
                char *dump = json_dumps(taken, JSON_COMPACT | JSON_SORT_KEYS);
                set->lock = arena_copy(set->arena, dump ? dump : "", dump ? strlen(dump) : 0);
                free(dump);
        }
        json_decref(taken);
        json_decref(lock);
        return rc;
}

/* ---- documents of the index ---- */

/* The address at the index of the file with the entry's name, version and hash; there may be no such file. */
static const char *address_of(struct build *build, const char *folder, const json_t *entry)
{
        struct bytes digest;
        const char *name = name_of(folder, entry), *slash = strchr(name, '/');
        const char *hash = json_string_value(json_object_get(entry, "integrity")) + strlen("sha512-");
        char digits[2 * PACKAGE_DIGEST_MAX + 1] = "";
        if (model_unbase64(&build->arena, hash, strcspn(hash, " "), &digest) && digest.len == PACKAGE_DIGEST_MAX)
                hex_print((const uint8_t *)digest.bytes, PACKAGE_DIGEST_MAX, digits);
        return arena_text(&build->arena, "/files/%s/%s/%s-%s.tgz", digits, name, slash ? slash + 1 : name,
                json_string_value(json_object_get(entry, "version")));
}

/* Why the index does not offer an entry's file: hidden versions say more than a missing one. */
static void explain(struct build *build, const char *folder, const json_t *entry)
{
        const char *name = name_of(folder, entry), *version = json_string_value(json_object_get(entry, "version"));
        const struct package_project *project = package_index_project(build->index, name);
        if (project && project->problem != PACKAGE_FINE)
                layer_build_fail(build, package_problem_name(project->problem), "%s: %s", name, project->text);
        else if (project && project->text && project->text[0])
                layer_build_fail(build, "version_conflict", "the index does not offer %s %s of the lock; %s", name, version,
                        project->text);
        else
                layer_build_fail(build, "hash_mismatch",
                        "the index has no file of %s %s with the integrity of the lock", name, version);
}

static void judge_lock(struct build *build)
{
        const char *folder;
        json_t *entry, *lock = build->locked.entries;
        json_object_foreach(lock, folder, entry) {
                const struct package_file *file = package_index_file(build->index, address_of(build, folder, entry));
                if (!file) {
                        explain(build, folder, entry);
                        return;
                }
                json_object_set_new(entry, "resolved", json_sprintf(PACKAGE_INDEX_BASE "%s", file->path));
                json_object_set_new(entry, "integrity", json_string(file->hash));
        }
        json_t *report = json_pack("{s:O}", "lock", lock);
        layer_build_take_lock(build, report);
        json_decref(report);
}

static void load_more(struct build *build);

static void on_loaded(void *owner, const struct package_project *project)
{
        struct build *build = owner;
        (void)project; /* the judgement asks for each project again */
        build->locked.loading--;
        loop_timer(engine_loop(build->packages->engine), &build->step, 0);
}

static void on_step(struct timer *timer)
{
        load_more(timer->owner);
}

static void load_more(struct build *build)
{
        struct locked *locked = &build->locked;
        while (locked->loading < LOADS_MAX && locked->at) {
                const char *folder = json_object_iter_key(locked->at);
                const char *name = name_of(folder, json_object_iter_value(locked->at));
                locked->at = json_object_iter_next(locked->entries, locked->at);
                locked->loading++;
                package_index_load(build->index, name, on_loaded, build);
        }
        if (!locked->loading && !locked->at)
                judge_lock(build);
}

void lock_resolve(struct build *build)
{
        build->locked.entries = json_loads(build->set.lock, 0, NULL);
        build->locked.at = json_object_iter(build->locked.entries);
        build->step = (struct timer){ .fired = on_step, .owner = build };
        if (layer_build_open_index(build, -1))
                load_more(build);
}
