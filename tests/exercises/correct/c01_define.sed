# style: a macro for the place in the padded tile
# needs: #define
s/^template <bool B_TRANSPOSED>/#define AT(k, column) ((k) * (TILE + 1) + (column))\n&/
s/^    __shared__ float B_smem\[TILE\]\[TILE\]; .*/    __shared__ float B_smem[TILE * (TILE + 1)];/
s/^        int k_of_B = k0 \+ y;/        if (B_TRANSPOSED) {\n            int row_of_B = col - x + y;\n            B_smem[AT(x, y)] = row_of_B < cols \&\& k0 + x < depth ? B[(size_t)row_of_B * depth + k0 + x] : 0.0f;\n        } else {\n            B_smem[AT(y, x)] = k0 + y < depth \&\& col < cols ? B[(size_t)(k0 + y) * cols + col] : 0.0f;\n        }/
/^        size_t at = B_TRANSPOSED/d
/^        B_smem\[x\]\[y\] = /d
s/B_smem\[x\]\[(k[^]]*)\]/B_smem[AT(\1, x)]/
