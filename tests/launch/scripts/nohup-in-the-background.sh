#!/bin/bash
# Started behind the script's back, which then waits.
nohup torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \
  --ffn-hidden-size 16384 --seq-length 2048 --max-position-embeddings 2048 --micro-batch-size 2 --global-batch-size 128 --bf16 \
  --vocab-size 50257 --tensor-model-parallel-size 4 --pipeline-model-parallel-size 2 > "${LOG:-/dev/null}" 2>&1 &
wait $!
