/* Which `fi` belongs to which `if`. Words of the grammar that belong to nothing stand in prose and become ordinary
 * commands. */
#include "model/import/bash_core.h"

struct open {
    int32_t command; /* the opener */
    int32_t branch;  /* the last THEN or PATTERN, whose next branch is not known yet; -1 = none */
    uint8_t kind;    /* BASH_IF, BASH_FOR, BASH_WHILE, BASH_CASE, BASH_OPEN */
    bool ready;      /* `then` or `do` was seen: it can be closed */
};

struct stack {
    struct bash *script;
    struct open open[BASH_MAX_FRAMES];
    int n;
};

static void to_prose(struct bash *script, int32_t command)
{
    script->parsed[command].kind = BASH_SIMPLE;
}

/* Finds the innermost open command that this word may continue, and drops what stands above it: that was prose. */
static struct open *innermost(struct stack *stack, uint8_t kind, uint8_t other, bool ready)
{
    int at = stack->n - 1;
    while (at >= 0) {
        const struct open *open = &stack->open[at];
        if ((open->kind == kind || open->kind == other) && open->ready == ready) break;
        at--;
    }
    if (at < 0) return NULL;
    while (stack->n - 1 > at) to_prose(stack->script, stack->open[--stack->n].command);
    return &stack->open[at];
}

static void push(struct stack *stack, int32_t command, uint8_t kind, bool ready)
{
    if (stack->n == BASH_MAX_FRAMES) {
        to_prose(stack->script, command);
        return;
    }
    stack->open[stack->n++] = (struct open){.command = command, .branch = -1, .kind = kind, .ready = ready};
}

static void close(struct stack *stack, struct open *open, int32_t command)
{
    struct bash_parsed *parsed = stack->script->parsed;
    if (!open) {
        to_prose(stack->script, command);
        return;
    }
    parsed[open->command].link = command;
    if (open->branch >= 0) parsed[open->branch].link = command;
    stack->n--;
}

/* then, else, elif, and the patterns of case. */
static void branch(struct stack *stack, struct open *open, int32_t command, bool ready)
{
    struct bash_parsed *parsed = stack->script->parsed;
    if (!open) {
        to_prose(stack->script, command);
        return;
    }
    if (open->branch >= 0 && parsed[command].kind != BASH_THEN) parsed[open->branch].link = command;
    if (parsed[command].kind == BASH_THEN || parsed[command].kind == BASH_PATTERN) open->branch = command;
    if (parsed[command].kind == BASH_ELSE) open->branch = -1;
    open->ready = ready;
    parsed[command].opener = open->command;
}

/* A function needs a body in braces right after it. */
static bool has_body(const struct bash *script, int32_t command)
{
    return command + 1 < script->n_parsed && script->parsed[command + 1].kind == BASH_OPEN;
}

void bash_shape(struct bash *script)
{
    struct stack stack = {.script = script};
    for (int32_t i = 0; i < script->n_parsed && !bash_step(script, 1 + (uint64_t)stack.n); i++) {
        uint8_t kind = script->parsed[i].kind;
        switch (kind) {
        case BASH_IF:
        case BASH_FOR:
        case BASH_WHILE: push(&stack, i, kind, false); break;
        case BASH_CASE:
        case BASH_OPEN: push(&stack, i, kind, true); break;
        case BASH_THEN: branch(&stack, innermost(&stack, BASH_IF, BASH_IF, false), i, true); break;
        case BASH_ELIF: branch(&stack, innermost(&stack, BASH_IF, BASH_IF, true), i, false); break;
        case BASH_ELSE: branch(&stack, innermost(&stack, BASH_IF, BASH_IF, true), i, true); break;
        case BASH_PATTERN: branch(&stack, innermost(&stack, BASH_CASE, BASH_CASE, true), i, true); break;
        case BASH_DO: {
            struct open *loop = innermost(&stack, BASH_FOR, BASH_WHILE, false);
            branch(&stack, loop, i, true);
            break;
        }
        case BASH_FI: close(&stack, innermost(&stack, BASH_IF, BASH_IF, true), i); break;
        case BASH_DONE: close(&stack, innermost(&stack, BASH_FOR, BASH_WHILE, true), i); break;
        case BASH_ESAC: close(&stack, innermost(&stack, BASH_CASE, BASH_CASE, true), i); break;
        case BASH_CLOSE: close(&stack, innermost(&stack, BASH_OPEN, BASH_OPEN, true), i); break;
        case BASH_FUNCTION:
            if (!has_body(script, i)) to_prose(script, i);
            break;
        default: break;
        }
    }
    while (stack.n) to_prose(script, stack.open[--stack.n].command);
}
