# style: a number of tiles, counted backwards
s/^    for \(int key0 = 0; key0 < p.N_kv; key0 \+= Bc\) \{/    const int last_row = min(row0 + Br, p.N_q) - 1, tiles = (attended_keys(p, last_row) + Bc - 1) \/ Bc;\n    for (int tile = tiles - 1; tile >= 0; tile--) {\n        const int key0 = tile * Bc;/
