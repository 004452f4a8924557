# style: a number of tiles, rounded up
s/for \(int k0 = 0; k0 \+ TILE <= depth; k0 \+= TILE\) \{/const int tiles = (depth + TILE - 1) \/ TILE;\n    for (int tile = 0, k0 = 0; tile < tiles; k0 = ++tile * TILE) {/
