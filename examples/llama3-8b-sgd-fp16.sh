#!/usr/bin/env bash
# An 8B Llama 3 on one node of eight H100s: SGD, fp16, split over all eight GPUs, every layer recomputed.
# It takes more memory than the same run without --fp16. Ask why:
#
#   oomcast examples/llama3-8b-sgd-fp16.sh                          then `l` on precision
#   oomcast report examples/llama3-8b-sgd-fp16.sh
#   oomcast report examples/llama3-8b-sgd-fp16.sh --set precision=fp32
set -eu

export CUDA_DEVICE_MAX_CONNECTIONS=1

GPUS=8
MICRO_BATCH=1
ACCUMULATION=32
DATA=${DATA:-/data/corpus_text_document}
TOKENIZER=${TOKENIZER:-/data/llama3-tokenizer}
CHECKPOINTS=${CHECKPOINTS:-/checkpoints/llama3-8b}

LAUNCH=(
    torchrun
    --standalone
    --nproc_per_node "$GPUS"
)

MODEL=(
    --num-layers 32
    --hidden-size 4096
    --ffn-hidden-size 14336
    --num-attention-heads 32
    --group-query-attention
    --num-query-groups 8
    --seq-length 4096
    --max-position-embeddings 8192
    --position-embedding-type rope
    --normalization RMSNorm
    --swiglu
    --disable-bias-linear
    --attention-dropout 0
    --hidden-dropout 0
    --no-masked-softmax-fusion
    --vocab-size 128256
    # the output layer shares the embedding: --untie-embeddings-and-output-weights is off
    --transformer-impl transformer_engine
)

PARALLEL=(
    --tensor-model-parallel-size "$GPUS"
    --sequence-parallel
    --pipeline-model-parallel-size 1
)

TRAINING=(
    --fp16 # without this line it trains in fp32, and takes less memory
    --optimizer sgd
    --micro-batch-size "$MICRO_BATCH"
    --global-batch-size $((MICRO_BATCH * ACCUMULATION))
    --recompute-granularity full
    --recompute-method uniform
    --recompute-num-layers 1
    --lr 1e-3
    --lr-decay-style cosine
    --clip-grad 1.0
    --train-iters 100000
)

FILES=(
    --tokenizer-type HuggingFaceTokenizer
    --tokenizer-model "$TOKENIZER"
    --data-path "$DATA"
    --split 98,1,1
    --save "$CHECKPOINTS"
    --save-interval 2000
)

"${LAUNCH[@]}" pretrain_gpt.py \
    "${MODEL[@]}" \
    "${PARALLEL[@]}" \
    "${TRAINING[@]}" \
    "${FILES[@]}"
