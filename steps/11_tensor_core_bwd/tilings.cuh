// How blocks and warps divide the work, in the last rung and in chapter 15.
#ifndef TILINGS_CUH
#define TILINGS_CUH

#include "launch.h"
#include "tiles.cuh"

constexpr int ROW_PAD = 128; // dQ_sum, L2 and D have rows up to a multiple of this

// D >= d: width of the tiles. Br query rows and Bc keys in a tile. The warps of a block divide each product into rows of
// warps: S_WARPS of them for S and dP (query rows), K_WARPS for dV and dK (keys), Q_WARPS for dQ (query rows).
template <int D_, int Br_, int Bc_, int WARPS_, int S_WARPS, int K_WARPS, int Q_WARPS> struct tiling {
    static constexpr bool TRANSPOSED = false;
    static constexpr int D = D_, Br = Br_, Bc = Bc_, WARPS = WARPS_, THREADS = WARPS * WARP;
    static constexpr int S_ROWS = Br / S_WARPS, S_KEYS = Bc / (WARPS / S_WARPS); // of one warp in S and dP
    static constexpr int K_KEYS = Bc / K_WARPS, K_COLS = D / (WARPS / K_WARPS);  // of one warp in dV and dK
    static constexpr int Q_ROWS = Br / Q_WARPS, Q_COLS = D / (WARPS / Q_WARPS);  // of one warp in dQ
    // K, V (Bc, D); Q, dO (Br, D), three stages each; P, dS (Br, Bc), two of each; L2, D (Br), three stages each; barriers.
    static constexpr size_t BYTES = 2 * (2 * Bc * D + 6 * Br * D + 4 * Br * Bc) + 4 * 6 * Br + 3 * 8;
    static_assert(WARPS % S_WARPS == 0 && WARPS % K_WARPS == 0 && WARPS % Q_WARPS == 0, "rows of warps are whole");
    static_assert(S_ROWS % 16 == 0 && K_KEYS % 16 == 0 && Q_ROWS % 16 == 0, "a fragment has 16 rows");
    static_assert(S_KEYS % 16 == 0 && K_COLS % 16 == 0 && Q_COLS % 16 == 0, "one piece fills two fragments of B");
    static_assert(ROW_PAD % Br == 0 && 2 * Br / 4 <= THREADS, "threads copy L2 and D in fours");
};

// The same for backward_transposed: a warp owns KEYS keys and computes CHUNK queries at a time.
template <int D_, int Br_, int Bc_, int WARPS_, int CHUNK_, int Q_WARPS> struct transposed_tiling {
    static constexpr bool TRANSPOSED = true;
    static constexpr int D = D_, Br = Br_, Bc = Bc_, WARPS = WARPS_, THREADS = WARPS * WARP, CHUNK = CHUNK_;
    static constexpr int KEYS = Bc / WARPS;
    static constexpr int Q_ROWS = Br / Q_WARPS, Q_COLS = D / (WARPS / Q_WARPS); // of one warp in dQ
    // K, V (Bc, D); Q, dO (Br, D), two stages each; dS (Bc, Br), two of it; L2, D (Br), two stages each.
    static constexpr size_t BYTES = 2 * (2 * Bc * D + 4 * Br * D + 2 * Br * Bc) + 4 * 4 * Br;
    static_assert(KEYS % 16 == 0 && Q_ROWS % 16 == 0 && Q_COLS % 16 == 0 && CHUNK % 16 == 0 && Br % CHUNK == 0);
    static_assert(ROW_PAD % Br == 0 && 2 * Br / 4 <= THREADS, "threads copy L2 and D in fours");
};

#endif
