# style: zeros by a loop of their own, backwards
s/^    sum = warp_reduce_sum\(sum\);/    for (int c = p.d - 1 - lane; c >= 0; c -= WARP) t.dQ[row * p.d + c] = 0.0f;\n&/
