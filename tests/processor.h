/* What processors differ in. */
#ifndef PROCESSOR_H
#define PROCESSOR_H

#ifdef __x86_64__
enum { DIVISION_TRAPS = 1, SIGNAL_TELLS_WRITES = 1, LARGE_MEMORY_BITS = 40 };
#else /* 64-bit Arm: an integer divided by zero is 0, without a signal, and Linux does not say whether an access was a write;
       * qemu-user, which may run these tests, takes time for each page of memory, touched or not */
enum { DIVISION_TRAPS = 0, SIGNAL_TELLS_WRITES = 0, LARGE_MEMORY_BITS = 34 };
#endif

#endif
