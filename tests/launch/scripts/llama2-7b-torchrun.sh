#!/usr/bin/env bash
# One server: arrays of flags, torchrun with underscores, output through tee.
set -euo pipefail
export CUDA_DEVICE_MAX_CONNECTIONS=1
LAUNCH=(--nproc_per_node 8 --nnodes 1 --master_addr localhost --master_port 6000)
MODEL=(
  --num-layers 32
  --hidden-size 4096
  --ffn-hidden-size 11008
  --num-attention-heads 32
  --seq-length 4096
  --max-position-embeddings 4096
  --position-embedding-type rope
  --swiglu
  --normalization RMSNorm
  --disable-bias-linear
  --untie-embeddings-and-output-weights
  --vocab-size 32000
)
TRAINING=(
  --micro-batch-size 1
  --global-batch-size 64
  --train-iters 500000
  --lr 3.0e-4
  --bf16
  --clip-grad 1.0
  --use-distributed-optimizer
)
PARALLEL=(--tensor-model-parallel-size 8 --pipeline-model-parallel-size 1 --sequence-parallel)
DATA=(--data-path 0.7 /data/web_text 0.3 /data/code --split 949,50,1 --tokenizer-type Llama2Tokenizer --tokenizer-model /data/tokenizer.model)
torchrun "${LAUNCH[@]}" pretrain_gpt.py "${MODEL[@]}" "${TRAINING[@]}" "${PARALLEL[@]}" "${DATA[@]}" 2>&1 | tee "${LOG:-/dev/null}"
