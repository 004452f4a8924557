# style: a table in constant memory, a struct of two arrays
# needs: __constant__
s/^template <int D_MAX>/__constant__ float units[2] = {1.0f, 1.44269504f}; \/\/ 1, log2(e)\n\n&/
s/^    for \(int c = 0; c < p.d; c\+\+\) O\[c\] = 0.0f;/    struct { float Q[D_MAX], O[D_MAX]; } reg;\n#pragma unroll\n    for (int c = 0; c < D_MAX; c++) {\n        reg.O[c] = 0.0f;\n        reg.Q[c] = c < p.d ? units[0] * Q[c] : 0.0f;\n    }/
s/^        for \(int c = 0; c < p.d; c\+\+\) s \+= Q\[c\] \* K\[c\];/#pragma unroll\n        for (int c = 0; c < D_MAX; c++)\n            if (c < p.d) s += reg.Q[c] * K[c];/
s/float weight = expf\(s - m_new\);/float weight = exp2f((s - m_new) * units[1]);/
s/^        for \(int c = 0; c < p.d; c\+\+\) O\[c\] = O\[c\] \* rescale.*/#pragma unroll\n        for (int c = 0; c < D_MAX; c++)\n            if (c < p.d) reg.O[c] = reg.O[c] * rescale + weight * V[c];/
s/^    for \(int c = 0; c < p.d; c\+\+\) O\[c\] = keys.*/#pragma unroll\n    for (int c = 0; c < D_MAX; c++)\n        if (c < p.d) O[c] = keys > 0 ? reg.O[c] \/ l : 0.0f;/
