#!/bin/bash
# Embedding and loss count as layers, TP overlaps its communication.
eval "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 30 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 11008 \
  --swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights \
  --seq-length 4096 --max-position-embeddings 4096 --vocab-size 32000 --micro-batch-size 1 --global-batch-size 64 --bf16 \
  --tensor-model-parallel-size 2 --sequence-parallel --tp-comm-overlap --pipeline-model-parallel-size 4 \
  --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split --use-distributed-optimizer"
