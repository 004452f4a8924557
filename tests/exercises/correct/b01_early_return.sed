# style: one return per bound
/^static __global__ void output/,/^}/ s/^    if \(row >= p.N_q\) return;/    if (row >= p.N_q) return;\n    if (col >= p.d) return;/
