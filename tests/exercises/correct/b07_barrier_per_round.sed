# style: the barrier stands at the end of each round, in place of one after the loop
/if \(lane \+ t \* WARP < p.d\) O_reg\[i\]\[t\] \+= O_smem/ {
    n
    n
    s/$/\n        __syncthreads(); \/\/ no warp still reads row_smem/
}
