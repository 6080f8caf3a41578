/* The state of the screen and what keys do to it. Nothing here knows a terminal: oc_app_key() changes the state,
 * oc_app_draw() draws it on a canvas, and the loop in screen.c does the waiting.
 *
 * Ownership: oc_app_start() allocates, oc_app_end() releases. The input and the model table are borrowed. */
#ifndef OOMCAST_APP_H
#define OOMCAST_APP_H

#include "oomcast/model.h"
#include "oomcast/probe.h"
#include "tui/screen/canvas.h"
#include "tui/screen/host.h"
#include "tui/screen/keys.h"
#include "tui/screen/live.h"
#include "tui/screen/panel.h"
#include "tui/screen/prompt.h"
#include "tui/screen/undo.h"

struct oc_app;
struct oc_fixes; /* tui/views/fixes.h */

/* What the screen asks of the model; tests bring their own. */
struct oc_app_model {
    bool (*resolve)(const struct oc_config *config, struct oc_plan *plan, struct oc_warnings *warnings,
                    struct oc_error *error);
    bool (*answer)(const struct oc_config *config, struct oc_answer *answer, struct oc_ledger *ledgers,
                   struct oc_alloc *alloc, struct oc_error *error);
    void (*explain)(const struct oc_answer *answer, struct oc_reason *reason);
    struct oc_range (*device)(const struct oc_plan *plan, const struct oc_rank *rank);
    void (*fit)(struct oc_plan *plan, uint64_t bytes, double seconds, char *what, int size);
    const char *(*covers)(const struct oc_plan *plan);
    bool (*estimate)(const struct oc_plan *plan, int64_t stage, struct oc_ledger *ledger, struct oc_error *error);
    void (*compare)(const struct oc_side *a, const struct oc_side *b, int moment, struct oc_comparison *comparison);
    bool (*advise)(const struct oc_config *config, struct oc_alloc *alloc, struct oc_advices *advices,
                   struct oc_error *error);
    /* Where both are there, the frame after a key waits for the replay of one stage alone; the others follow when no
     * key is waiting. NULL: `answer` replays all of them. */
    bool (*reserve)(const struct oc_plan *plan, const struct oc_ledger *ledger, struct oc_alloc *alloc,
                    struct oc_rank *rank);
    void (*judge)(const struct oc_plan *plan, const struct oc_rank *ranks, int n_ranks, struct oc_verdict *verdict);
};

extern const struct oc_app_model oc_real_model;

enum oc_mode {
    OC_MODE_NORMAL,
    OC_MODE_PROMPT,
    OC_MODE_HELP,
    OC_MODE_WHY,
    OC_MODE_FIXES,  /* the list of app->fixes */
    OC_MODE_TEXT,   /* a text that was asked for, app->shown */
    OC_MODE_CONFIRM /* y or n, to app->confirm */
};

/* Something that is asked on the prompt's row. */
struct oc_question {
    const char *label; /* before the text; NULL: the key of the option that has the focus */
    const char *hint;  /* on the hint row */
    bool (*done)(struct oc_app *app, const char *text);  /* false: it stays open, and app->message says why */
    void (*typed)(struct oc_app *app, const char *text); /* after each key; NULL = nothing happens */
    void (*left)(struct oc_app *app);                    /* Esc; NULL = nothing happens */
    bool (*key)(struct oc_app *app, int key);            /* before the prompt: true when it was taken; NULL = none */
};

enum { OC_HISTORY_MAX = 40 };

/* Commands that were typed. */
struct oc_history {
    char lines[OC_HISTORY_MAX][OC_PROMPT_MAX];
    int n, at; /* how many, and which is shown; n: none */
};

enum { OC_VIEWS_MAX = 8 };

/* A ledger that is kept for views: of which plan, and of which stage. */
struct oc_kept_ledger {
    uint64_t plan; /* hash; 0 = none */
    int64_t stage;
    struct oc_ledger *ledger;
};

/* What the probe's numbers are compared with: the model at the probe's own shape.
 */
struct oc_probe_shape {
    uint64_t of; /* hash of the plan it was made for; 0 = none */
    const char
        *uncovered; /* why the plan itself cannot be probed, or NULL; the smaller shape is then under PyTorch's rules */
    const char *reason;       /* why not even a smaller shape can, or NULL */
    struct oc_answer *whole;  /* the model at full size: for the dry run */
    struct oc_config config;  /* of the smaller shape that the probe runs */
    struct oc_answer *answer; /* the model at that shape */
};

struct oc_app {
    const struct oc_app_model *model;
    const struct oc_input *input; /* as it was started with, or `opened` */
    struct oc_input *opened;
    const struct oc_app_host *host; /* NULL: no files and no themes */
    struct oc_config saved;         /* as it was opened or saved last */
    char session[192];              /* where it was saved last, "" = nowhere */
    struct oc_alloc *alloc[2];      /* that oc_reserve() replays through: fixed and expandable segments */
    struct oc_live *live;           /* NULL: no probe runs */

    struct oc_undo undo;
    struct oc_case first;     /* as it was opened */
    struct oc_case answered;  /* what `answer` is of: the last case that resolved */
    struct oc_answer *answer; /* of the last case that resolved */
    struct oc_answer *spare;  /* the next one is computed here, so that a failure leaves the last one standing */
    struct oc_reason reason;
    bool replayed[OC_MAX_STAGES]; /* stages of the answer whose reserved bytes are known */
    int unsettled;                /* how many are not */
    bool stale;                   /* the current case does not resolve: answer is of an earlier one, error says why */
    struct oc_error error;

    struct oc_answer *base; /* frozen to compare with */
    struct oc_case base_case;
    bool has_base;
    struct oc_kept_ledger *kept; /* [0] of the answer, [1] of the base, [2] to replay */

    struct oc_probe_shape shape;
    uint64_t probe_bytes; /* how large the real probe may be */
    double probe_seconds;
    bool probe_auto; /* it runs by itself after a change */
    bool live_dirty; /* the lanes do not yet know the current plan */
    bool probe_now;  /* p was pressed */

    struct oc_panel panel;
    bool in_panel; /* the panel has the keys though the view has keys of its own; where only one fits, it is shown */
    int view;      /* index in oc_views */
    void *view_states[OC_VIEWS_MAX]; /* what each view remembers: its cursor, its order */
    bool zoom;                       /* only what changes is drawn: the axis leaves out what is always there */
    int64_t stage;                   /* of the pipeline, that views look at; -1 = the worst */
    enum oc_mode mode;
    struct oc_prompt prompt;
    const struct oc_question *question; /* what the prompt is for */
    struct oc_history history;
    char asked[OC_PROMPT_MAX]; /* the command that asks before it does something */
    char confirm[320];         /* what it asks */
    char *shown;               /* the text of OC_MODE_TEXT */
    char shown_title[80];
    char searched[64]; /* what was looked for last */
    struct oc_panel before_search;
    struct oc_fixes *fixes; /* of OC_MODE_FIXES; NULL until it is first opened */
    int scroll;             /* of the open overlay */
    char message[400];      /* on the status row */
    bool message_bad;
    bool repaint, quit;
};

/* The configurations a probe may take by itself, and on `p`. */
#define OC_PROBE_AUTO_BYTES    (256u << 20)
#define OC_PROBE_AUTO_SECONDS  3.0
#define OC_PROBE_LARGE_BYTES   (1u << 30)
#define OC_PROBE_LARGE_SECONDS 10.0

/* Opens on an input. False with the reason when its case does not resolve or memory is short. */
bool oc_app_start(struct oc_app *app, const struct oc_app_model *model, const struct oc_input *input,
                  struct oc_error *error);
void oc_app_end(struct oc_app *app);

/* One key, or one request by itself. */
void oc_app_key(struct oc_app *app, int key);
void oc_app_request(struct oc_app *app, enum oc_request request);

/* Replays one more stage of the answer. True when that was the last one and the screen may look different now; false
 * when there is more to do, or nothing (app->unsettled says which). */
bool oc_app_settle(struct oc_app *app);

/* Replays all that are left. */
void oc_app_settle_all(struct oc_app *app);

/* Tells the lanes about the current plan when it has changed. Call after drawing: it computes the probe's shape. The
 * flags live_dirty and probe_now say whether there is anything to tell; it clears them. True when results of this plan
 * are known from before: they can be drawn now. */
bool oc_app_live(struct oc_app *app, int64_t now);

/* The current case, and the option that has the focus (OC_OPTIONS on a section's head). */
const struct oc_case *oc_app_case(const struct oc_app *app);
enum oc_option_id oc_app_option(const struct oc_app *app);

/* The stage that views look at, of the answer: the chosen one, or the worst. */
int64_t oc_app_stage(const struct oc_app *app);

/* Chooses the stage `by` further; nothing happens past the ends. */
void oc_app_move_stage(struct oc_app *app, int by);

/* The ledger of one stage of app->answer or of app->base, made when it is asked for and kept until another is. NULL
 * when it cannot be made. */
const struct oc_ledger *oc_app_ledger(const struct oc_app *app, const struct oc_answer *answer, int64_t stage);

/* Opens the prompt. */
void oc_app_ask(struct oc_app *app, const struct oc_question *question, const char *text);

/* A line for the status row. */
void oc_app_say(struct oc_app *app, bool bad, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Makes a configuration the current one in one step of the history: every option that differs counts as changed by
 * hand. `what` is said of it, with what it did to the peak. */
void oc_app_take(struct oc_app *app, const struct oc_config *config, const char *what);

/* Shows a view by its index in oc_views, and gives it the keys. */
void oc_app_view(struct oc_app *app, int view);

/* Whether keys go to the view before they go to the panel. */
bool oc_app_in_view(const struct oc_app *app);

/* Shows a text over the whole screen. */
void oc_app_show(struct oc_app *app, const char *title, const char *text);

/* Asks y or n; on y the command that asks runs again, with force. */
void oc_app_confirm(struct oc_app *app, const char *question);

/* Whether the configuration is another than was opened or saved last. */
bool oc_app_unsaved(const struct oc_app *app);

/* Opens another file in place of this one; the history begins anew, the base stays. False when it cannot be read or
 * does not resolve, and nothing has changed then. */
bool oc_app_open(struct oc_app *app, const char *path, struct oc_error *error);

/* Whether two configurations give the same values. */
bool oc_config_same(const struct oc_config *a, const struct oc_config *b);

/* Whether the panel has the keys that move and change, alone or beside the view. */
bool oc_app_in_panel(const struct oc_app *app);

/* Lets views see that something may be different now. */
void oc_app_changed(struct oc_app *app);

/* Answers the current case again, after it was changed in place. */
void oc_app_recompute(struct oc_app *app);

/* The dry run of the plan on the screen, and the real run of its probe shape; NULL while they are unknown. */
const struct oc_result *oc_app_simulated(const struct oc_app *app);
const struct oc_result *oc_app_measured(const struct oc_app *app);

/* Draws everything; in draw.c. */
void oc_app_draw(struct oc_app *app, struct oc_canvas *canvas);

#endif
