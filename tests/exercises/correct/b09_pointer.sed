# style: the address as a pointer, both additions atomic
s/^( *)dV\[\(size_t\)\(key0 \+ key\) \* p.d \+ c\] = dV_sum;/\1float *to = dV + (size_t)(key0 + key) * p.d + c;\n\1atomicAdd(to, dV_sum);/
