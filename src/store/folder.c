/* Folders of the store beside the database. */
#include "store/files.h"

#include <fcntl.h>
#include <sys/stat.h>

int store_folder(const struct store *store, const char *name, int *ret_fd, struct csn_error *err)
{
        struct stat folder;
        bool made = mkdirat(store->folder_fd, name, 0700) == 0;
        auto_fd fd = openat(store->folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0 && made && geteuid() == 0 &&
                (fstat(store->folder_fd, &folder) < 0 || fchown(fd, folder.st_uid, folder.st_gid) < 0))
                fd_close(&fd);
        if (fd < 0)
                return err_set(err, CSN_E_SYSTEM, errno, "open the folder %s of the store", name);
        *ret_fd = take_fd(&fd);
        return 0;
}

int files_folder(struct store *store, struct csn_error *err)
{
        return store->files_fd >= 0 ? 0 : store_folder(store, "files", &store->files_fd, err);
}

void store_set_discard(struct store *store, store_discard *discard, void *owner)
{
        store->discard = discard;
        store->discard_owner = owner;
}

void content_remove(const struct store *store, const char *share, const char *name)
{
        if (store->discard)
                store->discard(store->discard_owner, share, store->files_fd, name);
        else
                unlinkat(store->files_fd, name, 0);
}
