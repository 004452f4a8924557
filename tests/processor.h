/* What the signals of a processor tell. */
#ifndef PROCESSOR_H
#define PROCESSOR_H

#ifdef __x86_64__
enum { DIVISION_TRAPS = 1, SIGNAL_TELLS_WRITES = 1 };
#else /* 64-bit Arm: an integer divided by zero is 0, without a signal, and Linux does not say whether an access was a write */
enum { DIVISION_TRAPS = 0, SIGNAL_TELLS_WRITES = 0 };
#endif

#endif
