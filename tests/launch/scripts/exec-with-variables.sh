#!/bin/sh
# No bash: variables before the command, and the shell gives way to it.
CUDA_DEVICE_MAX_CONNECTIONS=1 NCCL_IB_HCA=mlx5_0 exec torchrun --nproc-per-node 8 --master-port 7001 pretrain_gpt.py \
  --num-layers 16 --hidden-size 2048 --num-attention-heads 32 --group-query-attention --num-query-groups 8 --ffn-hidden-size 8192 \
  --swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear --seq-length 8192 \
  --max-position-embeddings 131072 --use-rope-scaling --padded-vocab-size 128256 --micro-batch-size 1 --global-batch-size 256 \
  --bf16 --use-distributed-optimizer --tensor-model-parallel-size 1 --null-tokenizer-pad-id -1 --mock-data
