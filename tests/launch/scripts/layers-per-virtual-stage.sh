#!/bin/bash
# The interleaved schedule by layers of a virtual stage, with the overlaps that need it.
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 2560 --num-attention-heads 32 --seq-length 2048 \
  --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 64 --fp16 --vocab-size 50304 \
  --pipeline-model-parallel-size 8 --num-layers-per-virtual-pipeline-stage 2 \
  --overlap-p2p-communication-warmup-flush --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
  --overlap-param-gather-with-optimizer-step --lr 1e-4 --loss-scale-window 1000
