/* Flags of mixture-of-experts layers and of latent attention that mean something together.
 * Sources: Megatron-LM megatron/training/arguments.py (moe_freq_type, MLA defaults),
 * core/models/gpt/gpt_layer_specs.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/import/megatron.h"

enum { MOST_LAYERS = 10000 };

/* A pattern of layers, 1 with experts, as Python writes lists: "([0]*3+[1]*58)", "([0]*1+[1]*3)*1", also in quotes. */
struct pattern {
    const char *at;
    unsigned char moe[MOST_LAYERS];
    int n; /* layers so far; -1: not a pattern */
    int depth;
};

static void skip(struct pattern *p)
{
    while (*p->at == ' ' || *p->at == '"' || *p->at == '\'') p->at++;
}

static void read_sum(struct pattern *p);

static void read_list(struct pattern *p)
{
    for (; *p->at && *p->at != ']'; p->at++) {
        if (*p->at == ',' || *p->at == ' ') continue;
        if ((*p->at != '0' && *p->at != '1') || p->n < 0 || p->n == MOST_LAYERS) {
            p->n = -1;
            return;
        }
        p->moe[p->n++] = *p->at == '1';
    }
    if (*p->at == ']')
        p->at++;
    else
        p->n = -1;
}

/* The layers from `begin` on, `times` times. */
static void repeat(struct pattern *p, int begin, long times)
{
    const int length = p->n - begin;
    if (times < 0 || times > MOST_LAYERS || (long)length * times > MOST_LAYERS - begin) {
        p->n = -1;
        return;
    }
    for (int i = 0; i < length * (int)times; i++) p->moe[begin + i] = p->moe[begin + i % (length ? length : 1)];
    p->n = begin + length * (int)times;
}

static void read_term(struct pattern *p)
{
    const int begin = p->n;
    skip(p);
    const char open = *p->at;
    if ((open != '[' && open != '(') || p->depth > 8) {
        p->n = -1;
        return;
    }
    p->at++;
    if (open == '[') {
        read_list(p);
    } else {
        p->depth++;
        read_sum(p);
        p->depth--;
        skip(p);
        if (p->n >= 0 && *p->at++ != ')') p->n = -1;
    }
    skip(p);
    while (p->n >= 0 && *p->at == '*') {
        char *end;
        const long times = strtol(p->at + 1, &end, 10);
        repeat(p, begin, end == p->at + 1 ? -1 : times);
        p->at = end;
        skip(p);
    }
}

static void read_sum(struct pattern *p)
{
    read_term(p);
    for (skip(p); p->n >= 0 && *p->at == '+'; skip(p)) {
        p->at++;
        read_term(p);
    }
}

/* A pattern as the two options that describe it: dense layers first, then every k-th layer. */
static bool set_pattern(struct megatron *m, const struct megatron_seen *seen, const unsigned char *moe, int n)
{
    int dense = 0, experts = 0, step = 1;
    char text[24];
    while (dense < n && !moe[dense]) dense++;
    for (int i = 0; i < n; i++) experts += moe[i];
    const bool rest_has_experts = dense + experts == n;
    if (!rest_has_experts && experts) {
        step = (n + experts - 1) / experts;
        dense = 0;
        for (int i = 0; i < n; i++)
            if (moe[i] != (i % step == 0)) {
                oc_note_add(m->input, OC_NOTE_WARNING, OC_OPT_model_moe_every, seen->flag, m->file, seen->line,
                            "%d of %d layers have experts; one in %d is counted", experts, n, step);
                break;
            }
    }
    snprintf(text, sizeof text, "%d", dense);
    if (!megatron_set(m, OC_OPT_model_dense_layers, text, seen->line)) return false;
    snprintf(text, sizeof text, "%d", step);
    return megatron_set(m, OC_OPT_model_moe_every, text, seen->line);
}

static bool layer_frequency(struct megatron *m)
{
    const struct megatron_seen *seen = &m->facts[FACT_MOE_LAYER_FREQ];
    struct pattern pattern = {.at = seen->text};
    int64_t every;
    if (!seen->flag) return true;
    if (!seen->text || (seen->value && seen->value->unknown)) {
        megatron_assume(m, OC_OPT_model_moe_every, seen);
        return true;
    }
    if (oc_parse_integer(seen->text, false, &every) && every > 0)
        return megatron_set(m, OC_OPT_model_moe_every, seen->text, seen->line);
    read_sum(&pattern);
    if (pattern.n > 0 && !*pattern.at) return set_pattern(m, seen, pattern.moe, pattern.n);
    oc_note_add(m->input, OC_NOTE_UNMODELLED, OC_OPT_model_moe_every, seen->flag, m->file, seen->line,
                "%.80s is no pattern of layers", seen->text);
    return true;
}

/* --kv-lora-rank and its kin count only with --multi-latent-attention, which has defaults for them. */
static bool latent_attention(struct megatron *m)
{
    static const enum oc_option_id parts[] = {OC_OPT_model_kv_lora_rank, OC_OPT_model_q_lora_rank,
                                              OC_OPT_model_qk_nope_head_dim, OC_OPT_model_qk_rope_head_dim,
                                              OC_OPT_model_v_head_dim};
    struct oc_config *c = &m->input->c.config;
    const struct megatron_seen *seen = &m->facts[FACT_LATENT_ATTENTION];
    if (seen->flag)
        return oc_given(c, OC_OPT_model_kv_lora_rank) || megatron_set(m, OC_OPT_model_kv_lora_rank, "32", seen->line);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!oc_given(c, parts[i])) continue;
        oc_option_reset(c, parts[i]);
        m->input->c.origin[parts[i]] = (struct oc_origin){.from = OC_FROM_DEFAULT};
    }
    return true;
}

bool megatron_experts(struct megatron *m)
{
    return layer_frequency(m) && latent_attention(m);
}
