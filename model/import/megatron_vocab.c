/* The size of the vocabulary: scripts usually name only a tokenizer, which is a file that is not read. */
#include <stdio.h>
#include <string.h>

#include "oomcast/model.h"
#include "model/import/megatron.h"

/* Tokenizers whose size follows from their type. Others are known only by the model that uses them. */
static const struct {
    const char *type;
    int64_t size;
} tokenizers[] = {{"GPT2BPETokenizer", 50257},
                  {"Llama2Tokenizer", 32000},
                  {"BertWordPieceLowerCase", 30522},
                  {"BertWordPieceCase", 28996}};

static int64_t value_or(const struct megatron *m, enum oc_option_id option, int64_t otherwise)
{
    return oc_given(&m->input->c.config, option) ? oc_option_get(&m->input->c.config, option) : otherwise;
}

/* A known model of the same shape, preferably with the same number of positions. */
static const struct oc_model_row *same_shape(const struct megatron *m)
{
    int64_t layers = value_or(m, OC_OPT_model_layers, 0), hidden = value_or(m, OC_OPT_model_hidden, 0);
    int64_t heads = value_or(m, OC_OPT_model_heads, 0), kv_heads = value_or(m, OC_OPT_model_kv_heads, heads);
    bool gated =
        m->input->c.config.model_activation == OC_ACT_SWIGLU || m->input->c.config.model_activation == OC_ACT_GEGLU;
    int64_t ffn = value_or(m, OC_OPT_model_ffn, gated ? hidden * 8 / 3 / 64 * 64 : 4 * hidden);
    int64_t max_positions = value_or(m, OC_OPT_model_max_positions, 0);
    int n;
    const struct oc_model_row *models = oc_models(&n), *found = NULL;
    for (int i = 0; i < n; i++) {
        const struct oc_model_row *row = &models[i];
        if (row->layers != layers || row->hidden != hidden || row->heads != heads || row->kv_heads != kv_heads ||
            row->ffn != ffn)
            continue;
        if (!found || (row->max_positions == max_positions && found->max_positions != max_positions)) found = row;
    }
    return found;
}

static bool set_number(struct megatron *m, enum oc_option_id option, int64_t value, int line)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return megatron_set(m, option, text, line);
}

/* The size is taken from what is known of the tokenizer, or of the model. */
static bool assume(struct megatron *m)
{
    const struct megatron_seen *given = &m->options[OC_OPT_model_vocab], *tokenizer = &m->facts[FACT_TOKENIZER];
    int line = given->flag ? given->line : tokenizer->flag ? tokenizer->line : m->line;
    const char *type = tokenizer->text && !(tokenizer->value && tokenizer->value->unknown) ? tokenizer->text : NULL;
    char why[160], from[120] = "GPT-2's is taken";
    int64_t size = 0;
    if (!type) size = 50257;
    for (size_t i = 0; type && i < sizeof tokenizers / sizeof *tokenizers; i++)
        if (!strcmp(type, tokenizers[i].type)) size = tokenizers[i].size;
    const struct oc_model_row *model = type && !size ? same_shape(m) : NULL;
    if (model) {
        size = model->vocab;
        snprintf(from, sizeof from, "the shape is that of %.60s, whose vocabulary is taken", model->name);
    } else if (type && size) {
        snprintf(from, sizeof from, "the usual size of %.40s is taken", type);
    } else if (!size) {
        size = 32000;
        snprintf(from, sizeof from, "Llama 2's is taken");
    }
    if (given->flag && given->value && given->value->unknown)
        bash_cause(m->script, given->value->cause, m->name, why, sizeof why);
    else if (type)
        snprintf(why, sizeof why, "%s names a tokenizer (%.40s) and no vocabulary size", m->name, type);
    else
        snprintf(why, sizeof why, "%s names no tokenizer and no vocabulary size", m->name);
    if (!set_number(m, OC_OPT_model_vocab, size, line)) return false;
    m->input->c.origin[OC_OPT_model_vocab].from = OC_FROM_ASSUMED;
    oc_note_add(m->input, OC_NOTE_ASSUMED, OC_OPT_model_vocab, tokenizer->flag ? tokenizer->flag : "", m->file, line,
                "%s; %s", why, from);
    return true;
}

bool megatron_vocab(struct megatron *m)
{
    const struct megatron_seen *padded = &m->facts[FACT_PADDED_VOCAB], *tokenizer = &m->facts[FACT_TOKENIZER];
    if (padded->flag && padded->text && !(padded->value && padded->value->unknown))
        return megatron_set(m, OC_OPT_model_vocab, padded->text, padded->line) &&
               set_number(m, OC_OPT_model_vocab_multiple, 1, padded->line);
    if (!oc_given(&m->input->c.config, OC_OPT_model_vocab)) return assume(m);
    /* NullTokenizer counts an end-of-document token beside the size that it is told. */
    if (tokenizer->text && !strcmp(tokenizer->text, "NullTokenizer"))
        return set_number(m, OC_OPT_model_vocab, m->input->c.config.model_vocab + 1,
                          m->options[OC_OPT_model_vocab].line);
    return true;
}
