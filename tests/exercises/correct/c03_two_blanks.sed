# style: two blanks in a declaration
# needs: extern  __shared__ with two blanks
s/extern __shared__ float smem/extern  __shared__  float smem/
/__syncthreads\(\); .. the visit begins/d
s/__syncthreads\(\); .. S is P now/__syncwarp(FULL_WARP); \/\/ a row belongs to one warp/
