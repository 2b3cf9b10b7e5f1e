#!/bin/bash
# The old name of selective recomputation, beside fused attention.
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 \
  --max-position-embeddings 2048 --vocab-size 50257 --micro-batch-size 1 --global-batch-size 64 --bf16 \
  --recompute-activations --attention-backend flash --tensor-model-parallel-size 4 --sequence-parallel --use-distributed-optimizer
