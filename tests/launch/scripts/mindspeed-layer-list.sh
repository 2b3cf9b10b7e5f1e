#!/bin/bash
# MindSpeed-LLM's way: flags in strings, torch.distributed.launch, a list of layers, output into a log.
export CUDA_DEVICE_MAX_CONNECTIONS=1
export PYTORCH_NPU_ALLOC_CONF=expandable_segments:True
NPUS=8
NODES=2
DISTRIBUTED="
    --nproc_per_node $NPUS \
    --nnodes $NODES \
    --node_rank ${NODE_RANK:-0} \
    --master_addr ${MASTER_ADDR:-npu0} \
    --master_port ${MASTER_PORT:-6000}
"
GPT="
    --use-mcore-models \
    --tensor-model-parallel-size 4 \
    --pipeline-model-parallel-size 4 \
    --num-layer-list 9,10,11,10 \
    --sequence-parallel \
    --num-layers 40 \
    --hidden-size 5120 \
    --ffn-hidden-size 13824 \
    --num-attention-heads 40 \
    --tokenizer-type PretrainedFromHF \
    --tokenizer-name-or-path ./model_from_hf/llama \
    --seq-length 4096 \
    --max-position-embeddings 4096 \
    --micro-batch-size 1 \
    --global-batch-size 64 \
    --make-vocab-size-divisible-by 1 \
    --padded-vocab-size 32000 \
    --lr 1.0e-6 \
    --train-iters 5000 \
    --untie-embeddings-and-output-weights \
    --disable-bias-linear \
    --position-embedding-type rope \
    --normalization RMSNorm \
    --use-fused-rmsnorm \
    --use-fused-swiglu \
    --use-fused-rotary-pos-emb \
    --swiglu \
    --use-flash-attn \
    --no-masked-softmax-fusion \
    --attention-softmax-in-fp32 \
    --no-gradient-accumulation-fusion \
    --use-distributed-optimizer \
    --some-new-ascend-switch \
    --bf16
"
python -m torch.distributed.launch $DISTRIBUTED pretrain_gpt.py \
    $GPT \
    --distributed-backend nccl \
    --save ./ckpt \
    | tee "${LOG:-/dev/null}"
