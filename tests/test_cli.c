/* The command line of a step's program: what it refuses, with which exit status, and the JSON that it writes. */
#include <criterion/criterion.h>

#include "../common/simt/include/simulated.h"

#include <cuda_runtime.h>

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct result {
    int status;
    char out[20000], err[20000];
};

static void slurp(const char *path, char *text, size_t room) {
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file);
    text[fread(text, 1, room - 1, file)] = '\0';
    fclose(file);
}

/* Run a step's program with arguments as a shell would read them. */
static struct result run_program(const char *step, const char *arguments) {
    static struct result result;
    char directory[] = "/tmp/test_cli_XXXXXX", command[2000], out[64], err[64];
    cr_assert_not_null(mkdtemp(directory));
    snprintf(out, sizeof out, "%s/out", directory);
    snprintf(err, sizeof err, "%s/err", directory);
    snprintf(command, sizeof command, "'%s/%s' %s >%s 2>%s", PROGRAMS, step, arguments, out, err);
    int status = system(command);
    cr_assert(WIFEXITED(status), "%s %s was killed by signal %d", step, arguments, WTERMSIG(status));
    result.status = WEXITSTATUS(status);
    slurp(out, result.out, sizeof result.out);
    slurp(err, result.err, sizeof result.err);
    unlink(out);
    unlink(err);
    rmdir(directory);
    return result;
}

static bool has_device(void) {
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

static int count_lines(const char *text) {
    int lines = 0;
    for (; *text != '\0'; text++) lines += *text == '\n';
    return lines;
}

static const char *const bad_usage[] = {
    "--batch 0", "--batch -1", "--batch two", "--batch 1.5", "--batch ''", "--batch 99999999999999999999", "--batch",
    "--heads 0", "--heads -3", "--heads x", "--heads 1e3", "--heads 2147483648", "--heads",
    "--seq 0", "--seq -5", "--seq abc", "--seq 12x", "--seq 99999999999", "--seq",
    "--heads-kv 0", "--heads-kv -1", "--heads-kv two", "--heads-kv", "--heads-kv 1", "--heads 4 --heads-kv 3", "--heads 2 --heads-kv 4",
    "--input example --heads-kv 1",
    "--window", "--window 3", "--window 3,a", "--window 1,2,3", "--window -2,0", "--window 1,", "--window 1,0",
    "--softcap 0", "--softcap -1", "--softcap 1e39", "--softcap nan", "--softcap inf", "--softcap x", "--softcap", "--softcap 5",
    "--dropout -0.1", "--dropout 1", "--dropout nan", "--dropout x", "--dropout", "--dropout 0.5",
    "--rotary", "--rotary both", "--rotary halved", "--alibi", "--alibi=yes",
    "--lengths", "--lengths 5,,3", "--lengths 5,", "--lengths -1", "--lengths 0,0", "--lengths 9999999,9999999", "--lengths 5,3",
    "--lengths 5,3 --seq 8", "--lengths 5,3 --batch 2", "--lengths 4 --input example",
    "--page-size", "--page-size 0", "--page-size x", "--page-size 64", "--page-size 64 --lengths 5,3 --batch 3",
    "--page-size 64 --lengths 70 --seq-kv 64", "--page-size 64 --batch 5000",
    "--devices 0", "--devices -1", "--devices x", "--devices", "--devices 2",
    "--seq-kv 0", "--seq-kv -1", "--seq-kv nan", "--seq-kv",
    "--dim 0", "--dim -64", "--dim 129", "--dim 1000000", "--dim d", "--dim",
    "--scale nan", "--scale inf", "--scale big", "--scale",
    "--seed -1", "--seed x", "--seed",
    "--input zeros", "--input sinks", "--input outliers,flat", "--input", "--input flat --input-kind sink", "--input example --seq 5", "--dtype int8", "--dtype bf16", "--dtype fp8", "--fp8", "--fp8 e5m2", "--fp8 e3m4", "--scales", "--scales row", "--scales head", "--pass sideways", "--pass",
    "--warmup -1", "--warmup many", "--repeat 0", "--repeat -2", "--repeat 1.0",
    "--json", "--json /no/such/folder/file.json", "--json .",
    "--stamp", "--stamp novalue", "--stamp =x",
    "--trace", "--trace /no/such/folder/file.json", "--trace /dev/null --trace-blocks 1,", "--trace-blocks 1",
    "--trace /dev/null --trace-blocks 0,0", "--trace /dev/null --trace-blocks x",
    "--no-such-option", "-x", "stray", "--causal=yes", "--seq 64 stray",
    "--batch 70000", "--batch 300 --heads 300", "--batch 2000000000 --heads 2000000000",
    "--seq 16000000 --heads 65535",
};

static void refuses_bad_usage(const char *step) {
    for (size_t i = 0; i < sizeof bad_usage / sizeof *bad_usage; i++) {
        struct result result = run_program(step, bad_usage[i]);
        cr_expect_eq(result.status, 2, "%s %s: exit status %d", step, bad_usage[i], result.status);
        cr_expect_eq(count_lines(result.err), 1, "%s %s: not one line on standard error: %s", step, bad_usage[i],
                     result.err);
        cr_expect_str_empty(result.out, "%s %s wrote to standard output", step, bad_usage[i]);
        cr_expect_eq(strncmp(result.err, step, strlen(step)), 0, "the message names the program: %s", result.err);
    }
}

Test(cli, refuses_bad_usage_01) { refuses_bad_usage("01_naive"); }
Test(cli, refuses_bad_usage_02) { refuses_bad_usage("02_tiled_matmul"); }
Test(cli, refuses_bad_usage_03) { refuses_bad_usage("03_online_softmax"); }

Test(cli, a_message_names_the_option_and_the_value) {
    struct result result = run_program("01_naive", "--seq 12x");
    cr_assert_not_null(strstr(result.err, "--seq"));
    cr_assert_not_null(strstr(result.err, "12x"));
    result = run_program("01_naive", "--dim 129");
    cr_assert_not_null(strstr(result.err, "129"));
    cr_assert_not_null(strstr(result.err, "128"));
}

Test(cli, a_forward_step_refuses_the_backward_pass) {
    struct result result = run_program("01_naive", "--pass bwd");
    cr_assert_eq(result.status, 2);
    cr_assert_not_null(strstr(result.err, "backward"));
    cr_assert_eq(run_program("01_naive", "--pass both").status, 2);
}

/* A softcap far above the scores leaves them as they are; one that rounding would decide about is refused. */
Test(cli, softcap_of_any_size_is_right_or_refused) {
    static const char *const caps[] = {"1e6", "9e8", "3e38", "0.01"};
    for (int i = 0; i < 4; i++) {
        char options[80];
        snprintf(options, sizeof options, "--softcap %s --seq 64 --pass both --no-time", caps[i]);
        cr_expect_eq(run_program("15_variants", options).status, 0, "%s", options);
    }
    struct result result = run_program("15_variants", "--softcap 1e-38 --scale 10 --seq 64 --pass both --no-time");
    cr_expect_eq(result.status, 2);
    cr_expect_not_null(strstr(result.err, "softcap 1e-38 is not supported: with scale 10 it must be at least"), "%s", result.err);
    cr_expect_eq(count_lines(result.err), 1);
    cr_expect_eq(run_program("15_variants", "--softcap 0.01 --scale -10 --seq 64 --no-time").status, 0);
    cr_expect_eq(run_program("15_variants", "--softcap 0.009 --scale -10 --seq 64 --no-time").status, 2);
}

/* The bounds that a run prints for this tensor. */
static void read_bounds(const char *out, const char *tensor, double bounds[2]) {
    char start[8];
    snprintf(start, sizeof start, "\n  %s", tensor);
    const char *line = strstr(out, start);
    cr_assert_not_null(line);
    cr_assert_eq(sscanf(line, " %*s error %*s of its norm (bound %lf), at most %*s (bound %lf)", bounds, bounds + 1), 2);
}

Test(cli, bounds_say_something) {
    double bounds[2];
    struct result result = run_program("07_naive_bwd", "--batch 1 --heads 1 --seq 8 --seq-kv 1 --dim 8 --no-time");
    cr_expect_eq(result.status, 0);
    for (int i = 0; i < 2; i++) {
        read_bounds(result.out, i == 0 ? "dQ" : "dK", bounds); /* both are 0: the bounds were 1.7 and 2.2 of a millionth of the terms */
        cr_expect_leq(bounds[0], 1e-5);
    }
    result = run_program("07_naive_bwd", "--input large --seq 64 --no-time");
    cr_expect_eq(result.status, 0);
    read_bounds(result.out, "L", bounds);
    cr_expect_leq(bounds[0], 1e-5);
    cr_expect_leq(bounds[1], 0.05);
    result = run_program("01_naive", "--input large --scale 10 --seq 64 --no-time");
    cr_expect_eq(result.status, 1, "scores of a million have no digit after the point");
    cr_expect_not_null(strstr(result.out, "UNPROVEN\n      no proof: rounding in this precision may be as large"), "%s", result.out);
}

Test(cli, help_lists_every_option) {
    static const char *const options[] = {"--batch",    "--heads",   "--heads-kv", "--seq",   "--seq-kv", "--dim",    "--causal",
                                          "--scale",    "--dtype",   "--seed",  "--input",  "--pass",   "--deterministic",
                                          "--warmup",   "--repeat",  "--json",  "--stamp",  "--print",  "--no-check",
                                          "--no-time",  "--meter",   "--meter-blocks",      "--trace",  "--trace-blocks",
                                          "--shuffle-seed", "--describe", "--help", "--window", "--softcap", "--alibi", "--alibi-released",
                                          "--dropout",  "--rotary",  "--lengths", "--page-size", "--fp8", "--scales"};
    struct result result = run_program("02_tiled_matmul", "--help");
    cr_assert_eq(result.status, 0);
    cr_assert_str_empty(result.err);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        cr_expect_not_null(strstr(result.out, options[i]), "%s", options[i]);
}

/* What a step does not do is said by its struct step, and refused before anything runs. */
Test(cli, steps_state_what_they_do) {
    static const struct {
        const char *step, *arguments, *says;
    } refused[] = {{"96_multiple_of_16", "--dim 40", "multiple of 16"},
                   {"01_naive", "--heads 6 --heads-kv 3", "grouped heads are not supported"},
                   {"01_naive", "--heads 6 --heads-kv 4", "4 heads of K and V"},
                   {"14_decode", "--heads 6 --heads-kv 4 --seq 1", "4 heads of K and V"},
                   {"14_decode", "--seq 9", "at most 8"},
                   {"01_naive", "--window 5,0", "a window is not supported by this step"},
                   {"01_naive", "--lengths 5,3", "packed sequences (lengths without pages) are not supported by this step"},
                   {"15_variants", "--lengths 5,,3", "--lengths: '5,,3' is not a list of whole numbers"},
                   {"14_decode", "--alibi --seq 1", "ALiBi is not supported by this step"},
                   {"15_variants", "--window 0,0 --seq 1 --seq-kv 4194241", "a window over more than 4194240 keys is not supported"},
                   {"14_decode", "--seq 1 --page-size 24", "it must be 16, 32, 64, 128 or 256"},
                   {"15_variants", "--page-size 64", "pages are not supported by this step"},
                   {"96_multiple_of_16", "--dim 32 --pass bwd", "backward"},
                   {"96_multiple_of_16", "--dim 32 --deterministic", "deterministic"},
                   {"97_both_passes", "--deterministic --pass both", "deterministic"},
                   {"97_both_passes", "--dtype fp16", "fp32"},
                   {"16_fp8_fwd", "--dim 40", "multiple of 16"},
                   {"16_fp8_fwd", "--dtype bf16", "bf16 is not supported: this step takes fp8"},
                   {"16_fp8_fwd", "--scales row", "--scales: 'row' is none of tensor, head, block"},
                   {"01_naive", "--devices 2", "2 devices are not supported: this step uses one"},
                   {"17_ring", "--devices 65", "65 devices are not supported: this step uses 1 to 64"},
                   {"17_ring", "--devices 2 --seq 5 --seq-kv 6", "as many keys as queries"},
                   {"01_naive", "--fp8 e5m2", "not supported without --dtype fp8"},
                   {"07_naive_bwd", "--pass fwd", "forward"}};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct result result = run_program(refused[i].step, refused[i].arguments);
        cr_expect_eq(result.status, 2, "%s %s", refused[i].step, refused[i].arguments);
        cr_expect_not_null(strstr(result.err, refused[i].says), "%s", result.err);
    }
    if (!has_device()) return;
    struct result result = run_program("97_both_passes", "--pass both --seq 20 --dim 8 --no-time --json -");
    cr_assert_eq(result.status, 0, "%s", result.err);
    cr_assert_not_null(strstr(result.out, "\"pass\":\"both\""));
    cr_assert_eq(run_program("96_multiple_of_16", "--seq 20 --dim 16 --no-time").status, 0);
    cr_assert_eq(run_program("01_naive", "--input example --no-time").status, 0);
    cr_assert_eq(run_program("01_naive", "--heads 3 --heads-kv 3 --seq 20 --no-time").status, 0);
    result = run_program("14_decode", "--heads 6 --heads-kv 2 --seq 3 --seq-kv 70 --no-time");
    cr_assert_eq(result.status, 0, "%s", result.err);
    cr_assert_not_null(strstr(result.out, "heads 6 on 2 of K and V"));
    result = run_program("16_fp8_fwd", "--heads 2 --seq 40 --fp8 e5m2 --scales block --no-time --json -");
    cr_assert_eq(result.status, 0, "%s", result.err);
    cr_assert_not_null(strstr(result.err, "d 64, e5m2, a scale per block, fp8"), "%s", result.err);
    cr_assert_not_null(strstr(result.err, "total error"), "%s", result.err);
    cr_assert_not_null(strstr(result.out, "\"dtype\":\"fp8\",\"fp8\":\"e5m2\",\"scales\":\"block\",\"total_err_rel\":0."), "%s", result.out);
    if (simt_waits != NULL) {
        result = run_program("17_ring", "--heads 1 --seq 20 --devices 3 --no-time --json -");
        cr_assert_eq(result.status, 0, "%s", result.err);
        cr_assert_not_null(strstr(result.err, "3 devices: batch 1, heads 1, 20 queries"), "%s", result.err);
        cr_assert_not_null(strstr(result.out, "\"devices\":3,"), "%s", result.out);
        setenv("SIMT_DEVICES", "2", 1);
        result = run_program("17_ring", "--seq 20 --devices 3 --no-time");
        unsetenv("SIMT_DEVICES");
        cr_assert_eq(result.status, 2, "%s", result.err);
        cr_assert_not_null(strstr(result.err, "--devices 3: this machine has 2"), "%s", result.err);
    }
    result = run_program("14_decode", "--heads 2 --seq 3 --page-size 16 --lengths 0,17,40 --no-time");
    cr_assert_eq(result.status, 0, "%s", result.err);
    cr_assert_not_null(strstr(result.out, "batch 3, heads 2, 3 queries, 40 keys, d 64, pages of 16"), "%s", result.out);
    result = run_program("15_variants", "--lengths 5,0,37 --window 4,-1 --softcap 2 --alibi --dropout 0.25 --rotary halved --pass both "
                                        "--no-time --json -");
    cr_assert_eq(result.status, 0, "%s", result.err);
    cr_assert_not_null(strstr(result.err, "42 queries, 42 keys, d 64, window 4,-1, softcap 2, ALiBi, dropout 0.25, rotary halved, 3 packed"),
                       "%s", result.err);
    cr_assert_not_null(strstr(result.out, "\"window\":[4,84],\"softcap\":2,\"alibi\":true,\"dropout\":0.25,\"rotary\":\"halved\","
                                          "\"starts\":[0,5,5,42]"), "%s", result.out);
}

Test(cli, describes_a_step) {
    static const struct {
        const char *step, *says;
    } expected[] = {
        {"01_naive", "\"passes\":[\"fwd\"],\"deterministic\":false,\"dtypes\":[\"fp32\"],\"d_multiple\":1,\"grouped_heads\":false,\"most_queries\":0,\"compute_capability\":0}\n"},
        {"09_fa2_bwd_warps", "\"passes\":[\"bwd\"],\"deterministic\":true,"},
        {"96_multiple_of_16", "\"passes\":[\"fwd\"],\"deterministic\":false,\"dtypes\":[\"fp32\"],\"d_multiple\":16,"},
        {"14_decode", "\"d_multiple\":8,\"grouped_heads\":true,\"most_queries\":8,\"compute_capability\":80,\"variants\":[\"page-size\"]}\n"},
        {"97_both_passes", "\"passes\":[\"fwd\",\"bwd\"],"}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct result result = run_program(expected[i].step, "--describe");
        cr_expect_eq(result.status, 0, "%s", result.err);
        cr_expect_not_null(strstr(result.out, expected[i].says), "%s", result.out);
        char name[60];
        snprintf(name, sizeof name, "{\"step\":\"%s\",\"idea\":\"", expected[i].step);
        cr_expect_eq(strstr(result.out, name), result.out, "%s", result.out);
        cr_expect_eq(count_lines(result.out), 1, "%s", result.out);
    }
    cr_expect_eq(run_program("01_naive", "--describe --seq x").status, 2);
}

Test(cli, json_line_holds_the_contract) {
    if (!has_device()) cr_skip_test("no CUDA device");
    static const char *const numbers[] = {"batch", "heads", "heads_kv", "seq", "seq_kv", "dim", "seed", "workspace_bytes"};
    struct result result = run_program(
        "02_tiled_matmul", "--batch 2 --heads 3 --seq 20 --seq-kv 30 --dim 8 --causal --seed 5 --repeat 2 --json - "
                           "--stamp commit=abc --stamp 'clocks=1 MHz'");
    cr_assert_eq(result.status, 0, "%s", result.err);
    cr_assert_eq(count_lines(result.out), 1, "standard output carries the JSON alone: %s", result.out);
    cJSON *line = cJSON_Parse(result.out);
    cr_assert_not_null(line);
    static const double expected[] = {2, 3, 3, 20, 30, 8, 5, 2.0 * 6 * 20 * 30 * 4};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const cJSON *item = cJSON_GetObjectItem(line, numbers[i]);
        cr_assert(cJSON_IsNumber(item), "%s", numbers[i]);
        cr_assert_eq(item->valuedouble, expected[i], "%s", numbers[i]);
    }
    cr_assert_str_eq(cJSON_GetObjectItem(line, "step")->valuestring, "02_tiled_matmul");
    cr_assert_str_eq(cJSON_GetObjectItem(line, "pass")->valuestring, "fwd");
    cr_assert_str_eq(cJSON_GetObjectItem(line, "dtype")->valuestring, "fp32");
    cr_assert_str_eq(cJSON_GetObjectItem(line, "commit")->valuestring, "abc");
    cr_assert_str_eq(cJSON_GetObjectItem(line, "clocks")->valuestring, "1 MHz");
    cr_assert(cJSON_IsTrue(cJSON_GetObjectItem(line, "causal")));
    cr_assert(cJSON_IsTrue(cJSON_GetObjectItem(line, "ok")));
    const cJSON *error = cJSON_GetObjectItem(cJSON_GetObjectItem(line, "err_rel"), "o");
    cr_assert(cJSON_IsNumber(error));
    cr_assert(error->valuedouble > 0.0 && error->valuedouble < 1e-5);
    cr_assert(cJSON_IsNumber(cJSON_GetObjectItem(cJSON_GetObjectItem(line, "err_max"), "lse")));
    const cJSON *device = cJSON_GetObjectItem(line, "device"), *ms = cJSON_GetObjectItem(line, "ms_median");
    cr_assert(cJSON_IsString(device));
    /* The simulated device's wall-clock time is never shown as if it were a GPU's. */
    if (strcmp(device->valuestring, "sim") == 0)
        cr_assert(cJSON_IsNull(ms) && cJSON_IsNull(cJSON_GetObjectItem(line, "tflops")));
    else
        cr_assert(cJSON_IsNumber(ms) && ms->valuedouble > 0.0);
    cJSON_Delete(line);
}

/* K and V are smaller, and so are the bytes of all tensors. */
Test(cli, json_line_of_grouped_heads) {
    if (!has_device()) cr_skip_test("no CUDA device");
    struct result result = run_program("14_decode", "--batch 2 --heads 6 --heads-kv 2 --seq 3 --seq-kv 70 --dim 64 --no-time --json -");
    cr_assert_eq(result.status, 0, "%s", result.err);
    cJSON *line = cJSON_Parse(result.out);
    cr_assert_not_null(line);
    cr_assert_eq(cJSON_GetObjectItem(line, "heads")->valuedouble, 6);
    cr_assert_eq(cJSON_GetObjectItem(line, "heads_kv")->valuedouble, 2);
    cr_assert_eq(cJSON_GetObjectItem(line, "tensor_bytes")->valuedouble, 2 * (2.0 * 12 * 3 * 64 + 2.0 * 4 * 70 * 64) + 4.0 * 12 * 3);
    cr_assert_eq(cJSON_GetObjectItem(line, "flops")->valuedouble, 4.0 * 12 * 3 * 70 * 64);
    cJSON_Delete(line);
}

Test(cli, json_lines_are_appended) {
    if (!has_device()) cr_skip_test("no CUDA device");
    char path[] = "/tmp/test_cli_json_XXXXXX", arguments[200];
    int descriptor = mkstemp(path);
    cr_assert_geq(descriptor, 0);
    close(descriptor);
    snprintf(arguments, sizeof arguments, "--seq 9 --dim 4 --no-time --json %s", path);
    cr_assert_eq(run_program("01_naive", arguments).status, 0);
    cr_assert_eq(run_program("03_online_softmax", arguments).status, 0);
    char text[20000];
    slurp(path, text, sizeof text);
    unlink(path);
    cr_assert_eq(count_lines(text), 2);
    cr_assert_not_null(strstr(text, "01_naive"));
    cr_assert_not_null(strstr(text, "03_online_softmax"));
}

/* The fingerprint of an output, as --json gives it. */
static void read_bits(const char *program, const char *arguments, const char *output, char bits[17]) {
    char all[200];
    snprintf(all, sizeof all, "--seq 70 --dim 40 --no-time --no-check --json - %s", arguments);
    struct result result = run_program(program, all);
    cr_assert_eq(result.status, 0);
    cJSON *line = cJSON_Parse(result.out);
    const cJSON *text = cJSON_GetObjectItem(cJSON_GetObjectItem(line, "bits"), output);
    cr_assert(cJSON_IsString(text) && strlen(text->valuestring) == 16);
    strcpy(bits, text->valuestring);
    cJSON_Delete(line);
}

/* Only atomic additions depend on the order of the blocks, and so only what is added up by them. */
Test(cli, bits_tell_whether_two_runs_agree) {
    if (!has_device()) cr_skip_test("no CUDA device");
    char first[17], second[17];
    read_bits("07_naive_bwd", "", "dk", first);
    read_bits("07_naive_bwd", "", "dk", second);
    cr_expect_str_eq(first, second);
    read_bits("07_naive_bwd", "--seed 3", "dk", second);
    cr_expect_str_neq(first, second);
    if (simt_shuffle_blocks == NULL) return; /* a card's order is not to be had by asking */
    read_bits("08_fused_bwd", "--shuffle-seed 1", "dk", first);
    read_bits("08_fused_bwd", "--shuffle-seed 2", "dk", second);
    cr_expect_str_neq(first, second);
    read_bits("09_fa2_bwd_warps", "--seq-kv 400 --shuffle-seed 1", "dq", first);
    read_bits("09_fa2_bwd_warps", "--seq-kv 400 --shuffle-seed 2", "dq", second);
    cr_expect_str_neq(first, second);
    read_bits("09_fa2_bwd_warps", "--seq-kv 400 --deterministic --shuffle-seed 1", "dq", first);
    read_bits("09_fa2_bwd_warps", "--seq-kv 400 --deterministic --shuffle-seed 2", "dq", second);
    cr_expect_str_eq(first, second);
}

Test(cli, no_check_says_that_nothing_was_checked) {
    if (!has_device()) cr_skip_test("no CUDA device");
    struct result result = run_program("01_naive", "--seq 9 --dim 4 --no-time --no-check --json -");
    cr_assert_eq(result.status, 0);
    cJSON *line = cJSON_Parse(result.out);
    cr_assert(cJSON_IsNull(cJSON_GetObjectItem(line, "ok")));
    cJSON_Delete(line);
}

Test(cli, print_shows_a_corner_of_each_matrix) {
    if (!has_device()) cr_skip_test("no CUDA device");
    struct result result = run_program("03_online_softmax", "--seq 5 --dim 4 --input identity --print --no-time");
    cr_assert_eq(result.status, 0);
    static const char *const matrices[] = {"Q, ", "K, ", "V, ", "O, ", "L, "};
    for (size_t i = 0; i < 5; i++) cr_assert_not_null(strstr(result.out, matrices[i]), "%s", matrices[i]);
    cr_assert_not_null(strstr(result.out, "1.000000    0.000000    0.000000"), "%s", result.out);
}

/* The size named in an issue of its own: every step, a ragged causal problem. */
Test(cli, ragged_causal_problem_is_right_in_every_step) {
    if (!has_device()) cr_skip_test("no CUDA device");
    static const char *const steps[] = {"01_naive", "02_tiled_matmul", "03_online_softmax"};
    for (size_t i = 0; i < 3; i++) {
        struct result result =
            run_program(steps[i], "--batch 2 --heads 3 --seq 113 --seq-kv 203 --dim 59 --causal --no-time --json -");
        cr_assert_eq(result.status, 0);
        cJSON *line = cJSON_Parse(result.out);
        cr_assert_lt(cJSON_GetObjectItem(cJSON_GetObjectItem(line, "err_rel"), "o")->valuedouble, 1e-5);
        cJSON_Delete(line);
    }
}
