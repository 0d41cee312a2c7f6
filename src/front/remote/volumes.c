/* caisson volume: volumes of the caller, by requests to the daemon. */
#include "front/remote/remote.h"

#include <inttypes.h>

static const char *path_of(struct remote *remote, const char *name)
{
        return arena_text(&remote->arena, "/v1/volumes/%s", link_escape(name, &remote->arena));
}

int remote_create_volume(struct remote *remote)
{
        json_t *answer = NULL;
        SET(&remote->volume, volume_request, name, remote->args[0]);
        int status = remote_ask(remote, "POST", "/v1/volumes", model_encode(&object_volume_request, &remote->volume),
                &answer);
        if (status == 0 && remote_option(remote, "json"))
                cli_print_json(json_incref(answer));
        else if (status == 0)
                puts(remote_text(answer, "path"));
        json_decref(answer);
        return status;
}

static void add_volume(struct buf *buf, json_t *one)
{
        char size[24];
        size_print((uint64_t)json_integer_value(json_object_get(one, "size_bytes")), size, sizeof size);
        cli_add_cell(buf, 24, remote_text(one, "name"));
        cli_add_cell(buf, 10, size);
        cli_add_cell(buf, 0, remote_text(one, "created_at"));
        cli_end_line(buf);
}

int remote_list_volumes(struct remote *remote)
{
        json_t *answer = NULL, *one;
        struct buf buf;
        size_t i;
        int status = remote_ask_list(remote, "/v1/volumes", "volumes", &answer);
        buf_init(&buf, 16 * MIB);
        if (status == 0 && remote_option(remote, "json")) {
                cli_print_json(json_incref(answer));
        } else if (status == 0) {
                buf_printf(&buf, "%-24s %-10s %s\n", "NAME", "SIZE", "CREATED");
                json_array_foreach(answer, i, one) {
                        add_volume(&buf, one);
                }
                fputs(buf.bytes, stdout);
                if (!json_array_size(answer))
                        cli_note("there is no volume; caisson volume create makes one");
        }
        buf_done(&buf);
        json_decref(answer);
        return status;
}

int remote_show_volume(struct remote *remote)
{
        json_t *answer = NULL;
        char size[24];
        int status = remote_ask(remote, "GET", path_of(remote, remote->args[0]), NULL, &answer);
        if (status == 0 && remote_option(remote, "json")) {
                cli_print_json(json_incref(answer));
        } else if (status == 0) {
                size_print((uint64_t)json_integer_value(json_object_get(answer, "size_bytes")), size, sizeof size);
                printf("name     %s\nsize     %s\npath     %s\ncreated  %s\n", remote_text(answer, "name"), size,
                        remote_text(answer, "path"), remote_text(answer, "created_at"));
        }
        json_decref(answer);
        return status;
}

int remote_remove_volumes(struct remote *remote)
{
        int status = 0;
        for (size_t i = 0; i < remote->args_n; i++) {
                int one = remote_ask(remote, "DELETE", path_of(remote, remote->args[i]), NULL, NULL);
                status = status ? status : one;
        }
        return status;
}
