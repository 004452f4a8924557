#include "wall.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

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

enum { ALLOW = SCMP_ACT_ALLOW, REFUSE = SCMP_ACT_ERRNO(EPERM), NOT_THERE = SCMP_ACT_ERRNO(ENOSYS) };

static void decide_if(scmp_filter_ctx filter, unsigned action, int call, unsigned count, struct scmp_arg_cmp test) {
    if (seccomp_rule_add_array(filter, action, call, count, &test) != 0) abort();
}
static void decide(scmp_filter_ctx filter, unsigned action, int call) {
    decide_if(filter, action, call, 0, (struct scmp_arg_cmp){0});
}
/* Where, of an argument's bits in `mask`, those of `bits` are set and no others. */
static void decide_by(scmp_filter_ctx filter, unsigned action, int call, unsigned argument, unsigned mask, unsigned bits) {
    decide_if(filter, action, call, 1, SCMP_CMP(argument, SCMP_CMP_MASKED_EQ, mask, bits));
}

scmp_filter_ctx make_filter(bool compiles, int program) {
    static const unsigned namespaces[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
                                          CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
    scmp_filter_ctx filter = seccomp_init(compiles ? ALLOW : REFUSE);
    if (seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, REFUSE) != 0) abort(); /* calls of x32 and of 32 bits */
    if (seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0) != 0) abort();          /* enter_landlock() does it */
    decide(filter, NOT_THERE, SYS_clone3); /* its flags cannot be seen here; the C library then calls clone() */
    if (compiles) {
        for (size_t i = 0; i < sizeof namespaces / sizeof *namespaces; i++)
            decide_by(filter, REFUSE, SYS_clone, 0, namespaces[i], namespaces[i]);
        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) decide(filter, REFUSE, refused[i]);
        return filter;
    }
    decide_by(filter, ALLOW, SYS_clone, 0, CLONE_THREAD, CLONE_THREAD);
    decide_by(filter, ALLOW, SYS_prlimit64, 0, ~0u, 0);
    decide_by(filter, ALLOW, SYS_fcntl, 1, ~0u, F_GETFL);
    if (program >= 0) {
        decide_by(filter, ALLOW, SYS_execveat, 0, ~0u, (unsigned)program);
        decide_by(filter, ALLOW, SYS_tgkill, 0, ~0u, (unsigned)getpid()); /* abort() */
    } else {                                                              /* among processes of its own */
        decide(filter, ALLOW, SYS_execve);
        decide(filter, ALLOW, SYS_tgkill);
    }
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) decide(filter, ALLOW, allowed[i]);
    return filter;
}
