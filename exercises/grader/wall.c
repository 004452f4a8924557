/* Two walls. bubblewrap makes namespaces in which other files, processes and networks are not there. Where the system forbids
 * that, Landlock refuses other files, a user id of its own other processes. Behind both a seccomp filter refuses system calls:
 * a program may make only those of a list, the compiler all but those of another. */
#include "wall.h"

#include "status.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PROGRAM_FD = 63, FILTER_FD = 62, MOST_ARGUMENTS = 600, EXIT_NO_WALL = 126 };

/* Of /usr only what a compiler needs: a course may lie in /usr/local. */
/* clang-format off */
static const char *const libraries[] = {"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib",
                                        "/usr/local/lib64", "/etc/ld.so.cache", NULL};
static const char *const tools[] = {"/bin", "/usr/bin", "/usr/include", "/usr/libexec", "/usr/local/bin", "/usr/local/include",
                                    "/usr/local/libexec", "/etc/alternatives", NULL};
static const char *const loaders[] = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", NULL};
/* One thread runs the blocks, in one order, so that a report is the same each time. */
static const char *environment[] = {"TMPDIR=/tmp", "PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "CCACHE_DISABLE=1",
                                    "OMP_NUM_THREADS=4", "OMP_WAIT_POLICY=passive", "SIMT_WATCHDOG_SECONDS=5", "SIMT_THREADS=1", NULL};
/* clang-format on */

static enum wall wall = NO_WALL;
static uid_t own_uid; /* 0: the grader's own stays */
enum { FIRST_UID = 0x70000000 };

/* In tests/exercises/walls.c parts are taken away, so that it can be seen what each of them stops. */
static bool has(const char *part) {
#ifdef WALL_FOR_TESTS
    return getenv("WITHOUT") == NULL || strstr(getenv("WITHOUT"), part) == NULL;
#else
    return part != NULL;
#endif
}

static _Noreturn void no_wall(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    _exit(EXIT_NO_WALL);
}

/* ---- Landlock ------------------------------------------------------------------------------------------------------- */

enum { READ = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR, EXECUTE = LANDLOCK_ACCESS_FS_EXECUTE };

/* What may be done below a path, where it exists; of a file only what files have. The path's descriptor, or -1. */
static int allow(int ruleset, const char *path, uint64_t access) {
    const uint64_t of_files = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | EXECUTE;
    struct landlock_path_beneath_attr rule = {.parent_fd = open(path, O_PATH)};
    struct stat file;
    if (rule.parent_fd < 0 && errno == ENOENT) return -1;
    if (rule.parent_fd < 0 || fstat(rule.parent_fd, &file) != 0 || faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0)
        no_wall(path);
    rule.allowed_access = S_ISDIR(file.st_mode) ? access : access & of_files;
    if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0) no_wall("Landlock");
    return rule.parent_fd;
}

static void allow_all(int ruleset, const char *const *paths, uint64_t access) {
    for (; *paths != NULL; paths++) close(allow(ruleset, *paths, access));
}

static void restrict_files(const struct confinement *c) {
    /* struct landlock_ruleset_attr of the newest kernel: this machine's headers may be older. */
    struct {
        uint64_t files, network, scoped;
    } handled;
    static const struct {
        size_t bytes;
        int rights; /* on files */
        unsigned network, scoped;
    } by_version[] = {{8, 13, 0, 0}, {8, 14, 0, 0}, {8, 15, 0, 0}, {16, 15, 3, 0}, {16, 16, 3, 0}, {24, 16, 3, 3}};
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1) no_wall("Landlock");
    long known = version < 6 ? version - 1 : 5;
    handled.files = (1ull << by_version[known].rights) - 1;
    handled.network = by_version[known].network, handled.scoped = by_version[known].scoped;
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &handled, by_version[known].bytes, 0);
    if (ruleset < 0) no_wall("Landlock");
    allow_all(ruleset, libraries, c->compiles ? READ | EXECUTE : READ);
    allow_all(ruleset, loaders, READ | EXECUTE);
    if (c->compiles) allow_all(ruleset, tools, READ | EXECUTE);
    allow_all(ruleset, c->readable, READ | EXECUTE);
    /* The device finds its source lines by its memory map. The descriptor stays open: it keeps the folder the same. */
    if (!c->compiles) allow(ruleset, "/proc/self", READ);
    close(allow(ruleset, "/dev/null", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE));
    const uint64_t special = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                             LANDLOCK_ACCESS_FS_MAKE_FIFO | EXECUTE;
    if (c->writable != NULL) close(allow(ruleset, c->writable, handled.files & ~special));
    if (syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) no_wall("Landlock");
    close(ruleset);
}

/* Root becomes a user that owns nothing else; where that one cannot reach the files, root without its capabilities. */
static void drop_rights(void) {
    if (!has("user")) return;
    if (own_uid != 0) {
        if (has("number") && own_uid >= FIRST_UID) limit(RLIMIT_NPROC, 64); /* the other may be shared */
        if (setgroups(0, NULL) != 0 || setresgid(own_uid, own_uid, own_uid) != 0 || setresuid(own_uid, own_uid, own_uid) != 0)
            no_wall("a user id of its own");
    } else if (geteuid() == 0) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct none[2] = {0};
        for (int capability = 0; capability < 64; capability++) prctl(PR_CAPBSET_DROP, capability);
        if (syscall(SYS_capset, &header, none) != 0) no_wall("capset");
    }
}

static void enter_landlock(const char *program, const struct confinement *c) {
    int fd = c->compiles ? -1 : open(program, O_PATH);
    drop_rights();
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* again: a change of user forgets it */
    if (has("privileges") && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) no_wall("no_new_privs");
    if (has("landlock")) restrict_files(c);
    if (fd >= 0 && dup3(fd, PROGRAM_FD, O_CLOEXEC) < 0) no_wall(program);
    if (fd >= 0 && has("number")) limit(RLIMIT_NOFILE, FILTER_FD); /* no other file gets this number */
    if (has("seccomp") && seccomp_load(make_filter(c->compiles, PROGRAM_FD)) != 0) no_wall("seccomp");
}

/* ---- bubblewrap ----------------------------------------------------------------------------------------------------- */

struct arguments {
    const char *list[MOST_ARGUMENTS];
    int count;
};

static void add(struct arguments *to, const char *const *more) {
    for (; *more != NULL && to->count + 1 < MOST_ARGUMENTS; more++) to->list[to->count++] = *more;
    to->list[to->count] = NULL;
}
#define ADD(to, ...) add(to, (const char *const[]){__VA_ARGS__, NULL})

static void bind_all(struct arguments *to, const char *const *paths) {
    for (; *paths != NULL; paths++) ADD(to, "--ro-bind-try", *paths, *paths);
}

/* The environment is clean already. */
static void add_bubblewrap(struct arguments *to, const struct confinement *c) {
    static char here[4096];
    if (getcwd(here, sizeof here) == NULL) abort();
    ADD(to, "bwrap", "--unshare-user", "--die-with-parent", "--new-session");
    if (has("namespaces")) ADD(to, "--unshare-all");
    if (has("user")) ADD(to, "--uid", "65534", "--gid", "65534");
    if (has("capabilities")) ADD(to, "--cap-drop", "ALL");
    if (!has("files")) ADD(to, "--bind", "/", "/");
    for (int i = 0; i < 3 && has("files"); i++)
        if (i != 1 || c->compiles) bind_all(to, i == 0 ? libraries : i == 1 ? tools : c->readable);
    ADD(to, "--dev-bind", "/dev/null", "/dev/null");
    if (!c->compiles) ADD(to, "--proc", "/proc");
    if (c->writable != NULL) ADD(to, "--bind", c->writable, c->writable);
    ADD(to, "--dir", here, "--chdir", here);
    if (has("files")) ADD(to, "--remount-ro", "/");
    if (has("seccomp")) ADD(to, "--seccomp", "62");
    ADD(to, "--");
}

static void enter_bubblewrap(const struct confinement *c) {
    int file = memfd_create("filter", 0);
    if (file < 0 || seccomp_export_bpf(make_filter(c->compiles, -1), file) != 0 || lseek(file, 0, SEEK_SET) != 0 ||
        dup2(file, FILTER_FD) < 0)
        no_wall("seccomp");
    close(file);
}

/* ---- either --------------------------------------------------------------------------------------------------------- */

static void enter(const char *const argv[], const void *confinement) {
    const struct confinement *c = confinement;
    if (wall == BUBBLEWRAP) enter_bubblewrap(c);
    if (wall != LANDLOCK) return;
    enter_landlock(argv[0], c);
    if (c->compiles) return;
    syscall(SYS_execveat, PROGRAM_FD, "", argv, environment, AT_EMPTY_PATH);
    no_wall(argv[0]);
}

/* The folder of this process belongs to its user id behind the wall: each process, forked or not, has one of its own. */
static bool give_folder(void) {
    static uid_t given = (uid_t)-1;
    if (wall != LANDLOCK || geteuid() != 0) return true;
    if (own_uid >= FIRST_UID) own_uid = FIRST_UID + (uid_t)getpid();
    if (given != own_uid && chown(own_folder(), own_uid, own_uid) != 0) return false;
    given = own_uid;
    return true;
}

struct outcome run_behind_wall(const char *const argv[], struct limits limits, int results,
                               const struct confinement *confinement) {
    static char temporary[700];
    struct arguments all = {.count = 0};
    wall_in_use();
    environment[0] = temporary;
    snprintf(temporary, sizeof temporary, "TMPDIR=%s", confinement->writable != NULL ? confinement->writable : "/tmp");
    if (wall == BUBBLEWRAP) add_bubblewrap(&all, confinement);
    if (!give_folder()) err(EXIT_FAILED, "%s", own_folder());
    add(&all, argv);
    limits.enter = enter, limits.with = confinement, limits.environment = has("environment") ? environment : NULL;
    return run_program(all.list, limits, results);
}

/* ---- which one ------------------------------------------------------------------------------------------------------ */

static char missing[2][160]; /* why a wall does not work */

/* A compiler's driver runs behind the wall, as a compiler and as a program. */
static bool works(enum wall candidate) {
    const char *const driver[] = {BUILD "/bin/simt-nvcc", "--version", NULL};
    const char *const program[] = {CXX_COMPILER, "--version", NULL}, *const itself[] = {CXX_COMPILER, NULL};
    const char *const parts[] = {BUILD "/bin/simt-nvcc", BUILD "/lib/simt/config", NULL};
    const struct confinement compiler = {parts, own_folder(), true}, alone = {itself, NULL, false};
    const struct limits limits = {.seconds = 10, .cpu_seconds = 10, .output_bytes = 4096};
    wall = candidate;
    snprintf(missing[candidate], sizeof *missing, "no user id of its own");
    if (!give_folder()) return false;
    struct outcome outcome = run_behind_wall(driver, limits, -1, &compiler);
    if (outcome.status == 0) {
        free(outcome.output);
        outcome = run_behind_wall(program, limits, -1, &alone);
    }
    outcome.output[strcspn(outcome.output, "\n")] = '\0';
    snprintf(missing[candidate], sizeof *missing, "%s", *outcome.output != '\0' ? outcome.output : "it fails");
    free(outcome.output);
    return outcome.status == 0;
}

/* For root, a user that nobody has; where a container knows few, one that systems leave free. */
static bool landlock_works(void) {
    const uid_t users[] = {FIRST_UID, 65533, 0};
    for (int i = geteuid() == 0 ? 0 : 2; i < 3; i++) {
        own_uid = users[i];
        if (works(LANDLOCK)) return true;
    }
    return false;
}

enum wall wall_in_use(void) {
    static bool known;
    if (known) return wall;
    known = true;
    const char *const names[] = {"bubblewrap", "landlock", "none"}, *chosen = getenv("EXERCISES_WALL");
    int only = -1;
    for (int i = 0; i < 3 && chosen != NULL; i++)
        if (strcmp(chosen, names[i]) == 0) only = i;
    if (chosen != NULL && *chosen != '\0' && only < 0)
        errx(EXIT_USAGE, "EXERCISES_WALL is \"%s\": it must be bubblewrap, landlock or none", chosen);
    for (int i = 0; i < 2; i++) snprintf(missing[i], sizeof *missing, "not tried");
    if ((only < 0 || only == BUBBLEWRAP) && works(BUBBLEWRAP)) return wall;
    if ((only < 0 || only == LANDLOCK) && landlock_works()) return wall;
    return wall = NO_WALL;
}

bool wall_is_enough(bool needed) {
    if (wall_in_use() != NO_WALL) return true;
    fprintf(stderr, "run.sh: PROTECTION MISSING: no wall works here (bubblewrap: %s; Landlock: %s), so %s\n",
            missing[BUBBLEWRAP], missing[LANDLOCK],
            needed ? "nothing is graded for others" : "the submission runs with your rights");
    return !needed;
}
