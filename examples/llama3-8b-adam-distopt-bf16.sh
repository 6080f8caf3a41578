#!/usr/bin/env bash
# An 8B Llama 3 on four nodes of eight GPUs: Adam in bf16, the optimizer's states shared by the data-parallel ranks.
# How much does sharing save, and what stays on every rank however many there are?
#
#   oomcast report examples/llama3-8b-adam-distopt-bf16.sh
#   oomcast report examples/llama3-8b-adam-distopt-bf16.sh --set world=128 --set batch.global=1024
set -eu

export CUDA_DEVICE_MAX_CONNECTIONS=1
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True

NODES=${NODES:-4}
GPUS_PER_NODE=8
TP=2
PP=2
WORLD=$((NODES * GPUS_PER_NODE))
DP=$((WORLD / (TP * PP)))
MICRO_BATCH=1
ACCUMULATION=8

MODEL="--num-layers 32 \
    --hidden-size 4096 \
    --ffn-hidden-size 14336 \
    --num-attention-heads 32 \
    --group-query-attention --num-query-groups 8 \
    --seq-length 8192 --max-position-embeddings 8192 \
    --position-embedding-type rope --rotary-base 500000 \
    --normalization RMSNorm --swiglu --disable-bias-linear \
    --attention-dropout 0 --hidden-dropout 0 \
    --untie-embeddings-and-output-weights \
    --vocab-size 128256"

PARALLEL="--tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP"
if [ "$TP" -gt 1 ]; then
    PARALLEL="$PARALLEL --sequence-parallel"
fi

OPTIMIZER="--optimizer adam --adam-beta1 0.9 --adam-beta2 0.95 --weight-decay 0.1 --clip-grad 1.0 \
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"

torchrun --nnodes "$NODES" --nproc_per_node "$GPUS_PER_NODE" \
    --rdzv_backend c10d --rdzv_endpoint "${HEAD_NODE:-localhost}:29500" \
    pretrain_gpt.py $MODEL $PARALLEL $OPTIMIZER \
    --bf16 --use-flash-attn \
    --recompute-granularity selective \
    --micro-batch-size $MICRO_BATCH --global-batch-size $((MICRO_BATCH * ACCUMULATION * DP)) \
    --lr 3e-4 --min-lr 3e-5 --lr-decay-style cosine --lr-warmup-fraction 0.01 --train-iters 50000 \
    --tokenizer-type HuggingFaceTokenizer --tokenizer-model "${TOKENIZER:-/data/llama3-tokenizer}" \
    --data-path "${DATA:-/data/corpus_text_document}" --split 98,1,1 \
    --save "${CHECKPOINTS:-/checkpoints/llama3-8b}" --save-interval 1000
