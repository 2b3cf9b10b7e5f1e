#!/bin/bash
# Full recomputation, layer by layer: what a plan counts, so the flags stay.
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 40 --hidden-size 5120 --num-attention-heads 40 --ffn-hidden-size 13824 \
  --swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights \
  --seq-length 4096 --max-position-embeddings 4096 --vocab-size 32000 --micro-batch-size 4 --global-batch-size 64 --bf16 \
  --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
  --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --sequence-parallel --use-distributed-optimizer
