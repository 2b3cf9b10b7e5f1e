#!/bin/bash
# Latent attention, one dense layer before the experts, shared experts.
torchrun --nnodes 2 --node-rank 0 --nproc-per-node 8 --master-addr a0 --master-port 6000 pretrain_gpt.py \
  --num-layers 27 --hidden-size 2048 --ffn-hidden-size 10944 --num-attention-heads 16 --kv-channels 16 \
  --multi-latent-attention --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 --v-head-dim 128 --qk-layernorm \
  --num-experts 64 --moe-layer-freq '([0]+[1]*26)' --moe-ffn-hidden-size 1408 --moe-router-topk 6 \
  --moe-shared-expert-intermediate-size 2816 --moe-grouped-gemm --moe-token-dispatcher-type alltoall \
  --moe-router-load-balancing-type seq_aux_loss --moe-aux-loss-coeff 0.001 \
  --seq-length 4096 --max-position-embeddings 163840 --position-embedding-type rope --rotary-scaling-factor 40 --mscale 0.707 \
  --mscale-all-dim 0.707 --swiglu --normalization RMSNorm --disable-bias-linear --untie-embeddings-and-output-weights \
  --vocab-size 102400 --micro-batch-size 1 --global-batch-size 64 --bf16 --tensor-model-parallel-size 4 --sequence-parallel \
  --pipeline-model-parallel-size 2 --use-distributed-optimizer
