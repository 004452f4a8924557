#include "construct.h"

#include "../ring.cuh"

namespace ring_of_peers {
/* Of as many devices as there are, three at most. */
CONSTRUCT(ring_of_peers, "1") {
    ring::rank ranks[ring::MOST_RANKS];
    int count = ring::prepare(ranks);
    ring::by_peer_copies(ranks, count);
    printf("%d\n", ring::error(ranks, count) < 1e-5);
    return 0;
}
} // namespace ring_of_peers
