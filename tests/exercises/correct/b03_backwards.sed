# style: the tiles from the last, partial one to the first
s/for \(int k0 = 0; k0 \+ TILE <= depth; k0 \+= TILE\) \{/for (int k0 = (depth - 1) \/ TILE * TILE; k0 >= 0; k0 -= TILE) {/
