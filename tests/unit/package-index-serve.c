/*
 * A package index on a loopback port, for tests: package-index-serve KIND URL [NAME=VALUE ...].
 *
 * The port is printed.  Each line of the input is a command for the functions of packages/index/index.h, and gets one
 * line of JSON as its answer.  The program ends with its input.
 */
#include "packages/index/index.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define LISTED_MAX 8
#define LINE_MAX_ 4096

static struct package_index *package_index;
static char *allow[LISTED_MAX], *deny[LISTED_MAX];
static bool at_end;

static void answer(json_t *json)
{
        char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
        puts(text);
        fflush(stdout);
        free(text);
        json_decref(json);
}

static json_t *counts_json(const struct package_counts *counts)
{
        return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "offered", (json_int_t)counts->offered, "age",
                (json_int_t)counts->hidden_by_age, "time", (json_int_t)counts->hidden_without_time, "kind",
                (json_int_t)counts->hidden_by_kind, "yanked", (json_int_t)counts->hidden_yanked, "hash",
                (json_int_t)counts->hidden_without_hash);
}

static json_t *project_json(const struct package_project *project)
{
        return project ? json_pack("{s:s, s:b, s:s, s:s, s:o}", "name", project->name, "loaded", project->is_loaded,
                                 "problem", package_problem_name(project->problem), "text",
                                 project->text ? project->text : "", "counts", counts_json(&project->counts))
                       : json_null();
}

static json_t *file_json(const struct package_file *file)
{
        return file ? json_pack("{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:b}", "name", file->name, "version",
                              file->version, "filename", file->filename, "path", file->path, "hash", file->hash,
                              "upload_time_ms", (json_int_t)file->upload_time_ms, "size", (json_int_t)file->size,
                              "requires_python", file->requires_python, "install_script", file->has_install_script)
                    : json_null();
}

static void on_loaded(void *owner, const struct package_project *project)
{
        (void)owner;
        answer(project_json(project));
}

static void on_downloaded(void *owner, int fd, uint64_t size, enum package_problem problem, const char *text)
{
        char begin[4] = "";
        bool good = fd >= 0 && pread(fd, begin, sizeof begin, 0) == sizeof begin;
        (void)owner;
        answer(json_pack("{s:s, s:s, s:I, s:b}", "problem", package_problem_name(problem), "text", text, "size",
                (json_int_t)size, "readable", good));
}

static void obey(const char *command, const char *argument)
{
        struct package_index_usage usage;
        const struct package_file *file = package_index_file(package_index, argument);
        if (strcmp(command, "load") == 0) {
                package_index_load(package_index, argument, on_loaded, NULL);
        } else if (strcmp(command, "project") == 0) {
                answer(project_json(package_index_project(package_index, argument)));
        } else if (strcmp(command, "at") == 0) {
                answer(project_json(package_index_project_at(package_index, strtoul(argument, NULL, 10))));
        } else if (strcmp(command, "file") == 0) {
                answer(file_json(file));
        } else if (strcmp(command, "download") == 0 && file) {
                package_index_download(package_index, file, on_downloaded, NULL);
        } else if (strcmp(command, "stop") == 0) {
                package_index_stop_serving(package_index);
                answer(json_true());
        } else if (strcmp(command, "usage") == 0) {
                package_index_usage(package_index, &usage);
                answer(json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "requests", (json_int_t)usage.requests, "documents",
                        (json_int_t)usage.documents, "downloads", (json_int_t)usage.downloads, "bytes",
                        (json_int_t)usage.bytes, "list", (json_int_t)usage.hidden_by_list, "counts",
                        counts_json(&usage.counts)));
        } else {
                answer(json_null());
        }
}

static void on_line(struct watch *watch, uint32_t events)
{
        static char line[LINE_MAX_];
        static size_t len;
        ssize_t n = read(watch->fd, line + len, sizeof line - 1 - len);
        (void)events;
        at_end = n <= 0;
        len += n > 0 ? (size_t)n : 0;
        line[len] = 0;
        for (char *end; (end = strchr(line, '\n'));) {
                char *argument = strchr(line, ' ');
                *end = 0;
                if (argument && argument < end)
                        *argument++ = 0;
                else
                        argument = end;
                obey(line, argument);
                len -= (size_t)(end + 1 - line);
                memmove(line, end + 1, len + 1);
        }
}

static void trust(struct package_index_settings *settings, const char *pem)
{
        struct package_trust *parsed;
        struct csn_error err;
        if (package_trust_new(pem, &parsed, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                exit(1);
        }
        settings->trust = parsed;
}

static void set(struct package_index_settings *settings, const char *name, const char *value)
{
        if (strcmp(name, "token") == 0)
                settings->token = value;
        else if (strcmp(name, "ca_pem") == 0)
                trust(settings, value);
        else if (strcmp(name, "spool_folder") == 0)
                settings->spool_folder = value;
        else if (strcmp(name, "min_age_ms") == 0)
                settings->min_age_ms = strtoull(value, NULL, 10);
        else if (strcmp(name, "require_upload_time") == 0)
                settings->require_upload_time = value[0] == '1';
        else if (strcmp(name, "wheels_only") == 0)
                settings->wheels_only = value[0] == '1';
        else if (strcmp(name, "max_bytes") == 0)
                settings->max_bytes = strtoull(value, NULL, 10);
        else if (strcmp(name, "max_files") == 0)
                settings->max_files = strtoull(value, NULL, 10);
        else if (strcmp(name, "request_ms") == 0)
                settings->request_ms = strtoull(value, NULL, 10);
        else if (strcmp(name, "allow") == 0 && settings->allow_n < LISTED_MAX)
                allow[settings->allow_n++] = (char *)value;
        else if (strcmp(name, "deny") == 0 && settings->deny_n < LISTED_MAX)
                deny[settings->deny_n++] = (char *)value;
        else
                exit(2);
}

static int bound(unsigned *ret_port)
{
        struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t len = sizeof address;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 64) < 0 ||
            getsockname(fd, (struct sockaddr *)&address, &len) < 0)
                exit(2);
        *ret_port = ntohs(address.sin_port);
        return fd;
}

int main(int argc, char **argv)
{
        struct package_index_settings settings = { .require_upload_time = true, .wheels_only = true, .allow = allow,
                .deny = deny };
        struct watch input = { .fd = STDIN_FILENO, .ready = on_line };
        struct loop *loop;
        struct workers *workers;
        struct csn_error err = { 0 };
        char base[64];
        unsigned port;
        if (argc < 3)
                return 2;
        settings.kind = strcmp(argv[1], "node") == 0 ? PACKAGE_NODE : PACKAGE_PYTHON;
        settings.url = argv[2];
        for (int i = 3; i < argc; i++) {
                char *value = strchr(argv[i], '=');
                if (!value)
                        return 2;
                *value++ = 0;
                set(&settings, argv[i], value);
        }
        int fd = bound(&port);
        snprintf(base, sizeof base, "http://127.0.0.1:%u", port);
        settings.base_url = base;
        signal(SIGPIPE, SIG_IGN);
        if (loop_new(&loop, &err) < 0 || workers_new(loop, &workers, &err) < 0 ||
            package_index_open(loop, workers, fd, &settings, &package_index, &err) < 0) {
                fprintf(stderr, "%s\n", err.text);
                return 1;
        }
        printf("%u\n", port);
        fflush(stdout);
        int rc = loop_watch(loop, &input, STDIN_FILENO, EPOLLIN, &err);
        while (rc >= 0 && !at_end)
                rc = loop_step(loop, -1, &err);
        package_index_close(package_index);
        workers_free(workers);
        loop_free(loop);
        return rc < 0;
}
