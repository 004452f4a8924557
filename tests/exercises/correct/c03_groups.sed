# style: cooperative groups
# needs: #include, and namespace cg = cooperative_groups
s/^static __global__ void fa1_forward/#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n\n&/
/__syncthreads\(\); .. the visit begins/d
s/__syncthreads\(\); .. S is P now/cg::tiled_partition<32>(cg::this_thread_block()).sync();/
s/__syncthreads\(\); .. the visit is over/cg::this_thread_block().sync();/
