#include "help_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

bool help_read_row(const char *line, struct help_row *r, const char **rest)
{
    int end = 0;
    const int read = sscanf(line, "%7s %11s %7s %7s %7s %11s %d %d %ld %ld %ld %ld %ld %ld %ld %ld %lf %lf%n", r->arch,
                            r->mode, r->attention, r->recompute, r->masks, r->mean, &r->fp32_logits, &r->tied, &r->b,
                            &r->s, &r->h, &r->a, &r->kv, &r->f, &r->v, &r->l, &r->attention_dropout, &r->dropout, &end);
    *rest = line + end;
    return line[0] != '#' && read == 18;
}

bool help_is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

bool help_is_gpt(const struct help_row *r)
{
    return help_is(r->arch, "gpt");
}

void help_assign(struct oc_config *config, const char *key, const char *format, ...)
{
    char text[128], value[64];
    struct oc_error error;
    va_list args;
    va_start(args, format);
    vsnprintf(value, sizeof value, format, args);
    va_end(args);
    snprintf(text, sizeof text, "%s=%s", key, value);
    if (!oc_config_assign(config, text, NULL, &error)) fail_msg("%s: %s", text, error.message);
}

struct oc_config help_row_config(const struct help_row *r)
{
    struct oc_config c = oc_config_default();
    help_assign(&c, "framework", "pytorch");
    help_assign(&c, "gpu", "none");
    help_assign(&c, "model.layers", "%ld", r->l);
    help_assign(&c, "model.hidden", "%ld", r->h);
    help_assign(&c, "model.heads", "%ld", r->a);
    help_assign(&c, "model.kv_heads", "%ld", r->kv);
    help_assign(&c, "model.ffn", "%ld", r->f);
    help_assign(&c, "model.vocab", "%ld", r->v);
    help_assign(&c, "model.tied", "%d", r->tied);
    help_assign(&c, "model.dropout", "%g", r->dropout);
    help_assign(&c, "model.attention_dropout", "%g", r->attention_dropout);
    help_assign(&c, "batch.seq", "%ld", r->s);
    help_assign(&c, "batch.micro", "%ld", r->b);
    help_assign(&c, "precision", "%s",
                help_is(r->mode, "fp32")   ? "fp32"
                : help_is(r->mode, "bf16") ? "pure-bf16"
                                           : "amp-bf16");
    help_assign(&c, "kernels.attention", "%s", r->attention);
    help_assign(&c, "kernels.logits_fp32", "%d", r->fp32_logits);
    help_assign(&c, "recompute", "%s", help_is(r->recompute, "attn") ? "selective" : r->recompute);
    if (!help_is_gpt(r)) return c;
    help_assign(&c, "model.norm", "layernorm");
    help_assign(&c, "model.activation", "gelu");
    help_assign(&c, "model.positions", "learned");
    help_assign(&c, "model.max_positions", "%ld", r->s);
    help_assign(&c, "model.linear_bias", "true");
    return c;
}
