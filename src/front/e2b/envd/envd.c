/* Port 49983, E2B's daemon in a sandbox: its routes, and the release of its state; see envd.h. */
#include "front/e2b/envd/envd.h"

static void health(struct http_request *request)
{
        e2b_no_content(request);
}

#define RPC(service, method, handle, summary) \
        { "POST", "/" service "/" method, "*", 0, BODY_TREE | BODY_MIB(1), handle, summary, NULL, NULL }
#define RPC_LONG(service, method, handle, summary) \
        { "POST", "/" service "/" method, "*", 0, BODY_TREE | BODY_MIB(16), handle, summary, NULL, NULL }

const struct http_route e2b_envd_routes[] = {
        { "GET", "/health", "*", 0, BODY_NONE, health, "Whether the sandbox runs.", NULL, NULL },
        { "GET", "/files", "*", 0, BODY_NONE, envd_get_file,
                "The content of the file `?path=`; with `Range`, a part of it.", NULL, NULL },
        { "POST", "/files", "*", 0, BODY_STREAM, envd_post_files, "Write a file, or several of multipart/form-data.",
                NULL, NULL },
        RPC("process.Process", "Start", envd_start, "Start a program: a stream of what happens."),
        RPC("process.Process", "Connect", envd_connect, "What happens to a program from now on."),
        RPC("process.Process", "List", envd_list_processes, "Programs that go on."),
        RPC("process.Process", "SendSignal", envd_signal, "End a program."),
        RPC_LONG("process.Process", "SendInput", envd_input, "Write to a program."),
        RPC("process.Process", "CloseStdin", envd_close_input, "End what a program reads."),
        RPC("process.Process", "Update", envd_update, "Change the size of a terminal."),
        RPC("filesystem.Filesystem", "Stat", envd_stat, "What a file is."),
        RPC("filesystem.Filesystem", "ListDir", envd_list, "What is in a folder."),
        RPC("filesystem.Filesystem", "MakeDir", envd_make_folder, "Make a folder."),
        RPC("filesystem.Filesystem", "Move", envd_move, "Rename a file or folder."),
        RPC("filesystem.Filesystem", "Remove", envd_remove, "Remove a file or folder."),
        RPC("filesystem.Filesystem", "WatchDir", envd_watch, "What happens in a folder, as a stream."),
        RPC("filesystem.Filesystem", "CreateWatcher", envd_create_watcher, "Collect what happens in a folder."),
        RPC("filesystem.Filesystem", "GetWatcherEvents", envd_watcher_events, "What was collected."),
        RPC("filesystem.Filesystem", "RemoveWatcher", envd_remove_watcher, "Collect no more."),
        { NULL, NULL, NULL, 0, BODY_NONE, NULL, NULL, NULL, NULL },
};

void e2b_envd_free(struct e2b_envd *envd)
{
        if (!envd)
                return;
        envd_free_processes(envd);
        envd_free_watchers(envd);
        free(envd);
}
