/* The PTX instructions of the simulated device: each line has opcodes, their modifiers in PTX's order, and their operands.
 * simt_ptx.h has a function of each opcode's name. `simt_rewrite --instructions` prints the list of docs/simulated-device.md.
 *
 * A word of the modifiers is a list of alternatives. ?: PTX allows to leave the word out. -: the modifier changes nothing here, and is
 * no template argument of the function; the others are: a type as a type, any other modifier as m_NAME. m64n#k16: # stands for the
 * multiples of 8 up to 256.
 *
 * Operands: d result, D results in braces; a source, b source with or without braces, v sources in braces; m address in brackets,
 * t2 tensor map and two coordinates; p predicate, Q two results x|y, the second optional; A array in braces, passed as a pointer;
 * s the word _; h the policy of .L2::cache_hint, which the function does not get; c the carry, which the assembly does not write.
 * >: the register may be wider than the type. :TYPE is an operand's own type; without it, the operand has the first type among the
 * modifiers. :2 is the second type, :w one twice as wide, :e an equal part of the first. ?: the operand is optional. @ before the
 * operands: the function gets the source line. */
#include "ptx.h"

#define INTEGERS "u16|s16|u32|s32|u64|s64"
#define WORDS "b16|b32|b64"
#define ROUND "rn|rz|rm|rp"
#define TO_INTEGER "rni|rzi|rmi|rpi"
#define LESS "eq|ne|lt|le|gt|ge"
#define COMPARE LESS "|equ|neu|ltu|leu|gtu|geu|num|nan"
#define BOOLEAN "and|or|xor"
#define HALVES "f16|f16x2|bf16|bf16x2"
#define OF_MEMORY "b8|u8|s8|" WORDS "|" INTEGERS "|f32|f64"
#define SCOPE "cta|cluster|-gpu|-sys"
#define SHARED "shared|shared::cta"
#define SPACE "-global|-local|" SHARED "|shared::cluster"
#define READ_SPACE "-const|-param|" SPACE
#define EVICT(level)                                                                                                           \
    " ?-" level "::evict_normal|-" level "::evict_first|-" level "::evict_last|-L1::no_allocate|-L1::evict_unchanged"
#define HINT " ?-L2::cache_hint"
#define CACHES EVICT("L1") HINT " ?-L2::64B|-L2::128B|-L2::256B"
#define WIDTH " ?v2|v4 "
#define TX "-mbarrier::complete_tx::bytes"
#define BULK_LOAD "shared::cluster|-shared::cta -global"
#define FULL "-sync ?-aligned "

const struct form ptx_forms[] = {
    /* clang-format off */
    {"# integer arithmetic"},
    {"add sub", INTEGERS, "d a a"}, {"add sub", "sat s32", "d a a"}, {"add", "u16x2|s16x2", "d a a"},
    {"add sub", "cc u32|s32|u64|s64", "d a a c"}, {"addc subc", "?cc u32|s32|u64|s64", "d a a c"}, {"mul", "hi|lo " INTEGERS, "d a a"},
    {"mul", "wide u16|s16|u32|s32", "d:w a a"}, {"mad", "hi|lo " INTEGERS, "d a a a"}, {"mad", "hi sat s32", "d a a a"},
    {"mad", "wide u16|s16|u32|s32", "d:w a a a:w"}, {"mad", "hi|lo cc u32|s32|u64|s64", "d a a a c"},
    {"madc", "hi|lo ?cc u32|s32|u64|s64", "d a a a c"}, {"mul24", "hi|lo u32|s32", "d a a"}, {"mad24", "hi|lo u32|s32", "d a a a"},
    {"sad", INTEGERS, "d a a a"}, {"div rem", INTEGERS, "d a a"}, {"abs neg", "s16|s32|s64", "d a"},
    {"min max", INTEGERS "|u16x2|s16x2", "d a a"}, {"min max", "relu s32|s16x2", "d a a"}, {"popc clz", "b32|b64", "d:u32 a"},
    {"brev", "b32|b64", "d a"}, {"bfind", "?shiftamt u32|s32|u64|s64", "d:u32 a"}, {"bfe", "u32|s32|u64|s64", "d a a:u32 a:u32"},
    {"bfi", "b32|b64", "d a a a:u32 a:u32"}, {"szext", "clamp|wrap u32|s32", "d a a:u32"}, {"bmsk", "clamp|wrap b32", "d a a"},
    {"fns", "b32", "d a a a:s32"}, {"dp4a", "u32|s32 u32|s32", "d:b32 a:1 a:2 a:b32"},
    {"dp2a", "lo|hi u32|s32 u32|s32", "d:b32 a:1 a:2 a:b32"},
    {"# bits"},
    {"and or xor", "pred|" WORDS, "d a a"}, {"not", "pred|" WORDS, "d a"}, {"cnot", WORDS, "d a"}, {"shl", WORDS, "d a a:u32"},
    {"shr", WORDS "|" INTEGERS, "d a a:u32"}, {"shf", "l|r clamp|wrap b32", "d a a a"}, {"lop3", "b32", "d a a a a"},
    {"prmt", "b32 ?f4e|b4e|rc8|ecl|ecr|rc16", "d a a a"},
    {"# floating-point arithmetic"},
    {"add sub mul", "?" ROUND " ?ftz ?sat f32", "d a a"}, {"add sub mul", "?" ROUND " f64", "d a a"},
    {"add sub mul", "?-rn ?ftz ?sat f16|f16x2", "d a a"}, {"add sub mul", "?-rn bf16|bf16x2", "d a a"},
    {"fma mad", ROUND " ?ftz ?sat f32", "d a a a"}, {"fma mad", ROUND " f64", "d a a a"}, {"fma", "-rn ?ftz ?sat f16|f16x2", "d a a a"},
    {"fma", "-rn ?ftz relu f16|f16x2", "d a a a"}, {"fma", "-rn ?relu bf16|bf16x2", "d a a a"},
    {"div", ROUND "|-approx|-full ?ftz f32", "d a a"}, {"div", ROUND " f64", "d a a"}, {"rcp sqrt", "approx|" ROUND " ?ftz f32", "d a"},
    {"rcp sqrt", ROUND " f64", "d a"}, {"rcp", "approx ftz f64", "d a"}, {"rsqrt", "approx ?ftz f32", "d a"},
    {"rsqrt", "approx ?ftz f64", "d a"}, {"sin cos lg2", "-approx ?ftz f32", "d a"}, {"ex2", "-approx ?ftz f32", "d a"},
    {"ex2", "-approx f16|f16x2", "d a"}, {"ex2", "-approx -ftz bf16|bf16x2", "d a"}, {"tanh", "-approx f32|" HALVES, "d a"},
    {"abs neg", "?ftz f32|f16|f16x2", "d a"}, {"abs neg", "f64|bf16|bf16x2", "d a"},
    {"min max", "?ftz ?NaN ?xorsign ?-abs f32|f16|f16x2", "d a a"}, {"min max", "f64", "d a a"}, {"min max", "?NaN bf16|bf16x2", "d a a"},
    {"copysign", "f32|f64", "d a a"}, {"testp", "finite|infinite|number|notanumber|normal|subnormal f32|f64", "d:pred a"},
    {"# comparisons and selections"},
    {"setp", "eq|ne b16|b32|b64", "Q a a"}, {"setp", LESS " " INTEGERS, "Q a a"}, {"setp", "lo|ls|hi|hs u16|u32|u64", "Q a a"},
    {"setp", COMPARE " ?ftz f32|f16", "Q a a"}, {"setp", COMPARE " f64|bf16", "Q a a"}, {"setp", COMPARE " ?ftz f16x2", "Q a a"},
    {"setp", COMPARE " bf16x2", "Q a a"}, {"setp", "eq|ne " BOOLEAN " b16|b32|b64", "Q a a p"},
    {"setp", LESS " " BOOLEAN " " INTEGERS, "Q a a p"}, {"setp", "lo|ls|hi|hs " BOOLEAN " u16|u32|u64", "Q a a p"},
    {"setp", COMPARE " " BOOLEAN " ?ftz f32|f16", "Q a a p"}, {"setp", COMPARE " " BOOLEAN " f64|bf16", "Q a a p"},
    {"set", "eq|ne u32|s32|f32 b16|b32|b64", "d a:2 a:2"}, {"set", LESS " u32|s32|f32 " INTEGERS, "d a:2 a:2"},
    {"set", COMPARE " ?ftz u32|s32|f32 f32", "d a:2 a:2"}, {"set", COMPARE " u32|s32|f32 f64", "d a:2 a:2"},
    {"set", COMPARE " ?ftz f16x2 f16x2", "d a:2 a:2"}, {"set", COMPARE " bf16x2 bf16x2", "d a:2 a:2"},
    {"selp", WORDS "|" INTEGERS "|f32|f64", "d a a p"}, {"slct", "?ftz " WORDS "|" INTEGERS "|f32|f64 s32|f32", "d a a a:2"},
    {"# moves and conversions"},
    {"mov", "pred|" WORDS "|" INTEGERS "|f32|f64", "d a"}, {"mov", "b32|b64", "d v:e", "mov_pack"}, {"mov", "b32|b64", "D:e a"},
    {"cvt", "?sat u8|s8|" INTEGERS " u8|s8|" INTEGERS, "d>:1 a>:2"},
    {"cvt", TO_INTEGER " ?ftz ?sat u8|s8|" INTEGERS " f32|f16", "d>:1 a:2"}, {"cvt", TO_INTEGER " ?sat u8|s8|" INTEGERS " f64", "d>:1 a:2"},
    {"cvt", TO_INTEGER " u8|s8|" INTEGERS " bf16", "d>:1 a:2"}, {"cvt", ROUND " ?sat f32|f64|f16 u8|s8|" INTEGERS, "d a>:2"},
    {"cvt", ROUND " bf16 u8|s8|" INTEGERS, "d a>:2"}, {"cvt", ROUND " ?ftz ?sat f32 f64", "d a:2"},
    {"cvt", "?ftz ?sat f64|f32 f32|f16", "d a:2"}, {"cvt", "?sat f64 f64|f16", "d a:2"}, {"cvt", "f32|f64|f16 bf16", "d a:2"},
    {"cvt", TO_INTEGER " ?ftz ?sat f32 f32", "d a:2"}, {"cvt", TO_INTEGER " ?sat f64|f16 f64|f16", "d a:2"},
    {"cvt", ROUND " ?ftz ?sat f16 f32", "d a:2"}, {"cvt", ROUND " ?sat f16 f64", "d a:2"}, {"cvt", "f16 f16", "d a:2"},
    {"cvt", "rn|rz|rm|rp ?sat bf16 f64|f16", "d a:2"}, {"cvt", "rn|rz ?relu bf16 f32", "d a:2"}, {"cvt", "rn|rz relu f16 f32", "d a:2"},
    {"cvt", "rn|rz ?relu f16x2|bf16x2 f32", "d a:2 a:2"}, {"cvt", "-rn -satfinite ?relu e4m3x2|e5m2x2 f32", "d a:2 a:2"},
    {"cvt", "-rn -satfinite ?relu e4m3x2|e5m2x2 f16x2", "d a:2", "cvt_fp8"}, {"cvt", "-rn ?relu f16x2 e4m3x2|e5m2x2", "d a:2", "cvt_fp8"}, {"cvt", "rna tf32 f32", "d a:2"}, {"cvt", "rn|rz ?relu tf32 f32", "d a:2"},
    {"# memory"},
    {"ld", "?-weak ?" READ_SPACE " ?-ca|-cg|-cs|-lu|cv" CACHES WIDTH OF_MEMORY, "D> m h"},
    {"ld", "?-weak -global ?-ca|-cg|-cs nc" CACHES WIDTH OF_MEMORY, "D> m h"}, {"ldu", "?-global" WIDTH OF_MEMORY, "D> m"},
    {"ld", "volatile ?" READ_SPACE " ?-L2::64B|-L2::128B|-L2::256B" WIDTH OF_MEMORY, "D> m"},
    {"ld", "relaxed|acquire " SCOPE " ?" SPACE CACHES WIDTH OF_MEMORY, "@D> m h"},
    {"st", "?-weak ?" SPACE " ?-wb|-cg|-cs|-wt" EVICT("L1") HINT WIDTH OF_MEMORY, "m b> h"},
    {"st", "volatile ?" SPACE WIDTH OF_MEMORY, "m b>"},
    {"st", "relaxed|release " SCOPE " ?" SPACE EVICT("L1") HINT WIDTH OF_MEMORY, "m b> h"}, {"prefetch", "?-global|-local -L1|-L2", "m"},
    {"prefetch", "-global -L2::evict_last|-L2::evict_normal", "m"}, {"prefetchu", "-L1", "m"},
    {"prefetch", "?-const|-param -tensormap", "m"},
    {"cvta", "?to -global|-local|-const|-param|shared|shared::cta|shared::cluster u32|u64", "d a"},
    {"isspacep", "global|local|const|shared|shared::cta|shared::cluster", "d:pred a:b64"},
    {"createpolicy.fractional",
        "-L2::evict_last|-L2::evict_first|-L2::evict_normal|-L2::evict_unchanged ?-L2::evict_first|-L2::evict_unchanged -b64", "d:b64 a:f32?"},
    {"# atomic operations"},
#define ATOMIC(opcode, modifiers, operands) {opcode, "?relaxed|acquire|release|acq_rel ?" SCOPE " ?-global|" SHARED "|shared::cluster \
    " modifiers, operands}
    ATOMIC("atom", "and|or|xor" HINT " b32|b64", "d m a h"), ATOMIC("atom", "exch" HINT " b32|b64", "d m a h"),
    ATOMIC("atom", "cas" HINT " " WORDS, "d m a a h"), ATOMIC("atom", "add" HINT " u32|s32|u64|f32|f64", "d m a h"),
    ATOMIC("atom", "inc|dec" HINT " u32", "d m a h"), ATOMIC("atom", "min|max" HINT " u32|s32|u64|s64", "d m a h"),
    ATOMIC("atom", "add -noftz" HINT " " HALVES, "d m a h"), ATOMIC("atom", "add" HINT " v2|v4 f32", "D m v h"),
#define REDUCE(modifiers, operands) {"red", "?relaxed|release ?" SCOPE " ?-global|" SHARED "|shared::cluster " modifiers, operands}
    REDUCE("and|or|xor" HINT " b32|b64", "m a h"), REDUCE("add" HINT " u32|s32|u64|f32|f64", "m a h"),
    REDUCE("inc|dec" HINT " u32", "m a h"), REDUCE("min|max" HINT " u32|s32|u64|s64", "m a h"),
    REDUCE("add -noftz" HINT " " HALVES, "m a h"), REDUCE("add" HINT " v2|v4 f32", "m v h"),
    {"# fences"},
    {"membar", "cta|-gl|-sys", ""}, {"fence", "?-sc|-acq_rel|-acquire|-release " SCOPE, ""}, {"fence.proxy", "-alias", "", "fence"},
    {"fence.proxy.async", "?-global|-shared::cta|-shared::cluster", ""}, {"fence.mbarrier_init", "-release -cluster", ""},
    {"fence.proxy.tensormap::generic", "-release " SCOPE, "", "fence"}, {"fence.proxy.tensormap::generic", "acquire " SCOPE, "m a:u32"},
    {"# warps"},
    {"shfl.sync", "up|down|bfly|idx b32", "@Q a a:u32 a:u32 a:u32"}, {"vote.sync", "all|any|uni pred", "@d p a:u32"},
    {"vote.sync", "ballot b32", "@d p a:u32"}, {"activemask", "b32", "@d"}, {"match.any.sync", "b32|b64", "@d:u32 a a:u32"},
    {"match.all.sync", "b32|b64", "@Q:u32 a a:u32"}, {"redux.sync", "add|min|max u32|s32", "@d a a:u32"},
    {"redux.sync", "and|or|xor b32", "@d a a:u32"}, {"elect.sync", "", "@Q:u32 a:u32"},
    {"# barriers and control"},
    {"bar.sync bar.cta.sync barrier.cta.sync barrier.sync", "?-aligned", "@a:u32 a:u32?", "bar_sync"},
    {"bar.arrive bar.cta.arrive barrier.cta.arrive barrier.arrive", "?-aligned", "@a:u32 a:u32", "bar_arrive"},
    {"bar.red bar.cta.red barrier.cta.red barrier.red", "popc ?-aligned u32", "@d a:u32 p", "bar_red"},
    {"bar.red bar.cta.red barrier.cta.red barrier.red", "and|or ?-aligned pred", "@d a:u32 p", "bar_red"}, {"bar.warp.sync", "", "@a:u32"},
    {"nanosleep", "-u32", "a:u32"}, {"trap brkpt", "", ""}, {"griddepcontrol", "-launch_dependents|-wait", ""},
    {"setmaxnreg", "inc|dec -sync -aligned -u32", "a:u32"}, {"bra", "?-uni", "label"},
    {"# clusters"},
    {"barrier.cluster.arrive", "?-release|-relaxed ?-aligned", "@"}, {"barrier.cluster.wait", "?-acquire ?-aligned", "@"},
    {"mapa", "?shared::cluster u32|u64", "d a a:u32"},
    {"# asynchronous copies"},
    {"cp.async", "-ca|-cg -shared|-shared::cta -global" HINT " ?-L2::64B|-L2::128B|-L2::256B", "m m a:u32 a:u32? h"},
    {"cp.async.commit_group cp.async.bulk.commit_group", "", ""}, {"cp.async.wait_group", "", "@a:u32"}, {"cp.async.wait_all", "", "@"},
    {"cp.async.mbarrier.arrive", "?noinc ?" SHARED " -b64", "@m"}, {"cp.async.bulk", BULK_LOAD " " TX HINT, "m m a:u32 m h", "bulk_load"},
    {"cp.async.bulk", "-global -shared::cta -bulk_group" HINT, "m m a:u32 h", "bulk_store"},
    {"cp.reduce.async.bulk", "-global -shared::cta -bulk_group" HINT " add f32", "m m a:u32 h", "bulk_store"},
    {"cp.async.bulk.wait_group", "?read", "a:u32"}, {"cp.async.bulk.prefetch", "-L2 -global" HINT, "m a:u32 h", "prefetch"},
#define TENSOR(rank) {"cp.async.bulk.tensor." rank, BULK_LOAD " ?-tile " TX HINT, "m t" rank " m h", "tensor_load"}, \
    {"cp.async.bulk.tensor." rank, BULK_LOAD " ?-tile " TX " -multicast::cluster" HINT, "m t" rank " m a:u16 h", "tensor_multicast"}, \
    {"cp.async.bulk.tensor." rank, "-global -shared::cta ?-tile -bulk_group" HINT, "t" rank " m h", "tensor_store"}, \
    {"cp.async.bulk.prefetch.tensor." rank, "-L2 -global ?-tile" HINT, "t" rank " h", "prefetch"}
    TENSOR("1d"), TENSOR("2d"), TENSOR("3d"), TENSOR("4d"), TENSOR("5d"),
    {"# mbarriers"},
#define MBARRIER(opcode, modifiers, operands) {"mbarrier." opcode, modifiers " ?" SHARED " -b64", operands}
    MBARRIER("init", "", "m a:u32"), MBARRIER("inval", "", "m"), MBARRIER("arrive", "?-release|-relaxed ?-cta|-cluster", "@d:b64 m a:u32?"),
    MBARRIER("arrive.noComplete", "?-release ?-cta", "@d:b64 m a:u32"),
    MBARRIER("arrive.expect_tx", "?-release|-relaxed ?-cta|-cluster", "@d:b64 m a:u32"),
    {"mbarrier.arrive", "?-release|-relaxed ?-cta|-cluster shared::cluster -b64", "@s m a:u32?"},
    {"mbarrier.arrive.expect_tx", "?-release|-relaxed ?-cta|-cluster shared::cluster -b64", "@s m a:u32"},
    {"mbarrier.expect_tx", "?-relaxed ?-cta|-cluster ?" SHARED " -b64", "@m a:u32"},
    MBARRIER("test_wait", "parity ?-acquire|-relaxed ?-cta|-cluster", "@d:pred m a:u32"),
    MBARRIER("test_wait", "?-acquire|-relaxed ?-cta|-cluster", "@d:pred m a:b64"),
    MBARRIER("try_wait", "parity ?-acquire|-relaxed ?-cta|-cluster", "@d:pred m a:u32 a:u32?"),
    MBARRIER("try_wait", "?-acquire|-relaxed ?-cta|-cluster", "@d:pred m a:b64 a:u32?"),
    {"#+ tensor cores"},
    {"ldmatrix", "-sync -aligned -m8n8 x1|x2|x4 ?trans ?-shared|-shared::cta -b16", "@D:b32 m"},
    {"ldmatrix", "-sync -aligned x1|x2|x4 ?trans -m8n8 ?-shared|-shared::cta -b16", "@D:b32 m"},
    {"stmatrix", "-sync -aligned -m8n8 x1|x2|x4 ?trans ?-shared|-shared::cta -b16", "@m b:b32"},
    {"stmatrix", "-sync -aligned x1|x2|x4 ?trans -m8n8 ?-shared|-shared::cta -b16", "@m b:b32"},
    {"movmatrix", "-sync -aligned -m8n8 -trans -b16", "@d:b32 a:b32"},
#define MMA(shapes, d, a, b, c, result) {"mma", "-sync -aligned " shapes " -row -col " d " " a " -" b " -" c, "@D:" result \
    " v:b32 b:b32 v:" result, "mma_" d}
    MMA("m16n8k8|m16n8k16", "f32", "f16", "f16", "f32", "f32"), MMA("m16n8k8|m16n8k16", "f32", "bf16", "bf16", "f32", "f32"),
    MMA("m16n8k4|m16n8k8", "f32", "tf32", "tf32", "f32", "f32"), MMA("m16n8k8|m16n8k16", "f16", "f16", "f16", "f16", "b32"),
    {"mma", "-sync -aligned m8n8k16|m16n8k16|m16n8k32 -row -col ?satfinite s32 s8|u8 s8|u8 -s32", "@D:s32 b:b32 b:b32 v:s32", "mma_s32"},
    {"wgmma.mma_async", FULL "m64n#k16 -f32 f16 -f16", "@A a:b64 a:b64 p a:s32 a:s32 a:s32 a:s32"},
    {"wgmma.mma_async", FULL "m64n#k16 -f32 f16 -f16", "@A A a:b64 p a:s32 a:s32 a:s32"},
    {"wgmma.mma_async", FULL "m64n#k16 -f32 bf16 -bf16", "@A a:b64 a:b64 p a:s32 a:s32 a:s32 a:s32"},
    {"wgmma.mma_async", FULL "m64n#k16 -f32 bf16 -bf16", "@A A a:b64 p a:s32 a:s32 a:s32"},
    {"wgmma.mma_async", FULL "m64n#k32 -f32 e4m3|e5m2 e4m3|e5m2", "@A a:b64 a:b64 p a:s32 a:s32"},
    {"wgmma.mma_async", FULL "m64n#k32 -f32 e4m3|e5m2 e4m3|e5m2", "@A A a:b64 p a:s32 a:s32"}, {"wgmma.fence", "-sync -aligned", ""},
    {"wgmma.commit_group", "-sync -aligned", "@"}, {"wgmma.wait_group", "-sync -aligned", "@a:u32"}, {NULL},
    /* clang-format on */
};

/* ---- types, special registers, the list ------------------------------------------------------------------------------------------ */

const struct ptx_type ptx_types[] = {
    {"pred", 1, 'p'},    {"b8", 8, 'b'},      {"u8", 8, 'u'},     {"s8", 8, 's'},     {"b16", 16, 'b'}, {"u16", 16, 'u'},
    {"s16", 16, 's'},    {"b32", 32, 'b'},    {"u32", 32, 'u'},   {"s32", 32, 's'},   {"b64", 64, 'b'}, {"u64", 64, 'u'},
    {"s64", 64, 's'},    {"f16", 16, 'f'},    {"bf16", 16, 'b'},  {"f32", 32, 'f'},   {"f64", 64, 'f'}, {"f16x2", 32, 'f'},
    {"bf16x2", 32, 'b'}, {"tf32", 32, 'b'},   {"u16x2", 32, 'b'}, {"s16x2", 32, 'b'}, {"e4m3", 8, 'b'}, {"e5m2", 8, 'b'},
    {"e4m3x2", 16, 'b'}, {"e5m2x2", 16, 'b'}, {NULL, 0, 0}};

const struct ptx_type *find_ptx_type(const char *name, size_t length) {
    const struct ptx_type *type = ptx_types;
    while (type->name != NULL && (strlen(type->name) != length || memcmp(type->name, name, length) != 0)) type++;
    return type->name != NULL ? type : NULL;
}

#define XYZ(name, variable)                                                                                                    \
    {"%" name ".x", variable ".x", 32}, {"%" name ".y", variable ".y", 32}, { "%" name ".z", variable ".z", 32 }
#define LANES(name, expression)                                                                                                \
    { "%lanemask_" name, "(" expression ")", 32 }
const struct special_register special_registers[] = {XYZ("tid", "threadIdx"),
                                                     XYZ("ntid", "blockDim"),
                                                     XYZ("ctaid", "blockIdx"),
                                                     XYZ("nctaid", "gridDim"),
                                                     {"%laneid", "simt_lane()", 32},
                                                     {"%warpid", "simt_ptx::warp()", 32},
                                                     {"%nwarpid", "simt_ptx::warps()", 32},
                                                     {"%smid", "simt_ptx::multiprocessor()", 32},
                                                     {"%nsmid", "simt_multiprocessors()", 32},
                                                     LANES("eq", "1u << simt_lane()"),
                                                     LANES("lt", "(1u << simt_lane()) - 1"),
                                                     LANES("le", "(2u << simt_lane()) - 1"),
                                                     LANES("gt", "-(2u << simt_lane())"),
                                                     LANES("ge", "-(1u << simt_lane())"),
                                                     {"%clock", "(unsigned)simt_clock()", 32},
                                                     {"%clock_hi", "(unsigned)(simt_clock() >> 32)", 32},
                                                     {"%clock64", "simt_clock()", 64},
                                                     {"%globaltimer", "simt_clock()", 64},
                                                     {"%globaltimer_lo", "(unsigned)simt_clock()", 32},
                                                     {"%globaltimer_hi", "(unsigned)(simt_clock() >> 32)", 32},
                                                     {"%cluster_ctarank", "simt_cluster_rank()", 32},
                                                     {"%cluster_nctarank", "simt_cluster_size()", 32},
                                                     {NULL, NULL, 0}};

static bool names_opcode(const struct form *form, struct slice opcode) {
    for (struct slice rest = {form->opcodes, form->opcodes + strlen(form->opcodes)}; rest.p < rest.end;)
        if (same(cut(&rest, " "), opcode)) return *form->opcodes != '#';
    return false;
}

/* A word of the list, at most 110 characters a line. */
static void list_word(const char *word, size_t length, size_t *column) {
    if (*column + length > 110) *column = 0;
    printf("%s %.*s", *column == 0 ? "\n   " : "", (int)length, word);
    *column += 1 + length;
}

/* The opcodes by their groups, as docs/simulated-device.md quotes them; of a group with #+ all that the forms say, too. */
void list_ptx_instructions(void) {
    size_t column = 0;
    bool is_in_full = false;
    for (const struct form *form = ptx_forms; form->opcodes != NULL; form++) {
        if (*form->opcodes == '#') {
            is_in_full = form->opcodes[1] == '+';
            printf("%s%s:", form == ptx_forms ? "" : "\n", form->opcodes + 2 + is_in_full);
            column = 0;
        } else if (is_in_full) {
            struct text line = {0};
            append_format(&line, "%s", form->opcodes);
            for (const char *p = form->modifiers; *p != '\0'; p++) {
                if (p == form->modifiers) append(&line, ".", 1);
                if (strchr("?-", *p) == NULL) append(&line, *p == ' ' ? "." : p, 1);
            }
            if (form[1].opcodes == NULL || strcmp(form->modifiers, form[1].modifiers != NULL ? form[1].modifiers : "") != 0)
                column = 200, list_word(line.data, line.length, &column);
        } else {
            for (struct slice rest = {form->opcodes, form->opcodes + strlen(form->opcodes)}, opcode; rest.p < rest.end;) {
                opcode = cut(&rest, " ");
                const struct form *first = ptx_forms;
                while (first != form && !names_opcode(first, opcode)) first++;
                if (first == form) list_word(opcode.p, (size_t)(opcode.end - opcode.p), &column);
            }
        }
    }
    printf("\nspecial registers:");
    column = 0;
    for (const struct special_register *special = special_registers; special->name != NULL; special++)
        list_word(special->name, strlen(special->name), &column);
    printf("\n");
}
