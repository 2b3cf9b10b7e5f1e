#!/bin/bash
# --k=v throughout, grouped-query attention, two unlike servers.
GPUS=8
torchrun --nnodes=2 --node-rank="${RANK:-0}" --nproc-per-node=$GPUS --master-addr=server0 --master-port=29501 \
  pretrain_gpt.py \
  --num-layers=32 --hidden-size=4096 --ffn-hidden-size=14336 --num-attention-heads=32 \
  --group-query-attention --num-query-groups=8 --kv-channels=128 \
  --seq-length=4096 --max-position-embeddings=8192 --position-embedding-type=rope --rotary-base=500000 \
  --swiglu --normalization=RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights \
  --attention-dropout=0.0 --hidden-dropout=0.0 --padded-vocab-size=128256 \
  --tensor-model-parallel-size=4 --pipeline-model-parallel-size=2 --sequence-parallel \
  --micro-batch-size=1 --global-batch-size=32 --bf16 --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather \
  --lr=1.5e-4 --min-lr=1.0e-5 --lr-decay-style=cosine --adam-beta2=0.95 --data-path=/data/my_text
