/* What shuffles, votes, matches and reductions make of the operands of a warp's lanes (struct simt_value each). */
#include "collectives.h"

static uint64_t value_of(const struct simt_lanes *lanes, unsigned lane) {
    return ((const struct simt_value *)lanes->operand[lane])->value;
}

static void give(const struct simt_lanes *lanes, unsigned lane, uint64_t value) { *(uint64_t *)lanes->result[lane] = value; }

static void give_all(const struct simt_lanes *lanes, uint64_t value) {
    FOR_EACH_LANE (lane, lanes->present) give(lanes, lane, value);
}

static void shuffle(const struct simt_lanes *lanes) {
    FOR_EACH_LANE (lane, lanes->present) {
        int source = ((const struct simt_value *)lanes->operand[lane])->lane;
        if (source < 0 || source >= 32 || (lanes->present >> source & 1) == 0) {
            simt_refuse_lane(lanes, lane, "reads lane %d, which is not there: the mask is %#010x, and of its lanes %#010x run",
                             source, lanes->mask, lanes->present);
            return;
        }
        give(lanes, lane, value_of(lanes, (unsigned)source));
    }
}

static unsigned lanes_with(const struct simt_lanes *lanes, uint64_t value) {
    unsigned same = 0;
    FOR_EACH_LANE (lane, lanes->present)
        if (value_of(lanes, lane) == value) same |= 1u << lane;
    return same;
}

static unsigned votes_of(const struct simt_lanes *lanes) { return lanes->present & ~lanes_with(lanes, 0); }

static void ballot(const struct simt_lanes *lanes) { give_all(lanes, votes_of(lanes)); }
static void any(const struct simt_lanes *lanes) { give_all(lanes, votes_of(lanes) != 0); }
static void all(const struct simt_lanes *lanes) { give_all(lanes, votes_of(lanes) == lanes->present); }

static void match_any(const struct simt_lanes *lanes) {
    FOR_EACH_LANE (lane, lanes->present) give(lanes, lane, lanes_with(lanes, value_of(lanes, lane)));
}

static void match_all(const struct simt_lanes *lanes) {
    unsigned same = lanes_with(lanes, value_of(lanes, (unsigned)__builtin_ctz(lanes->present)));
    give_all(lanes, same == lanes->present ? same : 0);
}

/* Two's complement adds signed numbers as unsigned ones. */
#define REDUCTION(name, type, expression)                                                                                      \
    static void reduce_##name(const struct simt_lanes *lanes) {                                                                \
        bool first = true;                                                                                                     \
        type a = 0;                                                                                                            \
        FOR_EACH_LANE (lane, lanes->present) {                                                                                 \
            type b = (type)value_of(lanes, lane);                                                                              \
            a = first ? b : (expression);                                                                                      \
            first = false;                                                                                                     \
        }                                                                                                                      \
        give_all(lanes, (uint32_t)a);                                                                                          \
    }
REDUCTION(add, uint32_t, a + b)
REDUCTION(min, uint32_t, b < a ? b : a)
REDUCTION(max, uint32_t, b > a ? b : a)
REDUCTION(min_signed, int32_t, b < a ? b : a)
REDUCTION(max_signed, int32_t, b > a ? b : a)
REDUCTION(and, uint32_t, a &b)
REDUCTION(or, uint32_t, a | b)
REDUCTION(xor, uint32_t, a ^ b)

static void elect(const struct simt_lanes *lanes) { give_all(lanes, (uint64_t)__builtin_ctz(lanes->present)); }

const struct simt_collective collective_exchanges[SIMT_EXCHANGED] = {
    [simt_shfl] = {"__shfl_sync()", shuffle, 0},
    [simt_shfl_up] = {"__shfl_up_sync()", shuffle, 0},
    [simt_shfl_down] = {"__shfl_down_sync()", shuffle, 0},
    [simt_shfl_xor] = {"__shfl_xor_sync()", shuffle, 0},
    [simt_ballot] = {"__ballot_sync()", ballot, 0},
    [simt_any] = {"__any_sync()", any, 0},
    [simt_all] = {"__all_sync()", all, 0},
    [simt_elect] = {"elect.sync", elect, SIMT_ORDERS_NOTHING},
    [simt_match_any] = {"__match_any_sync()", match_any, 0},
    [simt_match_all] = {"__match_all_sync()", match_all, 0},
    [simt_reduce_add] = {"__reduce_add_sync()", reduce_add, 0},
    [simt_reduce_min] = {"__reduce_min_sync()", reduce_min, 0},
    [simt_reduce_max] = {"__reduce_max_sync()", reduce_max, 0},
    [simt_reduce_min_signed] = {"__reduce_min_sync()", reduce_min_signed, 0},
    [simt_reduce_max_signed] = {"__reduce_max_sync()", reduce_max_signed, 0},
    [simt_reduce_and] = {"__reduce_and_sync()", reduce_and, 0},
    [simt_reduce_or] = {"__reduce_or_sync()", reduce_or, 0},
    [simt_reduce_xor] = {"__reduce_xor_sync()", reduce_xor, 0},
};
