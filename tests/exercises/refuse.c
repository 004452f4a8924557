/* refuse WHAT,... COMMAND...: run a command where the kernel refuses landlock, seccomp or namespaces, as older kernels and the
 * filters of containers do. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct sock_filter code[64];
static unsigned short length;

static void emit(unsigned short what, unsigned value, unsigned char then, unsigned char otherwise) {
    code[length++] = (struct sock_filter){what, then, otherwise, value};
}
static void load(size_t offset) { emit(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset, 0, 0); }
static void refuse(int call, int error) {
    emit(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1);
    emit(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error, 0, 0);
}
/* Where the first argument is `value`, or has that bit. */
static void refuse_where(int call, unsigned short test, unsigned value, int error) {
    emit(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 4);
    load(offsetof(struct seccomp_data, args));
    emit(BPF_JMP | test | BPF_K, value, 0, 1);
    emit(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error, 0, 0);
    emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    load(offsetof(struct seccomp_data, nr));
    if (strstr(argv[1], "landlock") != NULL) refuse(SYS_landlock_create_ruleset, ENOSYS);
    if (strstr(argv[1], "seccomp") != NULL) {
        refuse(SYS_seccomp, EPERM);
        refuse_where(SYS_prctl, BPF_JEQ, PR_SET_SECCOMP, EINVAL);
    }
    if (strstr(argv[1], "namespaces") != NULL) {
        refuse(SYS_clone3, ENOSYS);
        refuse_where(SYS_clone, BPF_JSET, CLONE_NEWUSER, EPERM);
        refuse_where(SYS_unshare, BPF_JSET, CLONE_NEWUSER, EPERM);
    }
    emit(BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
    struct sock_fprog filter = {length, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        perror("refuse");
        return 3;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
