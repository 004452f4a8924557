/* wall_attacks NAME [ARGUMENT]: try one thing that no submission may do. Exit status 0: it succeeded; 1: refused, and the reason. What
 * is tried does no harm: signals are number 0, files are canaries of the test. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *argument;
static int number;

static long try_read(void) {
    char text[64] = "";
    int file = open(argument, O_RDONLY);
    return file < 0 ? -1 : read(file, text, sizeof text) > 0 ? 0 : -1;
}
static long try_write(void) {
    int file = open(argument, O_WRONLY | O_APPEND);
    return file < 0 ? -1 : write(file, "forged\n", 7) == 7 ? 0 : -1;
}
static long try_create(void) { return open(argument, O_WRONLY | O_CREAT, 0600); }
static long try_list(void) { return opendir(argument) == NULL ? -1 : 0; }
static long try_remove(void) { return unlink(argument); }
static long try_chmod(void) { return chmod(argument, 0777); }
static long try_node(void) { return mknod(argument, S_IFCHR | 0600, 0x105); }
static long try_socket(void) { return socket(AF_INET, SOCK_STREAM, 0); }
static long try_connect(void) {
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((unsigned short)number), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&to, sizeof to);
}
static long try_fork(void) {
    pid_t child = fork();
    if (child == 0) _exit(0);
    return child < 0 ? -1 : waitpid(child, NULL, 0);
}
static long try_forks(void) { /* so many at once */
    for (int i = 0; i < number; i++) {
        pid_t child = fork();
        if (child < 0) return -1;
        if (child == 0) sleep(1), _exit(0);
    }
    return 0;
}
static long try_exec(void) { return execl(argument, argument, "root", NULL); }
static long try_again(void) { /* by the number that the wall let the program start with */
    int file = 0;
    while (file >= 0 && file < 63) file = open("/proc/self/exe", O_RDONLY);
    if (file < 0) return -1;
    return syscall(SYS_execveat, file, "", (char *[]){"attacks", "environment", "PATH", NULL}, environ, AT_EMPTY_PATH);
}
static long try_kill(void) { return kill(number, 0); }
static long try_ptrace(void) { return ptrace(PTRACE_SEIZE, number, NULL, NULL); }
static long try_limits(void) { return syscall(SYS_prlimit64, number, 7, NULL, (unsigned long[2]){0}); }
static long try_root(void) { return geteuid() == 0 ? 0 : setuid(0); }
static long try_mount(void) { return mount("none", argument, "tmpfs", 0, NULL); }
static long try_unshare(void) { return unshare(CLONE_NEWUSER); }
static long try_chroot(void) { return chroot(argument); }
static long try_keys(void) { return syscall(SYS_keyctl, 0, -3, 1); }
static long try_bpf(void) { return syscall(SYS_bpf, 0, (char[128]){4, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1}, 64); }
static long try_ring(void) { return syscall(SYS_io_uring_setup, 4, (char[256]){0}); }
static long try_userfault(void) { return syscall(SYS_userfaultfd, 1); }
static long try_memory_file(void) { return memfd_create("code", 0); }
static long try_other_calls(void) { return syscall(0x40000000 + 39); } /* x32 */
static long try_environment(void) { return getenv(argument) != NULL ? 0 : -1; }
static long try_large(void) { /* a file of 300 MB, with a hole */
    signal(SIGXFSZ, SIG_IGN);
    return pwrite(open(argument, O_WRONLY | O_CREAT, 0600), "x", 1, 300 << 20) == 1 ? 0 : -1;
}
static long try_memory(void) {
    return mmap(NULL, (size_t)number << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED
               ? -1
               : 0;
}

static const struct {
    const char *name;
    long (*attempt)(void);
} attacks[] = {{"read", try_read},
               {"write", try_write},
               {"create", try_create},
               {"list", try_list},
               {"remove", try_remove},
               {"chmod", try_chmod},
               {"node", try_node},
               {"socket", try_socket},
               {"connect", try_connect},
               {"fork", try_fork},
               {"forks", try_forks},
               {"exec", try_exec},
               {"again", try_again},
               {"kill", try_kill},
               {"ptrace", try_ptrace},
               {"limits", try_limits},
               {"root", try_root},
               {"mount", try_mount},
               {"unshare", try_unshare},
               {"chroot", try_chroot},
               {"keys", try_keys},
               {"bpf", try_bpf},
               {"ring", try_ring},
               {"userfault", try_userfault},
               {"memory_file", try_memory_file},
               {"other_calls", try_other_calls},
               {"environment", try_environment},
               {"large", try_large},
               {"memory", try_memory}};

int main(int argc, char **argv) {
    argument = argc > 2 ? argv[2] : "";
    number = atoi(argument);
    for (size_t i = 0; i < sizeof attacks / sizeof *attacks; i++) {
        if (argc < 2 || strcmp(argv[1], attacks[i].name) != 0) continue;
        long result = attacks[i].attempt();
        printf("%s: %s\n", argv[1], result >= 0 ? "SUCCEEDED" : strerror(errno));
        return result < 0;
    }
    return argc > 1 && strcmp(argv[1], "root") == 0 ? geteuid() != 0 : 2;
}
