#!/bin/bash
# GPT-2's shapes: learned positions, biases, tied embeddings, fp16; the vocabulary's size is in its file.
cd "$(dirname "$0")"
torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 48 --hidden-size 1600 --num-attention-heads 25 --seq-length 1024 \
  --max-position-embeddings 1024 --micro-batch-size 4 --global-batch-size 512 --fp16 --tokenizer-type GPT2BPETokenizer \
  --vocab-file data/vocab.json --merge-file data/merges.txt --lr 1.5e-4 --weight-decay 0.1 --no-rope-fusion
