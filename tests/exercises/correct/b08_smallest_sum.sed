# style: never a division by 0
s/float D = weighted \/ weights;/float D = weighted \/ fmaxf(weights, 1e-30f);/
