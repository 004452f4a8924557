/* In which order the warps of a block take their turns, where a seed shuffles them. The draws depend on the seed, the number
 * of the launch and the block only, so that a seed gives one order, whichever CPU thread runs the block. */
#include "scheduler.h"

/* The generator "splitmix64": each state gives 64 bits that look random. */
static uint64_t next(struct order *order) {
    uint64_t x = order->random += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

struct order order_of_block(const struct launch *launch, uint64_t number) {
    struct order order = {.random = launch->seed + number * 0xd6e8feb86659fd93u};
    order.draws_every = 1u << (next(&order) >> 32) % 3 * 2; /* 1, 4 or 16 waits */
    return order;
}

void order_draw(struct order *order, unsigned warps) {
    uint64_t random = next(order);
    if (order->step != 0 && random % order->draws_every != 0) return;
    order->start = (unsigned)(random >> 32) % warps;
    order->step = (unsigned)(random >> 16 & 0xffff) % warps + 1;
    while (greatest_common_divisor(order->step, warps) != 1) order->step++;
}
