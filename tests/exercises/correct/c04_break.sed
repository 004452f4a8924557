# style: the loop is left at the first tile that no row of the block attends to
s/^    for \(int key0 = 0; key0 < p.N_kv; key0 \+= Bc\) \{/&\n        if (key0 >= attended_keys(p, min(row0 + Br, p.N_q) - 1)) break; \/\/ for all threads alike/
