# For gdb on a program of the simulated device: source common/simt/simt.gdb
# simt_self and simt_worker belong to the CUDA thread and the block that the present CPU thread runs.

macro define threadIdx (simt_self->index)
macro define blockIdx (simt_worker->block_index)

define cuda_place
    printf "block (%u,%u,%u), thread (%u,%u,%u): warp %u, lane %u\n", simt_worker->block_index.x, simt_worker->block_index.y, simt_worker->block_index.z, simt_self->index.x, simt_self->index.y, simt_self->index.z, simt_self->linear / 32, simt_self->linear % 32
end
document cuda_place
Block and thread of the CUDA thread that runs.
end
