#!/bin/bash
# Empty layers: --num-layers does not mean what it says.
python -m torch.distributed.launch --nproc_per_node 8 pretrain_gpt.py --use-mcore-models --num-layers 48 --noop-layers 46,47 \
  --hidden-size 4096 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --padded-vocab-size 32000 \
  --micro-batch-size 1 --global-batch-size 64 --bf16 --use-flash-attn --pipeline-model-parallel-size 8 \
  --tokenizer-name-or-path ./model
