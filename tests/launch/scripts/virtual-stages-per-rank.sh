#!/bin/bash
# The interleaved schedule by its number of chunks, with a group of its own size.
args=()
args+=(--num-layers 48 --hidden-size 3072 --ffn-hidden-size 8192 --num-attention-heads 24 --swiglu)
args+=(--seq-length 4096 --max-position-embeddings 4096 --position-embedding-type rope --normalization RMSNorm)
args+=(--disable-bias-linear --vocab-size 64000 --micro-batch-size 1 --global-batch-size 48 --bf16)
args+=(--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 3)
args+=(--microbatch-group-size-per-virtual-pipeline-stage 4 --tensor-model-parallel-size 2 --sequence-parallel)
torchrun --nproc-per-node=8 pretrain_gpt.py "${args[@]}" --exit-interval 100
