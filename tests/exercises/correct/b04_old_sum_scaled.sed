# style: the old sum is scaled where it is read, one factor for both
s/float l_new = l_old \* rescale \+ warp_reduce_sum\(weight\);/l_old *= rescale;\n                float l_new = l_old + warp_reduce_sum(weight);/
