#!/bin/bash
# A mixture of experts; the name of a script in a variable.
SCRIPT=examples/../pretrain_gpt.py
MOE_ARGS=(--num-experts 8 --moe-router-topk 2 --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 1e-2
  --moe-grouped-gemm --moe-token-dispatcher-type alltoall --expert-model-parallel-size 1)
MODEL_ARGS=(--use-mcore-models --disable-bias-linear --seq-length 4096 --max-position-embeddings 32768 --num-layers 32
  --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --init-method-std 0.01 --normalization RMSNorm
  --position-embedding-type rope --swiglu --untie-embeddings-and-output-weights --group-query-attention
  --num-query-groups 8 --no-masked-softmax-fusion --no-position-embedding --vocab-size 32000)
torchrun --nproc-per-node 8 --nnodes 4 --node-rank ${SLURM_NODEID:-0} --master-addr ${HEAD:-a0} --master-port 6000 $SCRIPT \
  "${MODEL_ARGS[@]}" "${MOE_ARGS[@]}" --micro-batch-size 1 --global-batch-size 64 --bf16 --lr 1e-4 \
  --tensor-model-parallel-size 8 --pipeline-model-parallel-size 4 --sequence-parallel --use-distributed-optimizer
