/* Two blocks of one thread access a word in a forced order: block 0 pauses within its access (tests/test_interleavings.c). The
 * kernels call functions of the host, as only the simulated device allows: compile_kernels.sh leaves this folder out. */
#include <cuda_runtime.h>

extern "C" void wait_for_the_pause(void);
extern "C" void access_is_done(void);

__global__ void byte_written_word_read(int *words) {
    if (blockIdx.x == 0) {
        reinterpret_cast<char *>(words)[0] = 1; // here
    } else {
        wait_for_the_pause();
        int word = words[0]; // here
        access_is_done();
        words[1] = word;
    }
}

__global__ void word_read_word_written(int *words) {
    if (blockIdx.x == 0) {
        int word = words[0]; // here
        words[1] = word;
    } else {
        wait_for_the_pause();
        words[0] = 2; // here
        access_is_done();
    }
}

__global__ void word_read(int *words) { words[1] = words[0]; }

extern "C" void launch_word_read(int *words) { word_read<<<1, 1>>>(words); }
extern "C" void launch_byte_written_word_read(int *words) { byte_written_word_read<<<2, 1>>>(words); }
extern "C" void launch_word_read_word_written(int *words) { word_read_word_written<<<2, 1>>>(words); }
