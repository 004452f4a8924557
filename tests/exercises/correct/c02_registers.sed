# style: arrays of registers, rows visited in groups of four columns
s/^    for \(int c = 0; c < p.d; c\+\+\) O\[c\] = 0.0f;/    float q[D_MAX], o[D_MAX] = {};\n#pragma unroll\n    for (int c = 0; c < D_MAX; c++) q[c] = c < p.d ? Q[c] : 0.0f;/
s/^        for \(int c = 0; c < p.d; c\+\+\) s \+= Q\[c\] \* K\[c\];/#pragma unroll\n        for (int c = 0; c < D_MAX; c += 4)\n#pragma unroll\n            for (int e = c; e < c + 4; e++) s += e < p.d ? q[e] * K[e] : 0.0f;/
s/^        for \(int c = 0; c < p.d; c\+\+\) O\[c\] = O\[c\] \* rescale.*/#pragma unroll\n        for (int c = 0; c < D_MAX; c++)\n            if (c < p.d) o[c] = fmaf(o[c], rescale, weight * V[c]);/
s/^    for \(int c = 0; c < p.d; c\+\+\) O\[c\] = keys.*/    const float inverse = keys > 0 ? 1.0f \/ l : 0.0f;\n#pragma unroll\n    for (int c = 0; c < D_MAX; c++)\n        if (c < p.d) O[c] = o[c] * inverse;/
