#!/bin/bash
# An uneven split as core 0.12 has it, for two kinds of servers.
torchrun --nnodes 2 --node-rank 0 --nproc-per-node 8 --master-addr server0 --master-port 6000 pretrain_gpt.py \
  --num-layers 26 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 11008 --swiglu --normalization RMSNorm \
  --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights --seq-length 4096 \
  --max-position-embeddings 4096 --vocab-size 32000 --micro-batch-size 1 --global-batch-size 32 --bf16 \
  --tensor-model-parallel-size 8 --pipeline-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer \
  --decoder-first-pipeline-num-layers 17 --decoder-last-pipeline-num-layers 9
