# style: the barrier at the beginning of a visit stays, the one at its end goes
/__syncthreads\(\); .. the visit is over/d
s/__syncthreads\(\); .. S is P now/__syncwarp();/
