#!/bin/bash
# 8-bit matrix products.
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 \
  --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 64 --bf16 --vocab-size 50257 --fp8-format hybrid \
  --fp8-amax-history-len 1024 --fp8-amax-compute-algo max --tensor-model-parallel-size 4 --sequence-parallel
