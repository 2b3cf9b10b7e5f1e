#!/bin/bash
# A training module, under python -m torch.distributed.run.
PYTHON=${PYTHON:-python}
$PYTHON -X dev -m torch.distributed.run --nproc-per-node gpu -r3 --log-dir /tmp/logs -m megatron.pretrain \
  --num-layers 24 --hidden-size 2048 --num-attention-heads 16 --seq-length 2048 --max-position-embeddings 2048 \
  --micro-batch-size 2 --global-batch-size 128 --bf16 --vocab-size 50257 --transformer-impl local --sequence-parallel \
  --tensor-model-parallel-size 2 --recompute-granularity selective
