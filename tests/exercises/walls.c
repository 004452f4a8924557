/* walls program|compiler WRITABLE|- READABLE... -- COMMAND...: run the command behind the wall that EXERCISES_WALL names, as the
 * grader runs a submission's program or its compiler. WITHOUT=PART,... takes parts of the wall away. The grader's own source
 * is a part of this program, so that the grader itself holds no such switch. */
#define WALL_FOR_TESTS
#include "wall.c"

int main(int argc, char **argv) {
    int end = 3;
    while (end < argc && strcmp(argv[end], "--") != 0) end++;
    if (end + 1 >= argc) return EXIT_USAGE;
    argv[end] = NULL;
    const struct confinement confinement = {(const char *const *)argv + 3, strcmp(argv[2], "-") != 0 ? argv[2] : NULL,
                                            strcmp(argv[1], "compiler") == 0};
    const struct limits limits = {
        .seconds = 20, .cpu_seconds = 10, .address_bytes = (size_t)8 << 30, .output_bytes = 1 << 16};
    const char *without = getenv("WITHOUT") != NULL ? strdup(getenv("WITHOUT")) : NULL;
    unsetenv("WITHOUT"); /* the whole wall must stand first */
    if (!wall_is_enough(true)) return 3;
    if (without != NULL) setenv("WITHOUT", without, 1);
    struct outcome outcome = run_behind_wall((const char *const *)argv + end + 1, limits, -1, &confinement);
    fputs(outcome.output, stdout);
    return outcome.status;
}
