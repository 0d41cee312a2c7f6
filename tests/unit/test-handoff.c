/* What comes through the handoff socket: files into a home, the program, and what is told of a file that came alone. */
#include "sandbox/sandbox.h"

#include "tap.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* A home and a handoff socket, with what the engine sends there. */
struct place {
        char path[64];
        int home, modules, engine, handoff;
        struct arena arena;
        struct handoff_taken taken;
        struct csn_error err;
};

static void place_open(struct place *place)
{
        int pair[2];
        *place = (struct place){ .path = "/tmp/caisson-door-XXXXXX", .modules = -1 };
        CHECK(mkdtemp(place->path) && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
        place->engine = pair[0];
        place->handoff = pair[1];
        place->home = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void place_close(struct place *place)
{
        fd_close(&place->taken.in);
        fd_close(&place->home);
        fd_close(&place->engine);
        fd_close(&place->handoff);
        io_remove_tree(AT_FDCWD, place->path);
        arena_done(&place->arena);
}

static void send_packet(struct place *place, struct buf *packet, bool fits, int beside)
{
        CHECK(fits && wire_send(place->engine, packet->bytes, packet->len, &beside, beside >= 0) == 0);
        buf_done(packet);
}

static void send_file_to(struct place *place, bool module, const char *name, const char *content, int beside)
{
        const struct wire_file file = { .module = module,
                .mode = 0444,
                .name = (char *)(uintptr_t)name,
                .content = content,
                .content_len = content ? strlen(content) : 0 };
        struct buf packet;
        buf_init(&packet, WIRE_MAX);
        send_packet(place, &packet, wire_put_file(&packet, &file), beside);
}

static void send_file(struct place *place, const char *name, const char *content, int beside)
{
        send_file_to(place, false, name, content, beside);
}

/* The program, after which all is taken. */
static int take(struct place *place, int in)
{
        static char *const argv[] = { (char *)(uintptr_t)"/usr/bin/true", NULL };
        const struct wire_program program = { .argv = (char **)(uintptr_t)argv, .argv_n = 1 };
        struct buf packet;
        buf_init(&packet, WIRE_MAX);
        send_packet(place, &packet, wire_put_program(&packet, &program), in);
        const struct handoff_folders folders = { .home = place->home, .modules = place->modules };
        return handoff_take(place->handoff, &folders, &place->arena, &place->taken, &place->err);
}

static bool holds(const struct place *place, const char *name, const char *content)
{
        char bytes[64];
        auto_fd fd = openat(place->home, name, O_RDONLY | O_CLOEXEC);
        ssize_t n = read(fd, bytes, sizeof bytes);
        return n == (ssize_t)strlen(content) && memcmp(bytes, content, (size_t)n) == 0;
}

static void a_file_that_came_alone_is_told_with_its_content(void)
{
        struct place place;
        struct stat st;
        place_open(&place);
        send_file(&place, "main.py", "print(1)", -1);
        CHECK(take(&place, -1) == 0);
        CHECK(strcmp(place.taken.program.argv[0], "/usr/bin/true") == 0 && place.taken.in < 0);
        const struct wire_file *only = &place.taken.only;
        CHECK(only->name && strcmp(only->name, "main.py") == 0 && only->content_len == 8 &&
                memcmp(only->content, "print(1)", 8) == 0);
        CHECK(holds(&place, "main.py", "print(1)") && fstatat(place.home, "main.py", &st, 0) == 0 &&
                (st.st_mode & 07777) == 0444);
        place_close(&place);
}

static void an_empty_file_is_one_too(void)
{
        struct place place;
        place_open(&place);
        send_file(&place, "main.py", "", -1);
        CHECK(take(&place, -1) == 0 && place.taken.only.name && place.taken.only.content_len == 0);
        place_close(&place);
}

static void a_module_goes_to_its_own_folder(void)
{
        struct place place;
        char path[] = "/tmp/caisson-modules-XXXXXX";
        place_open(&place);
        CHECK(mkdtemp(path));
        place.modules = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        send_file(&place, "main.py", "import helpers", -1);
        send_file_to(&place, true, "pack/helpers.py", "x = 1", -1);
        CHECK(take(&place, -1) == 0 && !place.taken.only.name);
        CHECK(faccessat(place.home, "pack", F_OK, 0) < 0 && faccessat(place.modules, "pack/helpers.py", F_OK, 0) == 0);
        fd_close(&place.modules);
        io_remove_tree(AT_FDCWD, path);
        place_close(&place);
}

static void a_sandbox_without_a_folder_of_modules_takes_none(void)
{
        struct place place;
        place_open(&place);
        send_file_to(&place, true, "helpers.py", "x = 1", -1);
        CHECK(take(&place, -1) == -CSN_E_PROTOCOL);
        place_close(&place);
}

static void of_two_files_none_came_alone(void)
{
        struct place place;
        place_open(&place);
        send_file(&place, "main.py", "import other", -1);
        send_file(&place, "other.py", "x = 1", -1);
        CHECK(take(&place, -1) == 0 && !place.taken.only.name);
        CHECK(holds(&place, "main.py", "import other") && holds(&place, "other.py", "x = 1"));
        place_close(&place);
}

static void a_file_in_a_folder_is_not_told(void)
{
        struct place place;
        place_open(&place);
        send_file(&place, "folder/main.py", "print(1)", -1);
        CHECK(take(&place, -1) == 0 && !place.taken.only.name && holds(&place, "folder/main.py", "print(1)"));
        place_close(&place);
}

static void neither_is_one_that_came_as_a_descriptor(void)
{
        struct place place;
        place_open(&place);
        auto_fd source = io_memfd("input", "print(1)", 8);
        send_file(&place, "main.py", NULL, source);
        CHECK(take(&place, -1) == 0 && !place.taken.only.name && holds(&place, "main.py", "print(1)"));
        place_close(&place);
}

static void the_first_file_goes_back_and_standard_input_is_taken(void)
{
        struct place place;
        uint8_t bytes[16];
        int fds[WIRE_FDS_MAX];
        size_t n;
        place_open(&place);
        auto_fd in = open("/dev/null", O_RDONLY | O_CLOEXEC);
        send_file(&place, "main.py", "print(1)", -1);
        CHECK(take(&place, in) == 0 && place.taken.in >= 0);
        CHECK(wire_receive_small(place.engine, bytes, sizeof bytes, fds, &n) == 1 && n == 1);
        auto_fd back = n == 1 ? fds[0] : -1;
        CHECK(pread(back, bytes, sizeof bytes, 0) == 8 && memcmp(bytes, "print(1)", 8) == 0);
        place_close(&place);
}

static void two_files_of_one_name_are_refused(void)
{
        struct place place;
        place_open(&place);
        send_file(&place, "main.py", "a", -1);
        send_file(&place, "main.py", "b", -1);
        CHECK(take(&place, -1) == -CSN_E_INPUT && strstr(place.err.text, "main.py") && holds(&place, "main.py", "a"));
        place_close(&place);
}

int main(void)
{
        RUN(a_file_that_came_alone_is_told_with_its_content);
        RUN(an_empty_file_is_one_too);
        RUN(a_module_goes_to_its_own_folder);
        RUN(a_sandbox_without_a_folder_of_modules_takes_none);
        RUN(of_two_files_none_came_alone);
        RUN(a_file_in_a_folder_is_not_told);
        RUN(neither_is_one_that_came_as_a_descriptor);
        RUN(the_first_file_goes_back_and_standard_input_is_taken);
        RUN(two_files_of_one_name_are_refused);
        return tap_done();
}
