#!/bin/bash
# Long sequences over several devices.
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 32768 \
  --max-position-embeddings 32768 --micro-batch-size 1 --global-batch-size 8 --bf16 --vocab-size 50257 --context-parallel-size 4 \
  --cp-comm-type p2p --use-tp-pp-dp-mapping
