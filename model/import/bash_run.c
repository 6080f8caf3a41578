/* Goes through the commands once, in the order in which bash would: branches are chosen, functions entered, loop bodies
 * read once. What a branch that may or may not be taken assigns is unknown afterwards. */
#include <stdlib.h>
#include <string.h>

#include "model/import/bash_core.h"

enum frame_kind { FRAME_IF, FRAME_CASE, FRAME_LOOP, FRAME_GROUP, FRAME_CALL };

struct frame {
    enum frame_kind kind;
    int32_t opener, end; /* commands */
    int32_t back;        /* calls: where to go on */
    bool taken;          /* a branch was surely taken */
    bool maybe;          /* a branch may have been taken */
    enum bash_mode outer;
    uint32_t outer_cause;
    struct bash_text subject; /* of case */
};

struct function {
    struct bash_text name;
    int32_t body; /* its BASH_OPEN */
};

struct interpreter {
    struct bash *script;
    int32_t at; /* the command that runs */
    struct frame frames[BASH_MAX_FRAMES];
    int n_frames;
    struct function functions[BASH_MAX_FUNCTIONS];
    int n_functions;
    struct bash_status status; /* of the last command */
};

static struct frame *push_frame(struct interpreter *in, enum frame_kind kind, int32_t opener, int32_t end)
{
    if (in->n_frames == BASH_MAX_FRAMES) return NULL;
    struct frame *frame = &in->frames[in->n_frames++];
    *frame = (struct frame){
        .kind = kind, .opener = opener, .end = end, .outer = in->script->mode, .outer_cause = in->script->mode_cause};
    return frame;
}

static void restore_mode(struct interpreter *in, const struct frame *frame)
{
    in->script->mode = frame->outer;
    in->script->mode_cause = frame->outer_cause;
}

static void become_unsure(struct interpreter *in, uint32_t cause)
{
    if (in->script->mode == BASH_KEEP) return;
    in->script->mode = BASH_MAYBE;
    in->script->mode_cause = cause;
}

/* The innermost frame, if the command belongs to it. */
static struct frame *frame_of(struct interpreter *in, int32_t opener)
{
    struct frame *top = in->n_frames ? &in->frames[in->n_frames - 1] : NULL;
    return top && opener >= 0 && top->opener == opener ? top : NULL;
}

/* ---- commands ---- */

static const struct function *find_function(const struct interpreter *in, const struct bash_text *name)
{
    for (int i = in->n_functions - 1; i >= 0; i--) {
        const struct bash_text *other = &in->functions[i].name;
        uint32_t same = 0;
        while (same < name->n && same < other->n &&
               bash_cell_char(name->cells[same]) == bash_cell_char(other->cells[same]))
            same++;
        if (same == name->n && same == other->n) return &in->functions[i];
    }
    return NULL;
}

static bool is_active(const struct interpreter *in, int32_t opener)
{
    for (int i = 0; i < in->n_frames; i++)
        if (in->frames[i].kind == FRAME_CALL && in->frames[i].opener == opener) return true;
    return false;
}

/* Enters a function of the script. */
static bool call(struct interpreter *in, const struct bash_text *name)
{
    const struct function *function = find_function(in, name);
    if (!function || is_active(in, function->body)) return false;
    struct frame *frame = push_frame(in, FRAME_CALL, function->body, in->script->parsed[function->body].link);
    if (!frame) return false;
    frame->back = in->at + 1;
    in->at = function->body + 1;
    return true;
}

static void record(struct bash *script, const struct bash_fields *fields, uint32_t offset)
{
    if (!bash_grow(script, &script->commands, script->n_commands, &script->commands_capacity, sizeof *script->commands))
        return;
    struct bash_word *words = bash_alloc(script, (size_t)fields->n * sizeof *words);
    if (!words) return;
    for (int i = 0; i < fields->n; i++) words[i] = bash_word_of(script, &fields->items[i], offset);
    script->commands[script->n_commands++] = (struct bash_command){.words = words, .n = fields->n, .offset = offset};
}

static struct bash_status ran(uint32_t offset)
{
    return (struct bash_status){.truth = BASH_RAN, .cause = offset};
}

static struct bash_status run_words(struct interpreter *in, struct bash_fields *fields, uint32_t offset)
{
    struct bash *script = in->script;
    const struct bash_text *first = &fields->items[0];
    if (bash_text_is(first, "[") || bash_text_is(first, "test")) {
        bool bracket = bash_text_is(first, "[") && bash_text_is(&fields->items[fields->n - 1], "]");
        return bash_test(script, fields->items + 1, fields->n - 1 - bracket, false, offset);
    }
    if (bash_text_is(first, "true") || bash_text_is(first, ":")) return (struct bash_status){.truth = BASH_YES};
    if (bash_text_is(first, "false")) return (struct bash_status){.truth = BASH_NO};
    if (bash_text_is(first, "unset") && script->mode == BASH_RUN)
        for (int i = 1; i < fields->n; i++) bash_unset(script, &fields->items[i]);
    record(script, fields, offset);
    return ran(offset);
}

static void run_simple(struct interpreter *in, const struct bash_parsed *command)
{
    struct bash *script = in->script;
    struct bash_fields fields = {0};
    for (int i = 0; i < command->n && !script->spent; i++) {
        const struct bash_raw *raw = &script->raw[command->first + i];
        if (raw->kind == BASH_WORD)
            bash_expand(script, raw->start, raw->end, true, &fields);
        else if (raw->kind != BASH_ELEMENT)
            bash_assign(script, raw);
    }
    in->status = (struct bash_status){.truth = BASH_YES};
    if (!fields.n || script->spent) return;
    if (call(in, &fields.items[0])) {
        record(script, &fields, command->offset);
        return;
    }
    in->status = run_words(in, &fields, command->offset);
}

static void run_test(struct interpreter *in, const struct bash_parsed *command)
{
    struct bash *script = in->script;
    struct bash_fields fields = {0};
    for (int i = 0; i < command->n; i++) {
        const struct bash_raw *raw = &script->raw[command->first + i];
        struct bash_text *text = bash_fields_add(script, &fields);
        if (text) *text = bash_expand_text(script, raw->start, raw->end, 0);
    }
    in->status = bash_test(script, fields.items, fields.n, true, command->offset);
}

static void run_arithmetic(struct interpreter *in, const struct bash_parsed *command)
{
    const struct bash_raw *raw = &in->script->raw[command->first];
    struct bash_text text = bash_expand_text(in->script, raw->start, raw->end, 0);
    struct bash_number number = bash_arithmetic(in->script, &text, command->offset);
    in->status = (struct bash_status){.truth = BASH_UNSURE, .cause = number.cause};
    if (number.known) in->status.truth = number.value ? BASH_YES : BASH_NO;
}

/* ---- control flow: each returns with in->at at the command to go on with ---- */

static void run_branch(struct interpreter *in, const struct bash_parsed *command, struct frame *frame,
                       struct bash_status status)
{
    restore_mode(in, frame);
    if (status.truth == BASH_NO) {
        in->at = command->link;
        return;
    }
    if (frame->maybe || status.truth != BASH_YES)
        become_unsure(in, status.truth == BASH_YES ? command->offset : status.cause);
    if (status.truth == BASH_YES)
        frame->taken = true;
    else
        frame->maybe = true;
    in->at++;
}

static void run_else(struct interpreter *in, const struct bash_parsed *command, struct frame *frame)
{
    uint32_t cause = in->script->mode_cause;
    restore_mode(in, frame);
    if (frame->taken) {
        in->at = frame->end;
        return;
    }
    if (command->kind == BASH_ELSE && frame->maybe) become_unsure(in, cause);
    in->status = (struct bash_status){.truth = BASH_YES};
    in->at++;
}

static void run_pattern(struct interpreter *in, const struct bash_parsed *command, struct frame *frame)
{
    struct bash *script = in->script;
    if (frame->taken) {
        in->at = frame->end;
        return;
    }
    const bash_cell *open = bash_first_unknown(&frame->subject);
    struct bash_status status = {.truth = open ? BASH_UNSURE : BASH_NO, .cause = open ? bash_cell_offset(*open) : 0};
    for (int i = 0; i < command->n && !open; i++) {
        const struct bash_raw *raw = &script->raw[command->first + i];
        struct bash_text pattern = bash_expand_text(script, raw->start, raw->end, 0);
        if (bash_matches(script, pattern.cells, pattern.n, frame->subject.cells, frame->subject.n))
            status.truth = BASH_YES;
    }
    run_branch(in, command, frame, status);
}

static void run_case(struct interpreter *in, const struct bash_parsed *command)
{
    struct bash *script = in->script;
    struct frame *frame = push_frame(in, FRAME_CASE, in->at, command->link);
    if (frame && command->n) {
        const struct bash_raw *raw = &script->raw[command->first];
        frame->subject = bash_expand_text(script, raw->start, raw->end, 0);
    }
    in->at = frame ? in->at + 1 : command->link;
}

/* The body is read once. A `for` takes its first value; other loops go through arguments or wait: they change nothing.
 */
static void run_loop(struct interpreter *in, const struct bash_parsed *command)
{
    struct bash *script = in->script;
    struct frame *frame = push_frame(in, FRAME_LOOP, in->at, command->link);
    if (!frame) {
        in->at = command->link;
        return;
    }
    const struct bash_raw *raw = &script->raw[command->first];
    struct bash_fields fields = {0};
    if (command->kind == BASH_FOR && command->n > 2)
        for (int i = 2; i < command->n; i++) bash_expand(script, raw[i].start, raw[i].end, true, &fields);
    bool known = fields.n > 0 && !bash_first_unknown(&fields.items[0]);
    if (known && script->mode == BASH_RUN && bash_is_name_start(script->source[raw->start])) {
        struct bash_variable *variable = bash_declare(script, raw->start, raw->end - raw->start);
        fields.n = 1;
        if (variable) {
            variable->values = fields;
            variable->is_set = true;
        }
    }
    if (!known) script->mode = BASH_KEEP;
    in->at++;
}

static void run_function_definition(struct interpreter *in, const struct bash_parsed *command)
{
    if (in->n_functions < BASH_MAX_FUNCTIONS) {
        const struct bash_raw *raw = &in->script->raw[command->first];
        in->functions[in->n_functions++] =
            (struct function){.name = bash_expand_text(in->script, raw->start, raw->end, 0), .body = in->at + 1};
    }
    in->at = in->script->parsed[in->at + 1].link + 1;
}

/* fi, done, esac, }. */
static void run_closer(struct interpreter *in)
{
    struct frame *top = in->n_frames ? &in->frames[in->n_frames - 1] : NULL;
    int32_t next = in->at + 1;
    if (top && top->end == in->at) {
        restore_mode(in, top);
        if (top->kind == FRAME_CALL) {
            next = top->back;
            in->status = ran(in->script->parsed[in->at].offset);
        }
        in->n_frames--;
    }
    in->at = next;
}

/* Whether && or || keep the command from running. */
static bool is_skipped(const struct interpreter *in, const struct bash_parsed *command)
{
    if (command->joined == BASH_AND) return in->status.truth == BASH_NO;
    if (command->joined == BASH_OR) return in->status.truth == BASH_YES || in->status.truth == BASH_RAN;
    return false;
}

static void run_plain(struct interpreter *in, const struct bash_parsed *command)
{
    enum bash_mode mode = in->script->mode;
    uint32_t cause = in->script->mode_cause;
    int32_t at = in->at;
    if (command->joined != BASH_ALWAYS && in->status.truth == BASH_UNSURE) become_unsure(in, in->status.cause);
    if (command->kind == BASH_TEST)
        run_test(in, command);
    else if (command->kind == BASH_ARITH)
        run_arithmetic(in, command);
    else
        run_simple(in, command);
    if (command->negated && in->status.truth <= BASH_YES)
        in->status.truth = in->status.truth == BASH_YES ? BASH_NO : BASH_YES;
    if (in->at != at) { /* a function was entered: its end restores the mode */
        in->frames[in->n_frames - 1].outer = mode;
        in->frames[in->n_frames - 1].outer_cause = cause;
        return;
    }
    in->script->mode = mode;
    in->script->mode_cause = cause;
    in->at++;
}

static void run_command(struct interpreter *in)
{
    const struct bash_parsed *command = &in->script->parsed[in->at];
    struct frame *frame = frame_of(in, command->opener);
    bool opens = command->link >= 0 && command->opener < 0;
    if (is_skipped(in, command) && (opens || command->kind <= BASH_ARITH)) {
        in->at = opens ? command->link + 1 : in->at + 1;
        return;
    }
    switch (command->kind) {
    case BASH_IF:
        in->at = push_frame(in, FRAME_IF, in->at, command->link) ? in->at + 1 : command->link;
        in->status = (struct bash_status){.truth = BASH_YES};
        break;
    case BASH_OPEN:
        push_frame(in, FRAME_GROUP, in->at, command->link);
        if (command->joined != BASH_ALWAYS && in->status.truth == BASH_UNSURE) become_unsure(in, in->status.cause);
        in->at++;
        break;
    case BASH_FOR:
    case BASH_WHILE: run_loop(in, command); break;
    case BASH_CASE: run_case(in, command); break;
    case BASH_FUNCTION: run_function_definition(in, command); break;
    case BASH_FI:
    case BASH_DONE:
    case BASH_ESAC:
    case BASH_CLOSE: run_closer(in); break;
    case BASH_THEN:
    case BASH_ELIF:
    case BASH_ELSE:
    case BASH_PATTERN:
        if (!frame)
            in->at++;
        else if (command->kind == BASH_THEN)
            run_branch(in, command, frame, in->status);
        else if (command->kind == BASH_PATTERN)
            run_pattern(in, command, frame);
        else
            run_else(in, command, frame);
        break;
    case BASH_DO: in->at++; break;
    default: run_plain(in, command); break;
    }
}

void bash_interpret(struct bash *script)
{
    struct interpreter *in = calloc(1, sizeof *in);
    if (!in) {
        script->spent = true;
        return;
    }
    in->script = script;
    while (in->at < script->n_parsed && !bash_step(script, 1)) run_command(in);
    free(in);
}
