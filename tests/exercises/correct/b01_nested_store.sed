# style: load and store only where the column exists, from the end
/^static __global__ void output/,/^}/ {
    s/^    for \(int key = 0.*/    for (int key = p.N_kv - 1; key >= 0 \&\& col < p.d; key--) sum = fmaf(P[key], V[(size_t)key * p.d], sum);/
    s/^    O\[.*/    if (col < p.d) O[(head * p.N_q + row) * p.d + col] = sum;/
}
