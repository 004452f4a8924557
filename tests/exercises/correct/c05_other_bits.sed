# style: bits 1 and 4 number the row, bits 0, 2 and 3 the column
s/int lane_m = lane \/ LANE_COLS, lane_n = lane % LANE_COLS;/int lane_m = (lane >> 1 \& 1) | (lane >> 3 \& 2), lane_n = (lane \& 1) | (lane >> 1 \& 6);\n    constexpr int BITS[3] = {1, 4, 8}; \/\/ lanes that differ in these share a row/
s/for \(int bit = 1; bit <= 4; bit \*= 2\) m_new/for (int bit : BITS) m_new/
s/^            float sum = 0.0f;/            float part = l_reg[i] * rescale;/
s/^                sum \+= weight;/                part += weight;/
/for \(int bit = 1; bit <= 4; bit \*= 2\) sum \+=/d
s/^            l_reg\[i\] = l_reg\[i\] \* rescale \+ sum;/            l_reg[i] = part;/
/^    if constexpr \(T::SHARE == 2\) \{/ {
    s/^/    for (int i = 0; i < TM; i++)\n        for (int bit : BITS) l_reg[i] += __shfl_xor_sync(FULL_WARP, l_reg[i], bit);\n/
}
