#include "wall.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { ARCHITECTURE = AUDIT_ARCH_X86_64, OTHER_CALLS = 0x40000000 }; /* from there on: those of x32 */
#elif defined(__aarch64__)
enum { ARCHITECTURE = AUDIT_ARCH_AARCH64, OTHER_CALLS = 0x40000000 };
#else
#error "the wall knows x86-64 and 64-bit Arm"
#endif

/* What the C library, the simulated device and the reader of debug information call. */
/* clang-format off */
static const int allowed[] = {
#ifdef __x86_64__
    SYS_open, SYS_access, SYS_readlink, SYS_stat, SYS_lstat, SYS_arch_prctl, SYS_time, SYS_poll,
#endif
    SYS_read, SYS_readv, SYS_pread64, SYS_write, SYS_writev, SYS_close, SYS_fstat, SYS_newfstatat, SYS_statx, SYS_lseek,
    SYS_openat, SYS_faccessat, SYS_readlinkat, SYS_getdents64, SYS_getcwd, SYS_ppoll, SYS_mmap, SYS_mremap, SYS_munmap,
    SYS_mprotect, SYS_madvise, SYS_brk, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_futex,
    SYS_restart_syscall, SYS_set_tid_address, SYS_set_robust_list, SYS_rseq, SYS_sched_yield, SYS_sched_getaffinity,
    SYS_exit, SYS_exit_group, SYS_wait4, SYS_getpid, SYS_gettid, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_uname,
    SYS_sysinfo, SYS_getrandom, SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday};

/* No compiler needs them: networks, other processes, the machine, and the kernel's larger doors. */
static const int refused[] = {
    SYS_socket, SYS_socketpair, SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo, SYS_setsid,
    SYS_setpgid, SYS_pidfd_open, SYS_pidfd_send_signal, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev,
    SYS_perf_event_open, SYS_mount, SYS_umount2, SYS_fsopen, SYS_open_tree, SYS_move_mount, SYS_pivot_root, SYS_chroot,
    SYS_unshare, SYS_setns, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_bpf, SYS_userfaultfd, SYS_io_uring_setup,
    SYS_open_by_handle_at, SYS_memfd_create, SYS_shmget, SYS_msgget, SYS_semget, SYS_mq_open, SYS_personality};
/* clang-format on */

static struct sock_filter code[2 * (sizeof allowed + sizeof refused) / sizeof *allowed + 40];
static unsigned short length;

static void emit(unsigned short what, unsigned value, unsigned char then, unsigned char otherwise) {
    code[length++] = (struct sock_filter){what, then, otherwise, value};
}
static void load(size_t offset) { emit(BPF_LD | BPF_W | BPF_ABS, (unsigned)offset, 0, 0); }
static void answer(unsigned with) { emit(BPF_RET | BPF_K, with, 0, 0); }

enum { ALLOW = SECCOMP_RET_ALLOW, REFUSE = SECCOMP_RET_ERRNO | EPERM, NOT_THERE = SECCOMP_RET_ERRNO | ENOSYS };

static void decide(int call, unsigned with) {
    emit(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1);
    answer(with);
}

/* By the lower half of an argument: one answer where the test is true, else another. Other calls are not concerned. */
static void decide_by(int call, int argument, unsigned short test, unsigned value, unsigned if_true, unsigned if_false) {
    emit(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 4);
    load(offsetof(struct seccomp_data, args) + 8 * (size_t)argument);
    emit(BPF_JMP | test | BPF_K, value, 0, 1);
    answer(if_true);
    answer(if_false);
}

struct sock_fprog make_filter(bool compiles, int program) {
    const unsigned namespaces =
        CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
    length = 0;
    load(offsetof(struct seccomp_data, arch));
    emit(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
    answer(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(struct seccomp_data, nr));
    emit(BPF_JMP | BPF_JGE | BPF_K, OTHER_CALLS, 0, 1);
    answer(REFUSE);
    decide(SYS_clone3, NOT_THERE); /* its flags cannot be seen here; the C library then calls clone() */
    if (compiles) {
        decide_by(SYS_clone, 0, BPF_JSET, namespaces, REFUSE, ALLOW);
        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) decide(refused[i], REFUSE);
        answer(ALLOW);
    } else {
        decide_by(SYS_clone, 0, BPF_JSET, CLONE_THREAD, ALLOW, REFUSE);
        decide_by(SYS_prlimit64, 0, BPF_JEQ, 0, ALLOW, REFUSE);
        decide_by(SYS_fcntl, 1, BPF_JEQ, F_GETFL, ALLOW, REFUSE);
        if (program >= 0) {
            decide_by(SYS_execveat, 0, BPF_JEQ, (unsigned)program, ALLOW, REFUSE);
            decide_by(SYS_tgkill, 0, BPF_JEQ, (unsigned)getpid(), ALLOW, REFUSE); /* abort() */
        } else {                                                                  /* among processes of its own */
            decide(SYS_execve, ALLOW);
            decide(SYS_tgkill, ALLOW);
        }
        for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) decide(allowed[i], ALLOW);
        answer(REFUSE);
    }
    return (struct sock_fprog){length, code};
}
