/*
 * The fork server as one small program: the protocol of server.py and jailed.py, carried out in less time.
 *
 *     engine <-- what can be held here, once, as JSON
 *     engine --> "P key" and a file with the steps of a profile
 *     engine --> "J key name" and the socket of one run: a jail of that name is made and waits at that socket
 *     engine --> "D key": the profile is not needed any more
 *
 * In a jail there are the keeper, which is process one, and the run, which locks itself in and becomes the program:
 *
 *     engine --> a request and its standard streams
 *     engine <-- "L" and a socket: where the run can knock whose network ends at named hosts
 *     engine <-- "N" and a descriptor: where the calls of a recorded run are told
 *     engine <-- "R"          everything holds; from here on a program may run
 *     engine <-- "E reason"   it could not be set up, so nothing ran
 *     engine <-- "F number"   the program could not be started, with the system's number of the error
 *     engine <-- "X status"   it ended, and so did all that it started
 *
 * It holds no policy: plan.py says what each step means. It has one thread, no handler of signals, an empty
 * environment and no secret. A function that fails returns -1 and leaves the reason in `fault`, in the words that the
 * Python server would use; a process that is being set up ends at the first one.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Headers may be older than the kernel; these numbers are the same on every machine. */
#ifndef SYS_open_tree
#define SYS_open_tree 428
#endif
#ifndef SYS_move_mount
#define SYS_move_mount 429
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule 445
#define SYS_landlock_restrict_self 446
#endif
#ifndef SECCOMP_FILTER_FLAG_NEW_LISTENER
#define SECCOMP_FILTER_FLAG_NEW_LISTENER (1UL << 3)
#endif

enum {
    STRANGER = 64999,        /* whom a run is when Glee is run by root: a number that belongs to nobody */
    FAULT_BYTES = 1001,
    MESSAGE_BYTES = 4096,
    NAME_BYTES = 65,         /* of a profile's key and a jail's name */
    PLAN_BYTES = 16 << 20,
    FILTER_STEPS = 4096,     /* the kernel takes no longer one */
    INLINE_BYTES = 60000,    /* a request over this comes in a file */
    REQUEST_BYTES = 8 << 20, /* over this the kernel would not start a program */
    FEWEST_STREAMS = 3, MOST_STREAMS = 4, MOST_FILES = 5,
    PATIENCE = 5,            /* seconds for jails to end in, once the engine is gone */
    PASSES = 100,
};

/* Descriptors have fixed numbers, so that each process knows what to keep. A run has its line where ENDS was. */
enum { CONTROL = 3, LINE = 3, ENDS = 4, RUN_LINE = 4, PROC = 5, FIRST_FREE = 6 };

enum layer {
    USER = 1, MOUNT = 2, PID = 4, PROCESSES = 8, IPC = 16, NET = 32, LANDLOCK = 64, SECCOMP = 128, GROUP = 256,
};
static const char *const LAYERS[] = {"user", "mount", "pid", "proc", "ipc", "net", "landlock", "seccomp", "group"};
enum { LAYER_COUNT = sizeof LAYERS / sizeof *LAYERS };

enum word {
    W_LAYER, W_USER, W_FOLDER, W_FILE, W_LINK, W_BIND, W_MASK, W_LATE, W_FRESH, W_PROCESSES, W_PRIVATE, W_VERSION,
    W_RULE, W_INSIDE, W_PORTS, W_LIMIT, W_GROUP, W_NET, W_DOOR, W_FILTER, W_RECORD, W_STAMP,
    WORD_COUNT,
};
static const struct { const char *name; int arity; } WORDS[WORD_COUNT] = {
    [W_LAYER] = {"layer", 1}, [W_USER] = {"user", 2}, [W_FOLDER] = {"folder", 1}, [W_FILE] = {"file", 1},
    [W_LINK] = {"link", 2}, [W_BIND] = {"bind", 3}, [W_MASK] = {"mask", 1}, [W_LATE] = {"late", 2},
    [W_FRESH] = {"fresh", 3}, [W_PROCESSES] = {"processes", 1}, [W_PRIVATE] = {"private", 1},
    [W_VERSION] = {"version", 1}, [W_RULE] = {"rule", 2}, [W_INSIDE] = {"inside", 2}, [W_PORTS] = {"ports", 1},
    [W_LIMIT] = {"limit", 2}, [W_GROUP] = {"group", 2}, [W_NET] = {"net", 1}, [W_DOOR] = {"door", 1},
    [W_FILTER] = {"filter", 1}, [W_RECORD] = {"record", 1}, [W_STAMP] = {"stamp", 1},
};

struct step {
    enum word word;
    const char *arguments[3];
    const char *path;        /* the last argument, which is one wherever there is one */
    uint64_t number, value;  /* of a rule its rights, of a limit its resource and value */
    int file;                /* of a rule the path, open */
    bool is_folder;
};

/* A program of the kernel's filter; empty if there is none. */
struct filter {
    struct sock_filter *steps;
    unsigned short count;
};

/*
 * The steps of a plan, and once it was needed, made ready for many runs: the view is built, the paths of the rules
 * are open.
 */
struct profile {
    struct profile *next;
    char key[NAME_BYTES];
    char fault[FAULT_BYTES]; /* why it cannot be read; empty if it can */
    bool is_made;
    char *plan;              /* in which the texts of the steps lie */
    struct step *steps;
    size_t count;
    unsigned said;           /* which words were said at all, as bits */
    unsigned layers;
    uint64_t uid, gid, version, door, memory, processes;
    bool forbids_ports, is_cut_off, has_view, has_late;
    const char *private;
    struct filter filter, record;
    char root[PATH_MAX], beside[PATH_MAX];
};
#define EACH(step, profile) \
    for (struct step *step = (profile)->steps; step < (profile)->steps + (profile)->count; step++)

/* A jail that has a group; once it ended, one whose group was still busy. */
struct jail {
    struct jail *next;
    pid_t keeper;            /* 0 if it ended */
    char name[NAME_BYTES];
};

/* A user namespace through which one owner of files is seen as the run's identity. */
struct id_map {
    struct id_map *next;
    uid_t uid;
    gid_t gid;
    int file;
};

static char fault[FAULT_BYTES];
static const char *folder;   /* where views are built */
static bool is_root;
static uid_t own_uid;        /* whom a run is */
static gid_t own_gid;
static mode_t engine_umask;
static sigset_t engine_mask;
static unsigned layers;
static char faults[LAYER_COUNT][FAULT_BYTES];
static uint64_t landlock_version;
static int empty_network = -1;
static struct profile *profiles;
static struct jail *jails;
static struct id_map *id_maps;

/* ---- Faults, and small things ----------------------------------------------------------------------------------- */

#define TRY(attempt) do { if ((attempt) < 0) return -1; } while (0)

/* A descriptor that is closed when its name is gone. */
#define HELD __attribute__((cleanup(let_go)))
static void let_go(int *file) {
    if (*file >= 0)
        close(*file);
}

__attribute__((format(printf, 1, 2))) static int fail(const char *format, ...) {
    int number = errno;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault, sizeof fault, format, arguments);
    va_end(arguments);
    errno = number;
    return -1;
}

static int fail_path(const char *path) {
    return fail("[Errno %d] %s: '%s'", errno, strerror(errno), path);
}

static int unreadable(void) {
    return fail("the plan cannot be read");
}

/* The result of a system call, or its fault by its name; without one, only what the system says. */
static int check(long result, const char *name) {
    if (result < 0)
        return fail("[Errno %d] %s%s%s", errno, name, *name ? ": " : "", strerror(errno));
    return (int)result;
}

/* Decimal digits and nothing else. */
static bool parse_number(const char *text, uint64_t most, uint64_t *number) {
    uint64_t value = 0;
    const char *byte = text;
    for (; *byte >= '0' && *byte <= '9'; byte++) {
        uint64_t digit = (uint64_t)(*byte - '0');
        if (digit > most || value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *number = value;
    return byte > text && !*byte;
}

__attribute__((format(printf, 2, 3))) static int write_path(char path[PATH_MAX], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(path, PATH_MAX, format, arguments);
    va_end(arguments);
    errno = ENAMETOOLONG;
    return length < 0 || length >= PATH_MAX ? fail_path(path) : 0;
}

static bool is_below(const char *path, const char *top) {
    size_t length = strlen(top);
    return strncmp(path, top, length) == 0 && path[length] == '/';
}

static int write_text(int base, const char *path, const char *text) {
    HELD int file = openat(base, path, O_WRONLY | O_CLOEXEC);
    return file < 0 ? fail_path(path) : check(write(file, text, strlen(text)), "");
}

/* All of a file that is no larger than `most`, with room for one byte more. The text is the caller's. */
static int read_all(int file, off_t most, char **text, size_t *size) {
    struct stat status;
    TRY(check(fstat(file, &status), ""));
    errno = E2BIG;
    if (status.st_size > most)
        return fail("the plan is too large");
    if (!(*text = malloc((size_t)status.st_size + 1)))
        return check(-1, "");
    ssize_t part = 1;
    for (*size = 0; *size < (size_t)status.st_size && part > 0; *size += (size_t)part)
        TRY(part = check(pread(file, *text + *size, (size_t)status.st_size - *size, (off_t)*size), ""));
    return 0;
}

static bool is_dots(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

typedef void visitor(int at, const char *name, void *context);

/* Every entry of a folder that is no symbolic link; none if it cannot be read. */
static void visit(int base, const char *path, visitor *one, void *context) {
    int file = openat(base, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = file < 0 ? NULL : fdopendir(file);
    struct dirent *entry;
    while (entries && (entry = readdir(entries)))
        if (!is_dots(entry->d_name))
            one(file, entry->d_name, context);
    if (entries)
        closedir(entries);
    else if (file >= 0)
        close(file);
}

/* ---- System calls that libc has no name for, or not everywhere -------------------------------------------------- */

enum {
    TREE_CLONE = 1, RECURSIVE = 0x8000, MOVE_EMPTY_PATHS = 0x04 | 0x40, NO_LINKS = 0x04 | 0x02, MAP_IDS = 0x100000,
    A_READ_ONLY = 1, A_NO_SETUID = 2, A_NO_DEVICES = 4, A_NO_EXEC = 8,
};

/* Like fork, into new namespaces. Nothing here relies on what libc does at a fork. */
static pid_t clone_into(unsigned long flags) {
    return check(syscall(SYS_clone, flags | SIGCHLD, 0L, 0L, 0L, 0L), "clone");
}

/* A path that leads through no symbolic link, so that nobody swaps one in meanwhile. */
static int open_path(int base, const char *path) {
    struct { uint64_t flags, mode, resolve; } how = {O_PATH | O_CLOEXEC, 0, NO_LINKS};
    long file = syscall(SYS_openat2, base, path, &how, sizeof how);
    return file < 0 ? fail_path(path) : (int)file;
}

static int mount_at(const char *target, const char *kind, unsigned long flags, const char *options) {
    return check(mount(strcmp(kind, "proc") == 0 ? "proc" : "glee", target, kind, flags, options), "mount");
}

static int set_mount(int base, const char *path, unsigned flags, uint64_t attributes, int ids) {
    struct { uint64_t set, clear, propagation, ids; } value = {attributes, 0, 0, 0};
    if (ids >= 0) {
        value.set |= MAP_IDS;
        value.ids = (uint64_t)ids;
    }
    return check(syscall(SYS_mount_setattr, base, path, flags, &value, sizeof value), "mount_setattr");
}

/* A detached copy of what is at an open path, with all that is mounted below it. */
static int clone_mount(int file) {
    return check(syscall(SYS_open_tree, file, "", TREE_CLONE | O_CLOEXEC | RECURSIVE | AT_EMPTY_PATH), "open_tree");
}

/* Onto a place given as a descriptor: a path could be made to lead elsewhere meanwhile. */
static int attach_mount(int tree, int target) {
    return check(syscall(SYS_move_mount, tree, "", target, "", MOVE_EMPTY_PATHS), "move_mount");
}

/* Makes a folder the root, and lets go of all that was mounted before. */
static int change_root(const char *root) {
    if (chdir(root) < 0)
        return fail_path(root);
    TRY(check(syscall(SYS_pivot_root, ".", "."), "pivot_root"));
    TRY(check(umount2(".", MNT_DETACH), "umount2"));
    return chdir("/") < 0 ? fail_path("/") : 0;
}

static int close_from(unsigned first) {
    return check(syscall(SYS_close_range, first, ~0U, 0U), "close_range");
}

static int set_self(int option, unsigned long value) {
    return check(prctl(option, value, 0UL, 0UL, 0UL), "prctl");
}

static int drop_capabilities(void) {
    struct { uint32_t version; int pid; } header = {0x20080522, 0};
    uint32_t none[6] = {0};
    return check(syscall(SYS_capset, &header, none), "capset");
}

/* With the flag for one, returns a descriptor at which what the filter asks about is told. */
static int install_filter(const struct filter *filter, unsigned long flags) {
    struct sock_fprog program = {filter->count, filter->steps};
    return check(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program), "seccomp");
}

/* ---- Messages: bytes and descriptors over a socket -------------------------------------------------------------- */

union file_space {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int) * MOST_FILES)];
};

/* One message and up to `most` descriptors; 0 if nobody is there. One that was cut short is a fault. */
static ssize_t receive(int line, char *data, size_t size, int *files, int most, int *count, int flags) {
    union file_space space;
    struct iovec part = {data, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &space};
    message.msg_controllen = CMSG_LEN(sizeof(int) * (size_t)most); /* not CMSG_SPACE: padding would hold one more */
    ssize_t length = recvmsg(line, &message, flags);
    *count = 0;
    TRY(check(length, ""));
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
        *count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(files, CMSG_DATA(header), sizeof(int) * (size_t)*count);
    }
    return message.msg_flags & MSG_TRUNC ? fail("the request cannot be read") : length;
}

static int send_file(int line, const char *word, int file) {
    union file_space space = {.bytes = {0}};
    struct iovec part = {(char *)(uintptr_t)word, strlen(word)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &space};
    message.msg_controllen = CMSG_SPACE(sizeof file);
    space.header.cmsg_level = SOL_SOCKET;
    space.header.cmsg_type = SCM_RIGHTS;
    space.header.cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(&space.header), &file, sizeof file);
    return check(sendmsg(line, &message, MSG_NOSIGNAL), "");
}

static int say(int line, const char *text) {
    return check(send(line, text, strlen(text), MSG_NOSIGNAL), "");
}

/* Whoever is no longer there needs no reason. */
static void say_fault(int line) {
    char text[FAULT_BYTES + 1];
    snprintf(text, sizeof text, "E%s", fault);
    (void)say(line, text);
}

_Noreturn static void give_up(int line) {
    say_fault(line);
    _exit(125);
}

/* ---- Identity and namespaces ------------------------------------------------------------------------------------ */

/* From root to an unprivileged identity, with no way back. */
static int become(uint64_t uid, uint64_t gid) {
    uid_t u = (uid_t)uid;
    gid_t g = (gid_t)gid;
    TRY(check(setgroups(0, NULL), "setgroups"));
    TRY(check(setresgid(g, g, g), "setresgid"));
    TRY(check(setresuid(u, u, u), "setresuid"));
    return set_self(PR_SET_DUMPABLE, 1); /* the change of identity took that away, and /proc/self with it */
}

/* Through the machine's /proc, which is there whatever the view holds. */
static int map_ids(const char *who, uid_t uid, gid_t gid) {
    char path[64], map[64];
    snprintf(path, sizeof path, "%s/uid_map", who);
    snprintf(map, sizeof map, "%u %u 1", uid, own_uid);
    TRY(write_text(PROC, path, map));
    snprintf(path, sizeof path, "%s/gid_map", who);
    snprintf(map, sizeof map, "%u %u 1", gid, own_gid);
    return write_text(PROC, path, map);
}

/* A user namespace in which this process is who it was, and nobody else exists. */
static int enter_user(void) {
    TRY(check(unshare(CLONE_NEWUSER), "unshare"));
    TRY(write_text(PROC, "self/setgroups", "deny"));
    return map_ids("self", own_uid, own_gid);
}

static int open_namespace(pid_t pid, const char *name, const struct id_map *ids) {
    char path[64];
    snprintf(path, sizeof path, "%d", pid);
    if (ids)
        TRY(map_ids(path, ids->uid, ids->gid));
    snprintf(path, sizeof path, "%d/ns/%s", pid, name);
    int file = openat(PROC, path, O_RDONLY | O_CLOEXEC);
    return file < 0 ? fail_path(path) : file;
}

/* A new namespace; the descriptor keeps it alive when the process that made it is gone. */
static int borrow(int flag, const char *name, const struct id_map *ids) {
    char word;
    int pair[2], file = -1;
    TRY(check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), ""));
    pid_t pid = clone_into(0);
    if (pid == 0) {
        close(pair[0]);
        if (unshare(flag) == 0 && write(pair[1], "+", 1) == 1 && read(pair[1], &word, 1) < 0)
            _exit(2);
        _exit(1); /* the server has let go of its end, or is gone */
    }
    close(pair[1]);
    if (pid > 0) {
        if (read(pair[0], &word, 1) == 1)
            file = open_namespace(pid, name, ids);
        else
            fail("a new %s namespace cannot be made", name);
        close(pair[0]);
        waitpid(pid, NULL, 0);
        return file;
    }
    close(pair[0]);
    return file;
}

/* Run by root, what somebody owns is shown to the run's identity as its own. -1 in `ids` if that is not needed. */
static int find_id_map(const struct stat *status, int *ids) {
    struct id_map *found = id_maps;
    if (!is_root || (status->st_uid == own_uid && status->st_gid == own_gid))
        return 0;
    while (found && (found->uid != status->st_uid || found->gid != status->st_gid))
        found = found->next;
    if (!found) {
        struct id_map ids_of = {id_maps, status->st_uid, status->st_gid, -1};
        TRY(ids_of.file = borrow(CLONE_NEWUSER, "user", &ids_of));
        if (!(found = malloc(sizeof *found))) {
            close(ids_of.file);
            return check(-1, "");
        }
        *found = ids_of;
        id_maps = found;
    }
    *ids = found->file;
    return 0;
}

/* In a network of one's own: loopback is raised, and a socket listens there for whoever is handed it. */
static int hand_over_door(uint64_t port) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    HELD int raising = check(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "");
    TRY(raising);
    TRY(check(ioctl(raising, SIOCSIFFLAGS, &request), ""));
    HELD int door = check(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "");
    TRY(door);
    TRY(check(bind(door, (struct sockaddr *)&address, sizeof address), ""));
    TRY(check(listen(door, 128), ""));
    return send_file(LINE, "L", door);
}

/* ---- Landlock: the second wall behind the mount view, and the first where there is none ------------------------- */

enum {
    R_REFER = 1 << 13, R_TRUNCATE = 1 << 14, R_DEVICE_CALLS = 1 << 15,
    /* As rights.py has them: everything but devices and sockets; and what can be said of a file. */
    WRITE = 0xf | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 12 | R_REFER | R_TRUNCATE,
    OF_FILES = 0x7 | R_TRUNCATE | R_DEVICE_CALLS,
    PORTS_SINCE = 4, SCOPES_SINCE = 6, CONNECT = 2,
};

static uint64_t known_rights(uint64_t version) {
    uint64_t rights = (1 << 13) - 1;
    rights |= version >= 2 ? R_REFER : 0;
    rights |= version >= 3 ? R_TRUNCATE : 0;
    return rights | (version >= 5 ? R_DEVICE_CALLS : 0);
}

/* An empty ruleset: all that this kernel can judge is forbidden; from version 6 on signals and abstract sockets too. */
static int make_ruleset(uint64_t version, bool forbids_ports) {
    uint64_t fields[3] = {known_rights(version), forbids_ports ? 3 : 0, 3};
    size_t size = sizeof *fields * (version >= SCOPES_SINCE ? 3 : version >= PORTS_SINCE ? 2 : 1);
    return check(syscall(SYS_landlock_create_ruleset, fields, size, 0U), "landlock_create_ruleset");
}

static int add_rule(int ruleset, uint64_t version, int file, bool is_folder, uint64_t rights) {
    struct { uint64_t rights; int32_t file; } __attribute__((packed)) rule = {rights & known_rights(version), file};
    if (!is_folder)
        rule.rights &= OF_FILES;
    return check(syscall(SYS_landlock_add_rule, ruleset, 1, &rule, 0U), "landlock_add_rule");
}

static int add_path(int ruleset, uint64_t version, const char *path, uint64_t rights) {
    struct stat status;
    HELD int file = open_path(AT_FDCWD, path);
    TRY(file);
    TRY(check(fstat(file, &status), ""));
    return add_rule(ruleset, version, file, S_ISDIR(status.st_mode), rights);
}

static int restrict_self(int ruleset) {
    return check(syscall(SYS_landlock_restrict_self, ruleset, 0U), "landlock_restrict_self");
}

/* The rules are made for each run anew: some of its folders are its own. */
static int restrict_files(const struct profile *profile, const char *own) {
    uint64_t version = profile->version, port[2] = {CONNECT, profile->door};
    HELD int ruleset = make_ruleset(version, profile->forbids_ports);
    TRY(ruleset);
    EACH(step, profile) {
        if (step->word == W_RULE)
            TRY(add_rule(ruleset, version, step->file, step->is_folder, step->number));
        else if (step->word == W_INSIDE)
            TRY(add_path(ruleset, version, step->path, step->number));
    }
    if (own)
        TRY(add_path(ruleset, version, own, WRITE));
    if (profile->door && version >= PORTS_SINCE)
        TRY(check(syscall(SYS_landlock_add_rule, ruleset, 2, port, 0U), "landlock_add_rule"));
    return restrict_self(ruleset);
}

/* ---- The view: the private root of a jail, which holds what was granted and nothing else ------------------------ */

/* One folder further in; the outer one is let go of. Never through a symbolic link. */
static int make_next(int outer, const char *name, size_t length, mode_t mode) {
    HELD int at = outer;
    char copy[NAME_MAX + 1];
    errno = ENAMETOOLONG;
    if (length >= sizeof copy)
        return -1;
    memcpy(copy, name, length);
    copy[length] = 0;
    errno = EINVAL;
    if (is_dots(copy) || (mkdirat(at, copy, mode) < 0 && errno != EEXIST))
        return -1;
    return openat(at, copy, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* The folder at the end of a path below a root, or the one before it, made with those on the way where missing. */
static int make_folders(const char *root, const char *path, mode_t mode, bool all) {
    int at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const char *last = strrchr(path, '/');
    const char *end = all || !last ? path + strlen(path) : last;
    for (const char *rest = path; at >= 0 && rest < end;) {
        size_t length = strcspn(rest, "/");
        if (length)
            at = make_next(at, rest, length, mode);
        rest += length + 1;
    }
    return at < 0 ? fail_path(path) : at;
}

static int make_folder(const char *root, const char *path, mode_t mode) {
    HELD int made = make_folders(root, path, mode, true);
    return made < 0 ? -1 : 0;
}

static int make_file(const char *root, const char *path, mode_t mode) {
    HELD int parent = make_folders(root, path, mode, false);
    TRY(parent);
    HELD int file = openat(parent, strrchr(path, '/') + 1, O_CREAT | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0644);
    return file < 0 ? fail_path(path) : 0;
}

static int make_link(const char *root, const struct step *step, mode_t mode) {
    HELD int parent = make_folders(root, step->path, mode, false);
    TRY(parent);
    return symlinkat(step->arguments[0], parent, strrchr(step->path, '/') + 1) < 0 ? fail_path(step->path) : 0;
}

/* What lies below a folder that each run has for itself is built beside the root, and put there by each run. */
static const char *find_base(const struct profile *profile, const char *path) {
    EACH(step, profile)
        if (step->word == W_LATE && (strcmp(path, step->path) == 0 || is_below(path, step->path)))
            return profile->beside;
    return profile->root;
}

static bool is_mounted_each(const struct step *step) {
    return step->word == W_FRESH || step->word == W_PROCESSES;
}

/* True for a folder or link that each run makes for itself, below a folder that only it has. */
static bool is_made_each(const struct profile *profile, const struct step *made) {
    if ((made->word != W_FOLDER && made->word != W_LINK) || find_base(profile, made->path) != profile->root)
        return false;
    EACH(step, profile)
        if (is_mounted_each(step) && is_below(made->path, step->path))
            return true;
    return false;
}

/* Places to mount on are made in our own file system only, never in a folder of the machine. */
static int prepare_place(const struct profile *profile, const struct step *step) {
    switch (step->word) {
    case W_FOLDER:
        return is_made_each(profile, step) ? 0 : make_folder(find_base(profile, step->path), step->path, 0755);
    case W_FILE:
        return make_file(find_base(profile, step->path), step->path, 0755);
    case W_LINK:
        return is_made_each(profile, step) ? 0 : make_link(profile->root, step, 0755);
    case W_FRESH:
    case W_PROCESSES:
        return make_folder(profile->root, step->path, 0755);
    default:
        return 0;
    }
}

static int mask_place(int target) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", target);
    return mount_at(path, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "size=4k");
}

/* Some file systems cannot be shown as another's; for reading, what anybody may read is then enough. */
static int set_tree(const struct step *step, int tree, uint64_t attributes, int ids) {
    int result = set_mount(tree, "", AT_EMPTY_PATH | RECURSIVE, attributes, ids);
    if (result == 0 || ids < 0 || errno != EINVAL)
        return result;
    if (*step->arguments[0] == 'w')
        return fail("Glee is run by root, and the file system of %s cannot be shown to the tool as its own; "
                    "run Glee as an ordinary user, or take the path out of permissions.fs.write", step->arguments[1]);
    return set_mount(tree, "", AT_EMPTY_PATH | RECURSIVE, attributes, -1);
}

static int bind_place(const struct step *step, int target) {
    struct stat status;
    int ids = -1;
    char mode = step->arguments[0][0];
    uint64_t attributes = A_NO_SETUID | (mode == 'd' ? A_NO_EXEC : A_NO_DEVICES);
    attributes |= mode == 's' || mode == 'r' ? A_READ_ONLY : 0;
    HELD int origin = open_path(AT_FDCWD, step->arguments[1]);
    TRY(origin);
    HELD int tree = clone_mount(origin);
    TRY(tree);
    TRY(check(fstat(origin, &status), ""));
    if (mode == 'r' || mode == 'w')
        TRY(find_id_map(&status, &ids));
    TRY(set_tree(step, tree, attributes, ids));
    return attach_mount(tree, target);
}

static int fill_place(const struct profile *profile, const struct step *step) {
    HELD int base = open(find_base(profile, step->path), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (base < 0)
        return fail_path(step->path);
    HELD int target = open_path(base, step->path + strspn(step->path, "/"));
    TRY(target);
    return step->word == W_MASK ? mask_place(target) : bind_place(step, target);
}

static int make_file_system(const char *root) {
    if (mkdir(root, 0755) < 0)
        return fail_path(root);
    return mount_at(root, "tmpfs", MS_NOSUID | MS_NODEV, "size=4m,mode=755");
}

/* Built once for each profile, in the server's own mount namespace; entered by each run in one of its own. */
static int build_view(struct profile *profile) {
    TRY(write_path(profile->root, "%s/%s", folder, profile->key));
    TRY(write_path(profile->beside, "%s/%s.late", folder, profile->key));
    profile->has_view = true;
    TRY(make_file_system(profile->root));
    if (profile->has_late)
        TRY(make_file_system(profile->beside));
    EACH(step, profile)
        TRY(prepare_place(profile, step));
    EACH(step, profile)
        if (step->word == W_BIND || step->word == W_MASK)
            TRY(fill_place(profile, step));
    return set_mount(AT_FDCWD, profile->root, 0, A_READ_ONLY | A_NO_SETUID | A_NO_DEVICES, -1);
}

static void remove_view(const struct profile *profile) {
    umount2(profile->root, MNT_DETACH);
    rmdir(profile->root);
    if (profile->has_late) {
        umount2(profile->beside, MNT_DETACH);
        rmdir(profile->beside);
    }
}

static int mount_each(const struct profile *profile, const struct step *step) {
    char target[PATH_MAX], options[PATH_MAX];
    TRY(write_path(target, "%s%s", profile->root, step->path));
    if (step->word == W_PROCESSES)
        return mount_at(target, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid");
    TRY(write_path(options, "size=%s,%s", step->arguments[0], step->arguments[1]));
    return mount_at(target, "tmpfs", MS_NOSUID | MS_NODEV, options);
}

/* Nothing can be written to the folders on the way to something that was granted. */
static int attach_late(const struct profile *profile, const struct step *step) {
    char from[PATH_MAX], to[PATH_MAX];
    bool is_file = strcmp(step->arguments[0], "file") == 0;
    TRY(write_path(from, "%s%s", profile->beside, step->path));
    TRY(write_path(to, "%s%s", profile->root, step->path));
    TRY(is_file ? make_file(profile->root, step->path, 0555) : make_folder(profile->root, step->path, 0555));
    HELD int origin = open_path(AT_FDCWD, from);
    TRY(origin);
    HELD int tree = clone_mount(origin);
    TRY(tree);
    HELD int target = open_path(AT_FDCWD, to);
    TRY(target);
    return attach_mount(tree, target);
}

/* In a new mount namespace: what each run has for itself, then this is the root and nothing else is there. */
static int enter_view(const struct profile *profile) {
    EACH(step, profile)
        if (is_mounted_each(step))
            TRY(mount_each(profile, step));
    EACH(step, profile)
        if (step->word == W_FOLDER && is_made_each(profile, step))
            TRY(make_folder(profile->root, step->path, 0555));
    EACH(step, profile)
        if (step->word == W_LINK && is_made_each(profile, step))
            TRY(make_link(profile->root, step, 0555));
    EACH(step, profile)
        if (step->word == W_LATE)
            TRY(attach_late(profile, step));
    return change_root(profile->root);
}

/* ---- Profiles: a plan, read and made ready ---------------------------------------------------------------------- */

static int find_word(const char *name) {
    for (int i = 0; i < WORD_COUNT; i++)
        if (strcmp(WORDS[i].name, name) == 0)
            return i;
    return fail("the step %.40s is not known", name);
}

/* The next text that ends in a zero byte; NULL if there is none. */
static const char *next_text(const char **rest, const char *end) {
    const char *text = *rest, *zero = memchr(text, 0, (size_t)(end - text));
    *rest = zero ? zero + 1 : end;
    return zero ? text : NULL;
}

static int split_plan(struct profile *profile, size_t size) {
    const char *rest = profile->plan, *end = profile->plan + size, *name;
    size_t texts = 0;
    for (size_t i = 0; i < size; i++)
        texts += profile->plan[i] == 0;
    if (!(profile->steps = calloc(texts / 2 + 1, sizeof *profile->steps))) /* a step has two texts at least */
        return check(-1, "");
    while ((name = next_text(&rest, end))) {
        int word = find_word(name);
        TRY(word);
        struct step step = {.word = (enum word)word, .file = -1};
        for (int i = 0; i < WORDS[word].arity; i++)
            if (!(step.path = step.arguments[i] = next_text(&rest, end)))
                return fail("the step %s takes %d arguments", name, WORDS[word].arity);
        profile->steps[profile->count++] = step;
    }
    return 0;
}

static int from_hex(char digit) {
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static int read_filter(struct filter *filter, const char *text) {
    size_t size = strlen(text) / 2, count = size / sizeof *filter->steps;
    if (!count || count > FILTER_STEPS || strlen(text) != 2 * count * sizeof *filter->steps)
        return unreadable();
    free(filter->steps);
    if (!(filter->steps = calloc(count, sizeof *filter->steps)))
        return check(-1, "");
    for (size_t i = 0; i < size; i++) {
        int high = from_hex(text[2 * i]), low = from_hex(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return unreadable();
        ((unsigned char *)filter->steps)[i] = (unsigned char)(high << 4 | low);
    }
    filter->count = (unsigned short)count;
    return 0;
}

/* The first argument, and the second where one is wanted. */
static int read_numbers(const struct step *step, uint64_t most, uint64_t *first, uint64_t *second) {
    bool is_read = parse_number(step->arguments[0], most, first);
    return is_read && (!second || parse_number(step->arguments[1], most, second)) ? 0 : unreadable();
}

static unsigned find_layer(const char *name) {
    for (unsigned i = 0; i < LAYER_COUNT; i++)
        if (strcmp(LAYERS[i], name) == 0)
            return 1U << i;
    return 0;
}

static int read_step(struct profile *profile, struct step *step) {
    const char *text = step->arguments[0];
    profile->said |= 1U << step->word;
    switch (step->word) {
    case W_LAYER:
        profile->layers |= find_layer(text);
        return 0;
    case W_USER:
        return read_numbers(step, UINT32_MAX - 1, &profile->uid, &profile->gid);
    case W_BIND:
        return strlen(text) == 1 && strchr("srwd", *text) ? 0 : unreadable();
    case W_FILE:
    case W_LINK:
        return strrchr(step->path, '/') ? 0 : unreadable();
    case W_LATE:
        profile->has_late = true;
        return strrchr(step->path, '/') ? 0 : unreadable();
    case W_PRIVATE:
        profile->private = text;
        return 0;
    case W_VERSION:
        return read_numbers(step, INT_MAX, &profile->version, NULL);
    case W_RULE:
    case W_INSIDE:
        return read_numbers(step, UINT64_MAX, &step->number, NULL);
    case W_PORTS:
        profile->forbids_ports = strcmp(text, "yes") == 0;
        return 0;
    case W_LIMIT:
        return read_numbers(step, UINT64_MAX, &step->number, &step->value);
    case W_GROUP:
        return read_numbers(step, UINT64_MAX, &profile->memory, &profile->processes);
    case W_NET:
        profile->is_cut_off = strcmp(text, "none") == 0;
        return 0;
    case W_DOOR:
        TRY(read_numbers(step, UINT16_MAX, &profile->door, NULL));
        return profile->door ? 0 : unreadable();
    case W_FILTER:
        return read_filter(&profile->filter, text);
    case W_RECORD:
        return read_filter(&profile->record, text);
    default:
        return 0;
    }
}

/* A missing step must not leave a layer out. */
static int check_said(const struct profile *profile) {
    unsigned needed = 1U << W_USER | 1U << W_PORTS;
    needed |= profile->layers & NET ? 1U << W_NET : 0;
    needed |= profile->layers & LANDLOCK ? 1U << W_VERSION : 0;
    needed |= profile->layers & SECCOMP ? 1U << W_FILTER : 0;
    bool is_whole = (profile->said & needed) == needed && (profile->version || !(profile->layers & LANDLOCK));
    return is_whole ? 0 : unreadable();
}

/* Without mounts nothing can be shown to the run's identity as its own, so it must have the rights itself. */
static int check_reach(const void *what) {
    TRY(become(own_uid, own_gid));
    EACH(step, (const struct profile *)what) {
        bool writes = step->number == WRITE;
        if (step->word == W_RULE && access(step->path, R_OK | (writes ? W_OK : 0)) < 0)
            return fail("Glee is run by root, so the tool runs as user %u, who may not %s %s; "
                        "run Glee as an ordinary user, or open the path",
                        own_uid, writes ? "write to" : "read", step->path);
    }
    return 0;
}

static int open_rules(struct profile *profile) {
    struct stat status;
    EACH(step, profile) {
        if (step->word != W_RULE)
            continue;
        TRY(step->file = open_path(AT_FDCWD, step->path));
        TRY(check(fstat(step->file, &status), ""));
        step->is_folder = S_ISDIR(status.st_mode);
    }
    return 0;
}

static int in_child(int (*attempt)(const void *), const void *what, unsigned long flags);

static int load_profile(struct profile *profile, int file) {
    size_t size;
    TRY(read_all(file, PLAN_BYTES, &profile->plan, &size));
    TRY(split_plan(profile, size));
    EACH(step, profile)
        TRY(read_step(profile, step));
    return check_said(profile);
}

/* Lets go of all that was opened, and built. */
static void unmake_profile(struct profile *profile) {
    EACH(step, profile) {
        let_go(&step->file);
        step->file = -1;
    }
    if (profile->has_view)
        remove_view(profile);
    profile->has_view = profile->is_made = false;
}

static int build_profile(struct profile *profile) {
    if (is_root && !(profile->layers & MOUNT))
        TRY(in_child(check_reach, profile, 0));
    if (profile->layers & MOUNT)
        TRY(build_view(profile));
    return profile->layers & LANDLOCK ? open_rules(profile) : 0;
}

/* When it is first needed. What failed is tried again: the reason may be gone. */
static int make_profile(struct profile *profile) {
    if (!profile || *profile->fault)
        return fail("%s", profile ? profile->fault : "its profile was not loaded");
    if (!profile->is_made && build_profile(profile) < 0) {
        unmake_profile(profile);
        return -1;
    }
    profile->is_made = true;
    return 0;
}

/* All that a profile holds but its key and its fault. */
static void empty_profile(struct profile *profile) {
    unmake_profile(profile);
    free(profile->steps);
    free(profile->filter.steps);
    free(profile->record.steps);
    free(profile->plan);
    profile->steps = NULL;
    profile->filter = profile->record = (struct filter){NULL, 0};
    profile->plan = NULL;
    profile->count = 0;
}

static struct profile **find_profile(const char *key) {
    struct profile **place = &profiles;
    while (*place && strcmp((*place)->key, key) != 0)
        place = &(*place)->next;
    return place;
}

static void forget_profile(const char *key) {
    struct profile **place = find_profile(key), *profile = *place;
    if (!profile)
        return;
    *place = profile->next;
    empty_profile(profile);
    free(profile);
}

/* One that cannot be read is kept with the reason, for each jail that is asked of it. */
static void add_profile(const char *key, int file) {
    forget_profile(key);
    struct profile *profile = calloc(1, sizeof *profile);
    if (!profile)
        return;
    snprintf(profile->key, sizeof profile->key, "%s", key);
    if (load_profile(profile, file) < 0) {
        memcpy(profile->fault, fault, sizeof fault);
        empty_profile(profile);
    }
    profile->next = profiles;
    profiles = profile;
}

/* ---- Control groups: what all processes of a run may use together ----------------------------------------------- */

/* Version 1 has a tree for each controller; version 2 has one for all, so that both folders are the same. */
enum { MEMORY, PIDS, CONTROLLERS, UNIFIED = CONTROLLERS, TREES };
static const char *const TREE_NAMES[TREES] = {"memory", "pids", ""};
static char groups[CONTROLLERS][PATH_MAX];
static int trees;            /* 0 where no groups can be made */

/* The name of a limit depends on the version. */
static int write_limit(int controller, const char *name, const char *file, const char *other, uint64_t limit) {
    char path[PATH_MAX], text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)limit);
    TRY(write_path(path, "%s/%s/%s", groups[controller], name, file));
    if (access(path, F_OK) < 0)
        TRY(write_path(path, "%s/%s/%s", groups[controller], name, other));
    return write_text(AT_FDCWD, path, text);
}

static int write_limits(const char *name, uint64_t memory, uint64_t processes) {
    TRY(write_limit(MEMORY, name, "memory.max", "memory.limit_in_bytes", memory));
    TRY(write_limit(PIDS, name, "pids.max", "pids.max", processes));
    /* Where they are there: no swap on top, and one that is killed for its memory takes the others with it. */
    (void)write_limit(MEMORY, name, "memory.swap.max", "memory.swap.max", 0);
    (void)write_limit(MEMORY, name, "memory.memsw.limit_in_bytes", "memory.memsw.limit_in_bytes", memory);
    (void)write_limit(MEMORY, name, "memory.oom.group", "memory.oom.group", 1);
    return 0;
}

static bool remove_group(const char *name) {
    bool is_gone = true;
    char path[PATH_MAX];
    for (int i = 0; i < trees; i++)
        if (write_path(path, "%s/%s", groups[i], name) == 0 && rmdir(path) < 0 && errno != ENOENT)
            is_gone = false;
    return is_gone;
}

/* Descriptors; whoever writes a zero to each is in the group, and so is all that it starts. */
static int make_group(const char *name, uint64_t memory, uint64_t processes, int files[CONTROLLERS]) {
    char path[PATH_MAX];
    for (int i = 0; i < trees; i++) {
        TRY(write_path(path, "%s/%s", groups[i], name));
        if (mkdir(path, 0755) < 0)
            return fail_path(path);
    }
    TRY(write_limits(name, memory, processes));
    for (int i = 0; i < trees; i++) {
        TRY(write_path(path, "%s/%s/cgroup.procs", groups[i], name));
        if ((files[i] = open(path, O_WRONLY | O_CLOEXEC)) < 0)
            return fail_path(path);
    }
    return 0;
}

static int join_group(const void *files) {
    for (int i = 0; i < CONTROLLERS; i++)
        if (((const int *)files)[i] >= 0)
            TRY(check(write(((const int *)files)[i], "0", 1), ""));
    return 0;
}

static void remove_folder(int at, const char *name, void *unused) {
    (void)unused;
    unlinkat(at, name, AT_REMOVEDIR);
}

/* A folder of groups, with all that are in it. */
static void clear_groups(int base, const char *path) {
    visit(base, path, remove_folder, NULL);
    unlinkat(base, path, AT_REMOVEDIR);
}

static bool is_number(const char *text) {
    uint64_t number;
    return parse_number(text, INT_MAX, &number);
}

static void sweep_group(int at, const char *name, void *unused) {
    (void)unused;
    if (strncmp(name, "glee-", 5) == 0 && is_number(name + 5) && faccessat(PROC, name + 5, F_OK, 0) < 0)
        clear_groups(at, name);
}

static void close_groups(void) {
    for (int i = 0; i < trees; i++)
        clear_groups(AT_FDCWD, groups[i]);
    trees = 0;
}

typedef void reader(char *line, char found[TREES][PATH_MAX]);

/* Every line of a file, without its end. */
static int read_lines(const char *path, reader *read_line, char found[TREES][PATH_MAX]) {
    char *line = NULL;
    size_t space = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return fail_path(path);
    while (getline(&line, &space, file) >= 0) {
        line[strcspn(line, "\n")] = 0;
        read_line(line, found);
    }
    free(line);
    fclose(file);
    return 0;
}

/* NUMBER:CONTROLLERS:PATH, the group that this process is in itself. */
static void read_own_group(char *line, char found[TREES][PATH_MAX]) {
    char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
    if (!path)
        return;
    *path = 0;
    for (int i = 0; i < TREES; i++)
        if (strcmp(names + 1, TREE_NAMES[i]) == 0)
            (void)write_path(found[i], "%s", path + 1);
}

static bool has_name(const char *list, const char *separator, const char *name) {
    char copy[1024], *state = NULL;
    snprintf(copy, sizeof copy, "%s", list);
    for (char *one = strtok_r(copy, separator, &state); one; one = strtok_r(NULL, separator, &state))
        if (strcmp(one, name) == 0)
            return true;
    return false;
}

/* SOURCE PLACE KIND OPTIONS, and more. */
static void read_mount(char *line, char found[TREES][PATH_MAX]) {
    char *fields[4] = {NULL}, *state = NULL;
    for (int i = 0; i < 4; i++)
        if (!(fields[i] = strtok_r(i ? NULL : line, " ", &state)))
            return;
    if (strcmp(fields[2], "cgroup2") == 0)
        (void)write_path(found[UNIFIED], "%s", fields[1]);
    for (int i = 0; i < CONTROLLERS && strcmp(fields[2], "cgroup") == 0; i++)
        if (has_name(fields[3], ",", TREE_NAMES[i]))
            (void)write_path(found[i], "%s", fields[1]);
}

/* The path may be told from further up than the mount shows, as in a container. */
static int find_own_group(char group[PATH_MAX], const char *mount, const char *own) {
    struct stat status;
    int length = (int)strlen(own);
    while (length && own[length - 1] == '/')
        length--;
    TRY(write_path(group, "%s%.*s", mount, length, own));
    return stat(group, &status) == 0 && S_ISDIR(status.st_mode) ? 0 : write_path(group, "%s", mount);
}

static bool hands_on(const char *group) {
    char path[PATH_MAX], text[1024];
    if (write_path(path, "%s/cgroup.subtree_control", group) < 0)
        return false;
    HELD int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
    text[size > 0 ? size : 0] = 0;
    return has_name(text, " \n", "memory") && has_name(text, " \n", "pids") &&
           write_path(path, "%s/cgroup.procs", group) == 0 && access(path, W_OK) == 0;
}

/* The nearest group above this process that hands both controllers on and lets us make groups in it. */
static int find_delegated_group(char group[PATH_MAX], const char *mount, const char *own) {
    TRY(find_own_group(group, mount, own));
    while (!hands_on(group)) {
        char *slash = strrchr(group, '/');
        if (!slash || slash < group + strlen(mount))
            return fail("no control group was delegated to this user; "
                        "on systemd, start Glee with: systemd-run --user --scope");
        *slash = 0;
    }
    return 0;
}

/* Below the groups that this process is in itself, so that what holds it holds its runs too. */
static int find_groups(void) {
    static char own[TREES][PATH_MAX] = {"/", "/", "/"}, mounts[TREES][PATH_MAX], found[CONTROLLERS][PATH_MAX];
    TRY(read_lines("/proc/self/cgroup", read_own_group, own));
    TRY(read_lines("/proc/self/mounts", read_mount, mounts));
    bool is_old = *mounts[MEMORY] && *mounts[PIDS];
    if (!is_old && !*mounts[UNIFIED])
        return fail("no control groups are mounted");
    for (int i = 0; i < CONTROLLERS; i++) {
        TRY(is_old ? find_own_group(found[i], mounts[i], own[i])
                   : find_delegated_group(found[i], mounts[UNIFIED], own[UNIFIED]));
        TRY(write_path(groups[i], "%s/glee-%d", found[i], getpid()));
        visit(AT_FDCWD, found[i], sweep_group, NULL); /* what servers that were killed left behind */
    }
    trees = strcmp(groups[MEMORY], groups[PIDS]) == 0 ? 1 : 2;
    return 0;
}

static int make_groups(void) {
    char path[PATH_MAX];
    int files[CONTROLLERS] = {-1, -1};
    for (int i = 0; i < trees; i++) {
        if (mkdir(groups[i], 0755) < 0 && errno != EEXIST)
            return fail_path(groups[i]);
        TRY(write_path(path, "%s/cgroup.subtree_control", groups[i]));
        if (access(path, F_OK) == 0)
            TRY(write_text(AT_FDCWD, path, "+memory +pids"));
    }
    int result = make_group("trial", 1 << 30, 100, files);
    if (result == 0)
        result = in_child(join_group, files, 0);
    let_go(&files[MEMORY]);
    let_go(&files[PIDS]);
    remove_group("trial");
    return result;
}

/* ---- All that a process started, where no process namespace ends it at once ------------------------------------- */

/* The name of a program may hold anything, so the fields are counted from its end. 0 if there is no such process. */
static pid_t read_parent(pid_t pid, char *state) {
    char path[64], text[1024];
    int parent;
    snprintf(path, sizeof path, "%d/stat", pid);
    HELD int file = openat(PROC, path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, text, sizeof text - 1);
    text[size > 0 ? size : 0] = 0;
    char *end = strrchr(text, ')');
    return end && sscanf(end + 1, " %c %d", state, &parent) == 2 ? parent : 0;
}

static bool is_offspring(pid_t pid) {
    char state;
    while (pid > 1)
        if ((pid = read_parent(pid, &state)) == getpid())
            return true;
    return false;
}

static void stop_offspring(int at, const char *name, void *is_new) {
    char state = 'X';
    (void)at;
    pid_t pid = is_number(name) ? atoi(name) : 0;
    if (pid == 0 || read_parent(pid, &state) == 0 || strchr("TZX", state) || !is_offspring(pid))
        return;
    if (kill(pid, SIGSTOP) == 0)
        *(bool *)is_new = true;
}

static void kill_offspring(int at, const char *name, void *unused) {
    (void)at, (void)unused;
    if (is_number(name) && is_offspring(atoi(name)))
        kill(atoi(name), SIGKILL);
}

/* They are stopped first, again and again until all are: what is stopped starts no other. */
static void end_offspring(void) {
    bool is_new = true;
    for (int pass = 0; pass < PASSES && is_new; pass++) {
        is_new = false;
        visit(PROC, ".", stop_offspring, &is_new);
    }
    visit(PROC, ".", kill_offspring, NULL);
}

static void count_entry(int at, const char *name, void *count) {
    (void)at, (void)name;
    ++*(int *)count;
}

/* How many threads a user has, as the limit on processes counts them. */
static void count_threads(int at, const char *name, void *count) {
    char path[64];
    struct stat status;
    if (!is_number(name) || fstatat(at, name, &status, 0) < 0 || status.st_uid != own_uid)
        return;
    snprintf(path, sizeof path, "%.20s/task", name);
    visit(at, path, count_entry, count);
}

/* ---- The folder that only one run has, where there are no mounts ------------------------------------------------ */

static int make_own(const struct profile *profile, const char *own) {
    static const char *const parts[] = {"", "/tmp", "/home"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        TRY(write_path(path, "%s%s", own, parts[i]));
        if (mkdir(path, 0700) < 0 || (is_root && chown(path, (uid_t)profile->uid, (gid_t)profile->gid) < 0))
            return fail_path(path);
    }
    return 0;
}

struct removal {
    int top;
    unsigned moved;
    bool has_changed;
};

/* False for a folder that is not empty; it is one's own, and open from here on. */
static bool remove_entry(int at, const char *name, struct removal *removal) {
    if (unlinkat(at, name, 0) < 0 && unlinkat(at, name, AT_REMOVEDIR) < 0)
        return fchmodat(at, name, 0700, 0) < 0;
    return removal->has_changed = true;
}

/* Something in a folder that is in the top: if it is a folder that is not empty, it comes to the top itself. */
static void remove_inner(int at, const char *name, void *context) {
    struct removal *removal = context;
    char free_name[32];
    if (remove_entry(at, name, removal))
        return;
    for (errno = EEXIST; errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR;) {
        snprintf(free_name, sizeof free_name, ".glee-%u", removal->moved++);
        errno = 0;
        removal->has_changed |= renameat(at, name, removal->top, free_name) == 0;
    }
}

static void remove_outer(int at, const char *name, void *context) {
    struct removal *removal = context;
    removal->top = at;
    if (!remove_entry(at, name, removal))
        visit(at, name, remove_inner, removal);
}

/* However deep the run nested what it made: no level takes any stack or descriptor of its own. */
static void remove_own(const char *own) {
    struct removal removal = {.has_changed = true};
    while (removal.has_changed) {
        removal.has_changed = false;
        visit(AT_FDCWD, own, remove_outer, &removal);
    }
    rmdir(own);
}

/* ---- The run: locks itself in, waits for the request and becomes the program ------------------------------------ */

static int reset_signals(void) {
    static const int numbers[] = {SIGPIPE, SIGXFSZ, SIGINT, SIGCHLD};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (signal(numbers[i], SIG_DFL) == SIG_ERR)
            return check(-1, "signal");
    return check(sigprocmask(SIG_SETMASK, &engine_mask, NULL), "sigprocmask");
}

/* A process that has used up its time is told before it is killed. */
static int set_limit(const struct step *step) {
    struct rlimit before, limit = {step->value, step->value};
    TRY(check(getrlimit((int)step->number, &before), "getrlimit"));
    if (step->number == RLIMIT_CPU && step->value < before.rlim_max)
        limit.rlim_max = step->value + 1;
    return check(setrlimit((int)step->number, &limit), "setrlimit");
}

/* That on open files apart: the server's own would count. */
static int set_limits(const struct profile *profile, bool of_files) {
    EACH(step, profile)
        if (step->word == W_LIMIT && (step->number == RLIMIT_NOFILE) == of_files)
            TRY(set_limit(step));
    return 0;
}

/* Every layer that the process lays on itself, from the outermost in. None of them can be taken off. */
static int lock_in(const struct profile *profile, const char *own) {
    TRY(check(setsid(), "setsid"));
    TRY(reset_signals());
    umask(engine_umask);
    if (is_root)
        TRY(become(profile->uid, profile->gid));
    if (profile->layers & USER)
        TRY(enter_user());
    TRY(set_limits(profile, false)); /* not before: the new namespace would have all runs share them */
    if (!(profile->layers & PID))
        TRY(set_self(PR_SET_PDEATHSIG, SIGKILL));
    TRY(set_self(PR_SET_NO_NEW_PRIVS, 1));
    if (profile->layers & LANDLOCK)
        TRY(restrict_files(profile, own));
    TRY(drop_capabilities());
    return profile->layers & SECCOMP ? install_filter(&profile->filter, 0) : 0;
}

/* The engine is told of what a recorded run calls; it decides nothing. */
static int hand_over_record(const struct profile *profile) {
    if (!profile->record.count)
        return 0;
    HELD int listener = install_filter(&profile->record, SECCOMP_FILTER_FLAG_NEW_LISTENER);
    TRY(listener);
    return send_file(LINE, "N", listener);
}

/* Standard streams, and perhaps a channel. Those that come have other numbers than 0, 1 and 2, which are taken. */
static int place_streams(const int *files, int count) {
    if (count < FEWEST_STREAMS || count > MOST_STREAMS)
        return fail("a request brings three streams, or four");
    for (int i = 0; i < count; i++)
        TRY(check(dup2(files[i], i), ""));
    for (int i = 0; i < count; i++)
        if (files[i] >= count) /* one that already had the number of a stream is that stream now */
            close(files[i]);
    return 0;
}

/* Whatever it was, it has a number. */
_Noreturn static void refuse_program(void) {
    char text[16];
    snprintf(text, sizeof text, "F%d", errno);
    (void)say(RUN_LINE, text);
    _exit(127);
}

struct request {
    const char *program, *cwd;
    char **argv, **environment;
};

/* PROGRAM, CWD, COUNT, as many arguments, then variables, with a zero byte between each two. */
static int split_request(char *text, size_t size, struct request *request) {
    uint64_t arguments = 0;
    size_t count = 1, filled = 0;
    for (size_t i = 0; i < size; i++)
        count += text[i] == 0;
    char **texts = malloc((count + 1) * sizeof *texts);
    if (!texts)
        return check(-1, "");
    text[size] = 0;
    for (char *one = text; filled < count; one += strlen(one) + 1)
        texts[filled++] = one;
    texts[count] = NULL;
    if (count < 4 || !parse_number(texts[2], count - 3, &arguments) || arguments == 0)
        return fail("the request cannot be read");
    request->program = texts[0];
    request->cwd = texts[1];
    request->argv = memmove(texts + 2, texts + 3, arguments * sizeof *texts); /* which leaves room for its end */
    request->argv[arguments] = NULL;
    request->environment = texts + 3 + arguments;
    for (char **variable = request->environment; *variable; variable++)
        if (!strchr(*variable, '='))
            return fail("the request cannot be read");
    return 0;
}

static int wait_for_request(struct request *request) {
    static char message[INLINE_BYTES + 2];
    char *text = message;
    int files[MOST_FILES], count;
    ssize_t length = receive(RUN_LINE, message, INLINE_BYTES + 1, files, MOST_FILES, &count, 0);
    TRY(length);
    if (length == 0)
        _exit(125); /* nobody will ask any more */
    size_t size = (size_t)length;
    if (size == 1 && *message == 'M') {
        if (count == 0)
            return fail("the request cannot be read");
        HELD int file = files[--count];
        if (read_all(file, REQUEST_BYTES, &text, &size) < 0)
            refuse_program();
    }
    TRY(place_streams(files, count));
    return split_request(text, size, request);
}

static int run_line = LINE;

static int prepare_run(const struct profile *profile, const char *own, const int *group, struct request *request) {
    TRY(join_group(group));
    TRY(lock_in(profile, own));
    TRY(hand_over_record(profile));
    TRY(check(dup3(LINE, RUN_LINE, O_CLOEXEC), ""));
    run_line = RUN_LINE;
    TRY(close_from(RUN_LINE + 1));
    close(LINE);
    TRY(set_limits(profile, true));
    TRY(say(RUN_LINE, "R"));
    return wait_for_request(request);
}

_Noreturn static void run(const struct profile *profile, const char *own, const int *group) {
    struct request request = {NULL, NULL, NULL, NULL};
    if (prepare_run(profile, own, group, &request) < 0)
        give_up(run_line);
    if (chdir(request.cwd) == 0)
        execve(request.program, request.argv, request.environment);
    refuse_program();
}

/* ---- The keeper: process one, which does the mounts, starts the run, and ends with it --------------------------- */

/* Reaps whatever has ended. True once there is nobody left; `is_over` once the run has ended. */
static bool reap(pid_t run_pid, int *status, bool *is_over) {
    int how;
    pid_t ended;
    while ((ended = waitpid(-1, &how, WNOHANG)) > 0)
        if (ended == run_pid) {
            *status = WIFSIGNALED(how) ? 128 + WTERMSIG(how) : WEXITSTATUS(how);
            *is_over = true;
        }
    return ended < 0;
}

/*
 * Ends every process of the jail but this one.
 * Again and again: a run that still has another identity, in the midst of being set up, cannot be killed yet.
 */
static void end_all(pid_t run_pid, int *status) {
    bool is_over;
    struct timespec moment = {0, 200000};
    while (!reap(run_pid, status, &is_over)) {
        if (getpid() == 1)
            kill(-1, SIGKILL);
        else /* the same call would end all that the user runs */
            end_offspring();
        if (reap(run_pid, status, &is_over))
            return;
        nanosleep(&moment, NULL);
    }
}

/* Nothing that the run does to this process may gain it anything. */
static int settle(const struct profile *profile) {
    if (is_root)
        TRY(become(profile->uid, profile->gid));
    TRY(drop_capabilities());
    TRY(set_self(PR_SET_DUMPABLE, 0));
    return close_from(getpid() == 1 ? PROC : FIRST_FREE);
}

static void empty_news(void) {
    struct signalfd_siginfo news;
    while (read(ENDS, &news, sizeof news) > 0)
        ;
}

/* Until the run has ended, or nobody holds the other end of the line. */
static int wait_for_end(pid_t run_pid) {
    int status = 128 + SIGKILL;
    bool is_over = false;
    struct pollfd watched[] = {{LINE, POLLRDHUP, 0}, {ENDS, POLLIN, 0}};
    while (!is_over && poll(watched, 2, -1) >= 0 && !watched[0].revents) {
        empty_news();
        is_over = reap(run_pid, &status, &is_over) || is_over;
    }
    end_all(run_pid, &status);
    return status;
}

static int prepare_jail(const struct profile *profile, const char *own) {
    if (getpid() != 1)
        TRY(set_self(PR_SET_CHILD_SUBREAPER, 1));
    if (profile->layers & NET && profile->is_cut_off && empty_network >= 0)
        TRY(check(setns(empty_network, CLONE_NEWNET), "setns"));
    if (profile->door)
        TRY(hand_over_door(profile->door));
    if (profile->has_view)
        TRY(enter_view(profile));
    return own ? make_own(profile, own) : 0;
}

_Noreturn static void keep(const struct profile *profile, int line, const char *name, const int *group) {
    char own[PATH_MAX] = "", text[16];
    if (dup3(line, LINE, O_CLOEXEC) < 0) /* in the place of the control socket, which is the server's alone */
        _exit(125);
    close(line);
    if (profile->private && write_path(own, "%s/%s", profile->private, name) < 0)
        give_up(LINE);
    pid_t run_pid = prepare_jail(profile, *own ? own : NULL) < 0 ? -1 : clone_into(0);
    if (run_pid == 0)
        run(profile, *own ? own : NULL, group);
    if (run_pid < 0 || settle(profile) < 0) {
        say_fault(LINE);
        shutdown(LINE, SHUT_RDWR); /* so that the end comes now */
    }
    snprintf(text, sizeof text, "X%d", wait_for_end(run_pid));
    if (*own)
        remove_own(own);
    (void)say(LINE, text);
    _exit(0);
}

/* ---- The server: makes jails, and removes their groups ---------------------------------------------------------- */

static unsigned long namespaces_of(const struct profile *profile) {
    unsigned long flags = profile->layers & MOUNT ? CLONE_NEWNS : 0;
    flags |= profile->layers & PID ? CLONE_NEWPID : 0;
    flags |= profile->layers & IPC ? CLONE_NEWIPC : 0;
    return flags | (profile->door ? CLONE_NEWNET : 0);
}

/* From here on the group is removed once it has no keeper, whatever comes of the jail. */
static struct jail *add_jail(const char *name) {
    struct jail *jail = calloc(1, sizeof *jail);
    if (!jail) {
        check(-1, "");
        return NULL;
    }
    snprintf(jail->name, sizeof jail->name, "%s", name);
    jail->next = jails;
    return jails = jail;
}

static int start_jail(struct profile *profile, const char *name, int line, int group[CONTROLLERS]) {
    struct jail *jail = NULL;
    TRY(make_profile(profile));
    if (trees && profile->said & 1U << W_GROUP) {
        if (!(jail = add_jail(name)))
            return -1;
        TRY(make_group(name, profile->memory, profile->processes, group));
    }
    pid_t keeper = clone_into(namespaces_of(profile));
    if (keeper == 0)
        keep(profile, line, name, group);
    if (jail && keeper > 0)
        jail->keeper = keeper;
    return keeper < 0 ? -1 : 0;
}

static void make_jail(const char *key, const char *name, int line) {
    int group[CONTROLLERS] = {-1, -1};
    if (start_jail(*find_profile(key), name, line, group) < 0)
        say_fault(line);
    let_go(&group[MEMORY]);
    let_go(&group[PIDS]);
}

/* A group that is still busy goes with one of the next. True while there are any. */
static bool reap_jails(void) {
    pid_t ended;
    bool is_running = false;
    empty_news();
    while ((ended = waitpid(-1, NULL, WNOHANG)) > 0)
        for (struct jail *jail = jails; jail; jail = jail->next)
            if (jail->keeper == ended)
                jail->keeper = 0;
    for (struct jail **place = &jails, *jail; (jail = *place);) {
        is_running |= jail->keeper != 0;
        if (jail->keeper == 0 && remove_group(jail->name)) {
            *place = jail->next;
            free(jail);
        } else {
            place = &jail->next;
        }
    }
    return is_running;
}

/* Letters and digits, so that it is a name in any folder; NULL if there is none. */
static char *take_name(char **rest) {
    char *name = *rest;
    size_t length = 0;
    while (isalnum((unsigned char)name[length]))
        length++;
    if (length == 0 || length >= NAME_BYTES || (name[length] && name[length] != ' '))
        return NULL;
    *rest = name + length + (name[length] == ' ');
    name[length] = 0;
    return name;
}

/* One message; false if the engine is gone, or says what no engine says. Without its file there is nothing to do. */
static bool obey(void) {
    char message[MESSAGE_BYTES + 1];
    HELD int file = -1;
    int count;
    ssize_t size = receive(CONTROL, message, MESSAGE_BYTES, &file, 1, &count, MSG_CMSG_CLOEXEC);
    if (size <= 0)
        return false;
    message[size] = 0;
    char *rest = message + 1, *key = take_name(&rest), *name = key ? take_name(&rest) : NULL;
    if (!key || !strchr("PJD", *message) || (*message == 'J' && !name))
        return false;
    if (*message == 'P' && file >= 0)
        add_profile(key, file);
    else if (*message == 'J' && file >= 0)
        make_jail(key, name, file);
    else if (*message == 'D')
        forget_profile(key);
    return true;
}

static void serve(void) {
    struct pollfd watched[] = {{CONTROL, POLLIN, 0}, {ENDS, POLLIN, 0}};
    while (poll(watched, 2, -1) >= 0) {
        if (watched[1].revents)
            reap_jails();
        if (watched[0].revents && !obey())
            return;
    }
}

/* The engine has let go of every jail, so all of them are ending. */
static void end(void) {
    struct pollfd watched = {ENDS, POLLIN, 0};
    for (int wait = 0; trees && wait < PATIENCE * 10 && reap_jails();)
        wait += poll(&watched, 1, 100) == 0;
    close_groups();
}

/* ---- What can be held here, tried for real ---------------------------------------------------------------------- */

/* Tries something that cannot be undone. */
static int in_child(int (*attempt)(const void *), const void *what, unsigned long flags) {
    char said[FAULT_BYTES];
    int report[2];
    TRY(check(pipe2(report, O_CLOEXEC), ""));
    pid_t pid = clone_into(flags);
    if (pid == 0) {
        const char *word = attempt(what) < 0 ? fault : "+";
        _exit(write(report[1], word, strlen(word)) < 0);
    }
    close(report[1]);
    ssize_t size = pid < 0 ? -1 : read(report[0], said, sizeof said - 1);
    close(report[0]);
    TRY(pid);
    said[size > 0 ? size : 0] = 0;
    waitpid(pid, NULL, 0);
    return strcmp(said, "+") == 0 ? 0 : fail("%s", *said ? said : "it was killed");
}

static int try_filter(const void *allow_all) {
    struct sock_filter steps = {BPF_RET | BPF_K, 0, 0, *(const uint32_t *)allow_all};
    struct filter filter = {&steps, 1};
    TRY(set_self(PR_SET_NO_NEW_PRIVS, 1));
    return install_filter(&filter, 0);
}

static int try_landlock(const void *version) {
    TRY(set_self(PR_SET_NO_NEW_PRIVS, 1));
    HELD int ruleset = make_ruleset(*(const uint64_t *)version, true);
    TRY(ruleset);
    return restrict_self(ruleset);
}

static int find_landlock(void) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0UL, 1U);
    landlock_version = version > 0 ? (uint64_t)version : 0;
    if (!landlock_version)
        return fail("this kernel has no Landlock, or it is not enabled");
    return in_child(try_landlock, &landlock_version, 0);
}

static int try_user(const void *unused) {
    (void)unused;
    if (is_root)
        TRY(become(own_uid, own_gid));
    return enter_user();
}

static int try_namespaces(const void *flags) {
    return check(unshare(*(const int *)flags), "unshare");
}

/* Afterwards this process has mounts of its own. */
static int leave_machine(const void *place) {
    if (!is_root)
        TRY(enter_user());
    TRY(check(unshare(CLONE_NEWNS), "unshare"));
    TRY(check(mount(NULL, "/", NULL, MS_PRIVATE | MS_REC, NULL), "mount"));
    return mount_at(place, "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=755");
}

static int try_proc(const void *place) {
    return mount_at(place, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "subset=pid");
}

static void note(enum layer layer, int result) {
    if (result >= 0)
        layers |= layer;
    else
        memcpy(faults[__builtin_ctz(layer)], fault, sizeof fault);
}

static int prepare(void) {
    static const uint32_t allow_all = SECCOMP_RET_ALLOW;
    static const int nothing = 0, new_ipc = CLONE_NEWIPC;
    note(SECCOMP, in_child(try_filter, &allow_all, 0));
    note(LANDLOCK, find_landlock());
    note(USER, in_child(try_user, NULL, 0));
    note(MOUNT, in_child(leave_machine, folder, 0));
    if (layers & MOUNT) {
        TRY(leave_machine(folder));
        note(IPC, in_child(try_namespaces, &new_ipc, 0));
        note(NET, empty_network = borrow(CLONE_NEWNET, "net", NULL));
        note(PID, in_child(try_namespaces, &nothing, CLONE_NEWPID));
        note(PROCESSES, in_child(try_proc, folder, CLONE_NEWPID | CLONE_NEWNS));
    }
    int result = find_groups();
    if (result == 0 && (result = make_groups()) < 0)
        close_groups();
    note(GROUP, result);
    return 0;
}

/* ---- The greeting, and the start -------------------------------------------------------------------------------- */

static void write_json_text(FILE *into, const char *text) {
    fputc('"', into);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\')
            fputc('\\', into);
        fputc(byte < 0x20 || byte >= 0x7f ? '?' : byte, into);
    }
    fputc('"', into);
}

static void write_greeting(FILE *into) {
    struct utsname names;
    int running = 0;
    const char *between = "";
    bool is_known = uname(&names) == 0 && sizeof(void *) == 8 &&
                    (strcmp(names.machine, "x86_64") == 0 || strcmp(names.machine, "aarch64") == 0);
    if (!(layers & USER))
        visit(PROC, ".", count_threads, &running);
    fprintf(into, "{\"machine\": \"%s\", \"landlock\": %llu, \"uid\": %u, \"gid\": %u, \"running\": %d, \"layers\": [",
            is_known ? names.machine : "unknown", (unsigned long long)landlock_version, own_uid, own_gid, running);
    for (int i = 0; i < LAYER_COUNT; i++)
        if (layers & 1U << i) {
            fprintf(into, "%s\"%s\"", between, LAYERS[i]);
            between = ", ";
        }
    fputs("], \"faults\": {", into);
    between = "";
    for (int i = 0; i < LAYER_COUNT; i++)
        if (*faults[i]) {
            fprintf(into, "%s\"%s\": ", between, LAYERS[i]);
            write_json_text(into, faults[i]);
            between = ", ";
        }
    fputs("}}", into);
}

static int greet(void) {
    char *text = NULL;
    size_t size = 0;
    FILE *into = open_memstream(&text, &size);
    if (!into)
        return -1;
    write_greeting(into);
    int result = fclose(into) == 0 ? say(CONTROL, text) : -1;
    free(text);
    return result;
}

/* Puts a descriptor at its number, which no other of ours has by then. */
static int place(int file, int number) {
    if (file == number)
        return fcntl(file, F_SETFD, FD_CLOEXEC);
    TRY(dup3(file, number, O_CLOEXEC));
    return close(file);
}

/* The standard streams are there, if only as nothing; then what every process of this server relies on. */
static int arrange_files(int control) {
    sigset_t ends;
    int file;
    TRY(control = fcntl(control, F_DUPFD_CLOEXEC, FIRST_FREE));
    do
        TRY(file = open("/dev/null", O_RDWR));
    while (file < CONTROL);
    TRY(place(control, CONTROL));
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    TRY(sigprocmask(SIG_BLOCK, &ends, &engine_mask));
    TRY(file = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK));
    TRY(place(file, ENDS));
    TRY(file = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    TRY(place(file, PROC));
    return close_from(FIRST_FREE);
}

/* As many as it may have: each profile holds some. */
static int allow_files(void) {
    struct rlimit limit;
    TRY(getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit);
}

int main(int count, char **arguments) {
    uint64_t control;
    if (count != 3 || !parse_number(arguments[1], INT_MAX, &control))
        return 2;
    folder = arguments[2];
    is_root = getuid() == 0;
    own_uid = is_root ? STRANGER : getuid();
    own_gid = is_root ? STRANGER : getgid();
    engine_umask = umask(022);
    if (signal(SIGINT, SIG_IGN) == SIG_ERR || signal(SIGCHLD, SIG_DFL) == SIG_ERR)
        return 1;
    if (allow_files() < 0 || arrange_files((int)control) < 0 || prepare() < 0 || greet() < 0)
        return 1;
    serve();
    end();
    return 0;
}
