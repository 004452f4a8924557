# style: rows without keys store zeros and return
s/^    float D = weighted \/ weights;/    if (attended <= 0) {\n        for (int col = lane; col < p.N_kv; col += WARP) dP[col] = 0.0f;\n        return;\n    }\n    const float D = __fdividef(weighted, weights);/
