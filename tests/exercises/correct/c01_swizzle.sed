# style: no padding: columns of the tile exchanged by XOR
s/^    __shared__ float B_smem\[TILE\]\[TILE\]; .*/    __shared__ float B_smem[TILE * TILE]; \/\/ [k][col ^ k]/
s/^        int k_of_B = k0 \+ y;/        const int line = B_TRANSPOSED ? blockIdx.x * TILE + y : k0 + y, place = B_TRANSPOSED ? k0 + x : col;/
s/^        size_t at = B_TRANSPOSED.*/        const bool inside = line < (B_TRANSPOSED ? cols : depth) \&\& place < (B_TRANSPOSED ? depth : cols);/
s/^        B_smem\[x\]\[y\] = .*/        const float b = inside ? B[(size_t)line * (B_TRANSPOSED ? depth : cols) + place] : 0.0f;\n        B_smem[(B_TRANSPOSED ? x : y) * TILE + (x ^ y)] = b;/
s/B_smem\[x\]\[k\]/B_smem[k * TILE + (x ^ k)]/
s/B_smem\[x\]\[k \+ ([123])\]/B_smem[(k + \1) * TILE + (x ^ (k + \1))]/
