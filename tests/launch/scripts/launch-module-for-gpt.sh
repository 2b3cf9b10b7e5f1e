#!/bin/bash
# The old launcher under plain Megatron-LM: torch.distributed.launch with --use-env.
PY=python3
$PY -m torch.distributed.launch --use_env --nproc_per_node 8 --nnodes 2 --node_rank ${RANK:-1} --master_addr a0 --master_port 6000 \
  /workspace/Megatron-LM/pretrain_gpt.py --num-layers 64 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 \
  --max-position-embeddings 2048 --micro-batch-size 1 --global-batch-size 128 --bf16 --vocab-size 51200 \
  --tensor-model-parallel-size 8 --pipeline-model-parallel-size 2 --save-interval 100 --eval-iters 10 --sequence-parallel
