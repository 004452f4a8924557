# style: the other repair: O is stored in the order in which V is loaded
/__global__ void fa2_forward/,/^\}/ {
    s/if \(lane \+ t \* WARP < p.d\) O_row\[lane \+ t \* WARP\]/if (lane * COLS + t < p.d) O_row[lane * COLS + t]/
}
