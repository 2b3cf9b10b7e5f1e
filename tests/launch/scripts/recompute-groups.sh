#!/bin/bash
# Full recomputation in groups of four layers, which a plan sets to one.
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 11008 \
  --swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights \
  --seq-length 4096 --max-position-embeddings 4096 --vocab-size 32000 --micro-batch-size 1 --global-batch-size 64 --bf16 \
  --recompute-granularity=full --recompute-method=uniform --recompute-num-layers=4 --tensor-model-parallel-size=1 \
  --pipeline-model-parallel-size=8
