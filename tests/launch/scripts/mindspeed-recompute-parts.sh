#!/bin/bash
# MindSpeed's recomputation of norms and activations, its overlap of TP, and switches that nobody here knows.
python3 -u -m torch.distributed.launch --nproc_per_node=8 --nnodes=1 --node_rank=0 --master_addr=localhost --master_port=6001 \
  pretrain_gpt.py --use-mcore-models --num-layers 28 --hidden-size 3584 --ffn-hidden-size 18944 --num-attention-heads 28 \
  --group-query-attention --num-query-groups 4 --add-qkv-bias --disable-bias-linear --swiglu --normalization RMSNorm \
  --position-embedding-type rope --untie-embeddings-and-output-weights --seq-length 4096 --max-position-embeddings 32768 \
  --padded-vocab-size 152064 --micro-batch-size 1 --global-batch-size 64 --bf16 --use-flash-attn --use-fused-rotary-pos-emb \
  --use-fused-swiglu --recompute-activation-function --recompute-norm --use-ascend-mc2 --tensor-model-parallel-size 4 \
  --sequence-parallel --tokenizer-name-or-path ./qwen --rope-fancy-mode 3 -1 --use-distributed-optimizer
