/* caisson sandbox cp: files unchanged, folders as tar; one side is a sandbox. */
#include "front/remote/remote.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

#define BUFFER_MAX (4 * MIB)       /* received, and not written yet */

/* ---- arguments ---- */

struct place {
        char *id;                  /* as typed; NULL: here */
        char *path;
};

/* ID:PATH, as in scp(1): a path with a slash before the colon is on our side. */
static struct place parse_place(char *text, struct arena *arena)
{
        const char *colon = strchr(text, ':'), *slash = strchr(text, '/');
        if (!colon || colon == text || (slash && slash < colon))
                return (struct place){ NULL, text };
        return (struct place){ arena_copy(arena, text, (size_t)(colon - text)),
                arena_text(arena, "%s", colon[1] ? colon + 1 : ".") };
}

static bool ends_with(const char *path, const char *end)
{
        size_t len = strlen(path), end_len = strlen(end);
        return len >= end_len && strcmp(path + len - end_len, end) == 0;
}

/* "DIR/." is the content of DIR, and not DIR itself. */
static bool means_content(const char *path)
{
        return strcmp(path, ".") == 0 || ends_with(path, "/.");
}

/* The last part of a path.  NULL: none, as for "/" and "..". */
static char *last_part(const char *path, struct arena *arena)
{
        size_t len = strlen(path);
        while (len > 1 && path[len - 1] == '/')
                len--;
        char *copy = arena_copy(arena, path, len), *slash = strrchr(copy, '/');
        char *name = slash ? slash + 1 : copy;
        return name[0] && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 ? name : NULL;
}

static char *below(const char *folder, const char *name, struct arena *arena)
{
        return arena_text(arena, "%s%s%s", folder, ends_with(folder, "/") ? "" : "/", name);
}

/* ---- the sandbox' side ---- */

static const char *files_path(struct remote *remote, const char *id, const char *what, const char *path,
        const char *more)
{
        return arena_text(&remote->arena, "/v1/sandboxes/%s/%s?path=%s%s", id, what, link_escape(path, &remote->arena),
                more);
}

enum kind { NOTHING, FILE_, FOLDER, OTHER, UNKNOWN };

/* The kind of a file in the sandbox; for a link, of its target. */
static enum kind remote_kind(struct remote *remote, const char *id, const char *path, unsigned *ret_mode,
        struct csn_error *err)
{
        json_t *entry = NULL;
        enum kind kind = UNKNOWN;
        int rc = link_ask(&remote->link, "GET", files_path(remote, id, "entry", path, ""), NULL, &entry, err);
        const char *type = remote_text(entry, "type");
        if (rc < 0 && remote->link.status == 404)
                kind = NOTHING;
        else if (rc == 0)
                kind = strcmp(type, "file") == 0 ? FILE_ : strcmp(type, "folder") == 0 ? FOLDER : OTHER;
        bool is_link = rc == 0 && strcmp(type, "link") == 0;
        if (ret_mode)
                *ret_mode = (unsigned)strtoul(remote_text(entry, "mode"), NULL, 8);
        json_decref(entry);
        if (is_link) {
                if (ret_mode)
                        *ret_mode = 0644;
                kind = remote_kind(remote, id, below(path, ".", &remote->arena), NULL, err) == FOLDER ? FOLDER : FILE_;
        }
        return kind;
}

/* ---- up ---- */

struct upload {
        int fd;
        struct packer *packer;     /* or NULL: the content of fd */
        struct csn_error error;    /* code 0: none */
        struct buf answer;
};

static size_t give(char *bytes, size_t size, size_t n, void *owner)
{
        struct upload *upload = owner;
        ssize_t got;
        if (upload->packer) {
                got = packer_read(upload->packer, bytes, size * n, &upload->error);
                return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
        }
        do
                got = read(upload->fd, bytes, size * n);
        while (got < 0 && errno == EINTR);
        if (got < 0)
                err_set(&upload->error, CSN_E_INPUT, errno, "cannot read the file");
        return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
}

static size_t take_answer(char *bytes, size_t size, size_t n, void *owner)
{
        struct upload *upload = owner;
        return buf_add(&upload->answer, bytes, size * n) ? size * n : 0;
}

static int put(struct remote *remote, struct upload *upload, const char *path, int64_t size)
{
        struct curl_slist *headers =
                curl_slist_append(curl_slist_append(NULL, "Content-Type: application/octet-stream"), "Expect:");
        CURL *easy = link_request(&remote->link, "PUT", path);
        struct csn_error err;
        buf_init(&upload->answer, MIB);
        curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
        curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)(256 * KIB));
        curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)size);
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
        curl_easy_setopt(easy, CURLOPT_READFUNCTION, give);
        curl_easy_setopt(easy, CURLOPT_READDATA, upload);
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, upload);
        CURLcode code = curl_easy_perform(easy);
        remote->link.status = 0;
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &remote->link.status);
        int rc = 0;
        if (upload->error.code)
                err = upload->error, rc = -err.code;
        else if (remote->link.status >= 300)
                rc = link_problem(remote->link.status, upload->answer.bytes, upload->answer.len, &err);
        else if (code != CURLE_OK)
                rc = link_broken(&remote->link, code, &err);
        curl_easy_cleanup(easy);
        curl_slist_free_all(headers);
        buf_done(&upload->answer);
        return rc < 0 ? remote_fail(&err) : 0;
}

static int put_file(struct remote *remote, int fd, const char *id, const char *path)
{
        struct upload upload = { .fd = fd };
        struct stat st;
        bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
        char mode[20] = "";
        if (is_file)
                snprintf(mode, sizeof mode, "&mode=%04o", st.st_mode & 0777);
        return put(remote, &upload, files_path(remote, id, "files", path, mode), is_file ? (int64_t)st.st_size : -1);
}

static int put_folder(struct remote *remote, const char *folder, const char *id, const char *path)
{
        struct upload upload = { .fd = -1 };
        struct csn_error err;
        int status = remote_ask(remote, "PATCH", files_path(remote, id, "files", path, ""),
                json_pack("{s:s}", "action", "folder"), NULL);
        if (status == 0 && packer_open(folder, &upload.packer, &err) < 0)
                status = remote_fail(&err);
        if (status == 0)
                status = put(remote, &upload, files_path(remote, id, "files", path, "&format=tar"), -1);
        packer_close(upload.packer);
        return status;
}

static int upload(struct remote *remote, const char *from, const char *id, char *to)
{
        bool is_input = strcmp(from, "-") == 0;
        struct csn_error err;
        struct stat st;
        auto_fd fd = is_input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : open(from, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0) {
                err_set(&err, CSN_E_INPUT, errno, "cannot read %s", from);
                return remote_fail(&err);
        }
        char resolved[PATH_MAX];
        const char *name = is_input ? NULL : last_part(from, &remote->arena);
        if (!name && !is_input && !means_content(from) && realpath(from, resolved))
                name = last_part(resolved, &remote->arena);
        enum kind kind = remote_kind(remote, id, to, NULL, &err);
        if (kind == UNKNOWN)
                return remote_fail(&err);
        bool into = kind == FOLDER || ends_with(to, "/");
        if (S_ISDIR(st.st_mode))
                return put_folder(remote, from, id,
                        into && name && !means_content(from) ? below(to, name, &remote->arena) : to);
        return put_file(remote, fd, id, into && name ? below(to, name, &remote->arena) : to);
}

/* ---- down ---- */

struct download {
        CURLM *multi;
        CURL *easy;
        struct buf out;
        long status;
        bool over, paused;
        CURLcode code;
};

static size_t keep(char *bytes, size_t size, size_t n, void *owner)
{
        struct download *download = owner;
        download->paused = !buf_add(&download->out, bytes, size * n);
        return download->paused ? CURL_WRITEFUNC_PAUSE : size * n;
}

/* The next bytes of a transfer, on demand, as libarchive reads. */
static ssize_t next_bytes(void *owner, const void **ret, struct csn_error *err)
{
        struct download *download = owner;
        int running, left;
        download->out.len = 0;
        if (download->paused)
                curl_easy_pause(download->easy, CURLPAUSE_CONT);   /* paused bytes come from within the call */
        while (!download->over && !download->out.len) {
                curl_multi_perform(download->multi, &running);
                for (CURLMsg *message; (message = curl_multi_info_read(download->multi, &left));)
                        if (message->msg == CURLMSG_DONE) {
                                download->over = true;
                                download->code = message->data.result;
                        }
                if (!download->over && !download->out.len)
                        curl_multi_poll(download->multi, NULL, 0, 1000, NULL);
        }
        curl_easy_getinfo(download->easy, CURLINFO_RESPONSE_CODE, &download->status);
        *ret = download->out.bytes;
        if (download->status >= 300)       /* a problem document comes in one piece */
                return link_problem(download->status, download->out.bytes, download->out.len, err);
        if (download->over && download->code != CURLE_OK)
                return err_set(err, CSN_E_SYSTEM, 0, "the sandbox broke off: what came is not whole (%s)",
                        curl_easy_strerror(download->code));
        return (ssize_t)download->out.len;
}

static void download_begin(struct download *download, struct remote *remote, const char *path)
{
        *download = (struct download){ .multi = curl_multi_init(), .easy = link_request(&remote->link, "GET", path) };
        buf_init(&download->out, BUFFER_MAX);
        curl_easy_setopt(download->easy, CURLOPT_BUFFERSIZE, (long)(256 * KIB));
        curl_easy_setopt(download->easy, CURLOPT_WRITEFUNCTION, keep);
        curl_easy_setopt(download->easy, CURLOPT_WRITEDATA, download);
        curl_multi_add_handle(download->multi, download->easy);
}

static void download_end(struct download *download)
{
        curl_multi_remove_handle(download->multi, download->easy);
        curl_easy_cleanup(download->easy);
        curl_multi_cleanup(download->multi);
        buf_done(&download->out);
}

static int fetch(struct remote *remote, const char *path, int fd, struct csn_error *err)
{
        struct download download;
        const void *bytes;
        ssize_t n;
        int rc = 0;
        download_begin(&download, remote, path);
        while (rc == 0 && (n = next_bytes(&download, &bytes, err)) != 0) {
                if (n < 0)
                        rc = (int)n;
                else if (io_write_all(fd, bytes, (size_t)n) < 0)
                        rc = err_set(err, CSN_E_SYSTEM, errno, "cannot write the file");
        }
        download_end(&download);
        return rc;
}

/* The file is there as a whole or not at all. */
static int get_file(struct remote *remote, const char *id, const char *from, const char *to, unsigned mode)
{
        struct csn_error err;
        char *slash = strrchr(to, '/');
        char *half = arena_text(&remote->arena, "%.*s.caisson-XXXXXX", slash ? (int)(slash - to + 1) : 0, to);
        mode_t mask = umask(077);
        umask(mask);
        auto_fd fd = mkostemp(half, O_CLOEXEC);
        if (fd < 0) {
                err_set(&err, CSN_E_INPUT, errno, "cannot write %s", to);
                return remote_fail(&err);
        }
        int rc = fetch(remote, files_path(remote, id, "files", from, ""), fd, &err);
        if (rc == 0 && (fchmod(fd, mode & 0777 & ~mask) < 0 || rename(half, to) < 0))
                rc = err_set(&err, CSN_E_INPUT, errno, "cannot write %s", to);
        if (rc < 0)
                unlink(half);
        return rc == 0 ? 0 : remote_fail(&err);
}

static int get_folder(struct remote *remote, const char *id, const char *from, const char *to)
{
        struct download download;
        struct csn_error err;
        if (mkdir(to, 0777) < 0 && errno != EEXIST) {
                err_set(&err, CSN_E_INPUT, errno, "cannot write %s", to);
                return remote_fail(&err);
        }
        download_begin(&download, remote, files_path(remote, id, "files", from, "&format=tar"));
        int rc = unpack(next_bytes, &download, to, &err);
        download_end(&download);
        return rc == 0 ? 0 : remote_fail(&err);
}

static int download(struct remote *remote, const char *id, const char *from, const char *to)
{
        struct csn_error err;
        struct stat st;
        unsigned mode = 0644;
        enum kind kind = remote_kind(remote, id, from, &mode, &err);
        if (kind == NOTHING || kind == UNKNOWN)
                return remote_fail(&err);
        if (strcmp(to, "-") == 0) {
                int rc = fetch(remote, files_path(remote, id, "files", from, kind == FOLDER ? "&format=tar" : ""),
                        STDOUT_FILENO, &err);
                return rc < 0 ? remote_fail(&err) : 0;
        }
        const char *name = last_part(from, &remote->arena);
        bool into = (stat(to, &st) == 0 && S_ISDIR(st.st_mode)) || ends_with(to, "/");
        const char *target = into && name && !means_content(from) ? below(to, name, &remote->arena) : to;
        return kind == FOLDER ? get_folder(remote, id, from, target) : get_file(remote, id, from, target, mode);
}

int remote_copy(struct remote *remote)
{
        struct place from = parse_place(remote->args[0], &remote->arena),
                     to = parse_place(remote->args[1], &remote->arena);
        if (!from.id == !to.id)
                return remote_usage(remote, "one of the two must be ID:PATH, and the other a path of this host or -");
        const char *id = remote_sandbox(remote, from.id ? from.id : to.id);
        if (!id)
                return remote->failed;
        return to.id ? upload(remote, from.path, id, to.path) : download(remote, id, from.path, to.path);
}
