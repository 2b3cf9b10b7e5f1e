#!/bin/bash
# A base configuration whose flags the experiment repeats: the last one counts.
BASE="--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048
  --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --micro-batch-size 4 --global-batch-size 64 --bf16
  --vocab-size 50257 --make-vocab-size-divisible-by 128 --lr 1e-4"
MINE="--tensor-model-parallel-size 4 --micro-batch-size 2 --tensor-model-parallel-size 2 --lr 2e-4"
torchrun --standalone --nproc-per-node 8 pretrain_gpt.py $BASE $MINE
