/* The live probe: when children start and stop, what they are told, and which results are believed. The child is a
 * shell script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "help_fake.h"
#include "help_screen.h"

static char folder[] = "/tmp/oomcast-live-XXXXXX", script[80], log_path[80];

/* A child that notes its arguments and then does what $FAKE says. */
static int make_script(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(script, sizeof script, "%s/child", folder);
    snprintf(log_path, sizeof log_path, "%s/log", folder);
    FILE *file = fopen(script, "w");
    if (!file) return -1;
    fprintf(file,
            "#!/bin/sh\necho \"$@\" >>%s\necho "
            "'{\"event\":\"progress\",\"phase\":\"backward\",\"step\":1,\"fraction\":0.5}'\n"
            "case $FAKE in\n"
            "done) echo "
            "'{\"event\":\"done\",\"plan\":\"'$FAKE_PLAN'\",'$FAKE_MORE'\"rank\":{\"params\":10,\"peak\":{\"moment\":"
            "\"step\","
            "\"allocated\":1024,"
            "\"requested\":1000,\"reserved\":2048,\"classes\":{\"weights\":512,\"activations\":512}}}}';;\n"
            "failed) echo '{\"event\":\"failed\",\"plan\":\"'$FAKE_PLAN'\",\"why\":\"no such luck\"}'; exit 3;;\n"
            "silent) exit 5;;\n"
            "slow) sleep 30;;\n"
            "esac\n",
            log_path);
    fclose(file);
    return chmod(script, 0755);
}

static int remove_script(void **state)
{
    (void)state;
    unlink(script);
    unlink(log_path);
    return rmdir(folder);
}

static int starts(void)
{
    int lines = 0, c;
    FILE *file = fopen(log_path, "r");
    if (!file) return 0;
    while ((c = fgetc(file)) != EOF) lines += c == '\n';
    fclose(file);
    return lines;
}

static void behave(const char *how, const char *plan)
{
    setenv("FAKE", how, 1);
    setenv("FAKE_PLAN", plan, 1);
    unsetenv("FAKE_MORE");
    unlink(log_path);
}

/* Ticks at the time `now` until the lane is quiet, at most five seconds. */
static void settle(struct oc_live *live, enum oc_lane lane, int64_t now)
{
    for (int i = 0; i < 1000 && oc_live_busy(live, lane); i++) {
        oc_live_tick(live, now);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    assert_false(oc_live_busy(live, lane));
}

static void a_child_starts_when_the_plan_stands_still(void **state)
{
    (void)state;
    struct oc_config config = oc_config_default();
    struct oc_live *live = oc_live_start(script);
    behave("done", "000000000000abcd");
    assert_int_equal(oc_live_wait(live, 0), -1);
    oc_live_want(live, OC_LANE_REAL, &config, 0x1111, 0, 0, 1000, false);
    assert_int_equal(oc_live_wait(live, 1000), 150);
    oc_live_tick(live, 1100);
    oc_live_want(live, OC_LANE_REAL, &config, 0xabcd, 0, 0, 1100, false); /* another key: the time begins anew */
    assert_int_equal(oc_live_wait(live, 1100), 150);
    oc_live_tick(live, 1249);
    assert_int_equal(oc_live_fd(live, OC_LANE_REAL), -1);
    assert_true(oc_live_tick(live, 1250));
    settle(live, OC_LANE_REAL, 2250);
    assert_int_equal(starts(), 1);
    const struct oc_result *result = oc_live_result(live, OC_LANE_REAL, 0xabcd);
    assert_non_null(result);
    assert_int_equal(result->status, OC_PROBE_DONE);
    assert_true(result->rank.peak.allocated == 1024 && result->rank.peak.classes[OC_ACTIVATIONS] == 512);
    assert_true(result->seconds >= 0 && result->seconds < 1.01);
    assert_null(oc_live_result(live, OC_LANE_REAL, 0x1111));
    oc_live_want(live, OC_LANE_REAL, &config, 0x2222, 0, 0, 3000, false);
    oc_live_want(live, OC_LANE_REAL, &config, 0xabcd, 0, 0, 3000, false); /* undo: known already */
    oc_live_tick(live, 9000);
    assert_false(oc_live_busy(live, OC_LANE_REAL));
    assert_int_equal(starts(), 1);
    oc_live_want(live, OC_LANE_REAL, &config, 0xabcd, 0, 0, 9000, true); /* asked for: again, at once */
    settle(live, OC_LANE_REAL, 9000);
    assert_int_equal(starts(), 2);
    oc_live_end(live);
}

static void a_change_stops_the_old_child(void **state)
{
    (void)state;
    struct oc_config config = oc_config_default();
    struct oc_live *live = oc_live_start(script);
    behave("slow", "1");
    oc_live_want(live, OC_LANE_DRY, &config, 1, 0, 0, 0, false);
    oc_live_tick(live, 60);
    assert_true(oc_live_fd(live, OC_LANE_DRY) >= 0);
    for (int i = 0; i < 400 && oc_live_fraction(live, OC_LANE_DRY) < 0.4; i++) {
        oc_live_tick(live, 60);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    }
    assert_string_equal(oc_live_phase(live, OC_LANE_DRY), "backward");
    behave("done", "2");
    oc_live_want(live, OC_LANE_DRY, &config, 2, 0, 0, 100, false);
    assert_int_equal(oc_live_fd(live, OC_LANE_DRY), -1);
    oc_live_tick(live, 160);
    settle(live, OC_LANE_DRY, 160);
    assert_null(oc_live_result(live, OC_LANE_DRY, 1));
    assert_int_equal(oc_live_result(live, OC_LANE_DRY, 2)->status, OC_PROBE_DONE);
    behave("slow", "3");
    oc_live_want(live, OC_LANE_DRY, &config, 3, 0, 0, 200, false);
    oc_live_tick(live, 300);
    oc_live_forget(live, OC_LANE_DRY);
    assert_false(oc_live_busy(live, OC_LANE_DRY));
    oc_live_end(live);
}

static void run_once(const char *how, const char *plan, const char *why)
{
    struct oc_config config = oc_config_default();
    struct oc_live *live = oc_live_start(how ? script : "/nonexistent/oomcast");
    behave(how ? how : "done", plan);
    oc_live_want(live, OC_LANE_REAL, &config, 0x77, 0, 0, 0, true);
    oc_live_tick(live, 0);
    settle(live, OC_LANE_REAL, 0);
    const struct oc_result *result = oc_live_result(live, OC_LANE_REAL, 0x77);
    assert_non_null(result);
    assert_int_equal(result->status, OC_PROBE_FAILED);
    assert_true(result->why[0]);
    if (why) assert_string_equal(result->why, why);
    int before = starts();
    oc_live_want(live, OC_LANE_REAL, &config, 0x77, 0, 0, 10000,
                 false); /* a failure is a result: not tried again by itself */
    oc_live_tick(live, 20000);
    assert_int_equal(starts(), before);
    oc_live_end(live);
}

static void what_goes_wrong_is_said_once(void **state)
{
    (void)state;
    run_once("done", "0000000000000078", "the probe ran another plan");
    run_once("failed", "0000000000000077", "no such luck");
    run_once("silent", "", NULL);
    run_once(NULL, "", NULL);
}

static void the_child_is_told_what_was_given(void **state)
{
    (void)state;
    struct oc_input input = oc_fake_input();
    struct oc_live *live = oc_live_start(script);
    char text[4096] = "";
    behave("done", "5");
    oc_live_want(live, OC_LANE_REAL, &input.c.config, 5, 3, 1234, 0, true);
    settle(live, OC_LANE_REAL, 0);
    FILE *file = fopen(log_path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    if (strncmp(text, "probe --json --full --device auto --polite --stage 3 --limit 1234 --set framework=megatron ",
                91) != 0)
        fail_msg("%s", text);
    assert_non_null(strstr(text, "--set parallel.tp=8 "));
    assert_non_null(strstr(text, "--set parallel.sp=true "));
    assert_non_null(strstr(text, "--set gpu=h100-80g"));
    assert_null(strstr(text, "recompute"));
    oc_live_end(live);
}

static void results_are_read_with_care(void **state)
{
    (void)state;
    struct oc_result result;
    static const char *const bad[] = {"",
                                      "{",
                                      "[]",
                                      "null",
                                      "{\"event\":\"progress\"}",
                                      "{\"event\":7}",
                                      "{\"event\":\"done\",\"plan\":\"1\"}",
                                      "{\"event\":\"done\",\"plan\":\"1\",\"rank\":{\"peak\":{}}}",
                                      "{\"event\":\"done\",\"plan\":\"1\",\"rank\":[]}"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(oc_result_read(bad[i], &result));
        assert_int_equal(result.status, OC_PROBE_FAILED);
        assert_true(result.why[0]);
    }
    assert_true(oc_result_read("{\"event\":\"oom\",\"plan\":\"ff\",\"why\":\"limit of 1 MiB\"}", &result));
    assert_int_equal(result.status, OC_PROBE_OOM);
    assert_int_equal(result.plan, 0xff);
    assert_string_equal(result.why, "limit of 1 MiB");
    assert_true(oc_result_read(
        "{\"event\":\"done\",\"plan\":\"ffffffffffffffff\",\"rank\":{\"peak\":{\"classes\":{\"weights\":-5,\"master\":"
        "1e300,"
        "\"gradients\":\"x\",\"optimizer\":9007199254740992}},\"moments\":[{\"iteration\":\"steady\",\"name\":\"step\","
        "\"allocated\":12,\"classes\":{}},{\"name\":\"nosuch\"},7]}}",
        &result));
    assert_true(result.plan == UINT64_MAX);
    assert_int_equal(result.rank.peak.classes[OC_WEIGHTS], 0);
    assert_int_equal(result.rank.peak.classes[OC_MASTER], 0);
    assert_int_equal(result.rank.peak.classes[OC_GRADIENTS], 0);
    assert_int_equal(result.rank.peak.classes[OC_OPTIMIZER], 9007199254740992);
    assert_int_equal(result.rank.moments[OC_STEADY][OC_M_STEP].allocated, 12);
    assert_false(result.rank.moments[OC_FIRST][OC_M_STEP].exists);
}

/* The state and its lanes together: shapes are cut, results belong to their plan, undo brings them back. */
static void the_screen_shows_only_what_belongs_to_its_plan(void **state)
{
    (void)state;
    struct oc_input input = oc_fake_input();
    struct oc_app *app = calloc(1, sizeof *app);
    struct oc_error error;
    char plan[24];
    assert_true(oc_app_start(app, &oc_fake_model, &input, &error));
    app->live = oc_live_start(script);
    app->probe_auto = true;
    behave("done", "0");
    oc_app_live(app, 0);
    assert_true(oc_live_busy(app->live, OC_LANE_REAL) && oc_live_busy(app->live, OC_LANE_DRY));
    snprintf(plan, sizeof plan, "%016llx", (unsigned long long)app->shape.answer->plan.hash);
    behave("done", plan);
    oc_live_tick(app->live, 1000);
    settle(app->live, OC_LANE_REAL, 1000);
    assert_non_null(oc_app_measured(app));
    assert_int_equal(app->shape.answer->plan.c.model_layers, 2);
    oc_app_key(app, 'l');
    assert_null(oc_app_measured(app));
    assert_false(oc_app_live(app, 1500));
    oc_app_key(app, 'u');
    assert_true(oc_app_live(app, 2000)); /* known: it can be drawn at once */
    assert_non_null(oc_app_measured(app));
    assert_false(oc_live_busy(app->live, OC_LANE_REAL));
    oc_panel_show(&app->panel, OC_OPT_parallel_pp); /* the fake probe cannot run a pipeline */
    oc_app_key(app, 'l');
    oc_app_live(app, 3000);
    assert_null(oc_app_simulated(app));
    assert_false(oc_live_busy(app->live, OC_LANE_DRY));
    assert_non_null(app->shape.reason);
    oc_app_end(app);
    free(app);
}

/* Where the child ran is said as it says it: never a GPU that it did not use, never host memory for one that it did. */
static void the_screen_says_where_it_was_measured(void **state)
{
    (void)state;
    static const struct {
        const char *more, *said, *unsaid;
    } cases[] = {
        {"\"device\":\"cuda\",\"gpu\":{\"name\":\"NVIDIA_H200\"},", "measured on NVIDIA_H200, 0.0 s", "host memory"},
        {"\"device\":\"host\",", "measured in host memory, 0.0 s", "0.0 s;"},
        {"\"device\":\"host\",\"fallback\":\"three_others_compute_on_the_GPU_that_there_is_on_this_machine\",",
         "measured in host memory, 0.0 s; three_others_compute_on_the_GPU_that_there_is_on_this_machine", "cuda"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct help_screen *screen = HELP_SCREEN(160, 48, "framework=pytorch", "model.layers=2", "model.hidden=64",
                                                 "model.heads=4", "model.vocab=128", "batch.seq=64");
        struct oc_app *app = &screen->app;
        char plan[24];
        app->live = oc_live_start(script);
        app->probe_auto = app->live_dirty = true;
        behave("slow", "0");
        oc_app_live(app, 0);
        if (app->shape.reason) fail_msg("%s", app->shape.reason);
        snprintf(plan, sizeof plan, "%016llx", (unsigned long long)app->shape.answer->plan.hash);
        behave("done", plan);
        setenv("FAKE_MORE", cases[i].more, 1);
        oc_live_tick(app->live, 1000);
        settle(app->live, OC_LANE_REAL, 1000);
        help_drawn(screen, cases[i].said, true);
        help_drawn(screen, cases[i].unsaid, false);
        help_drawn(screen, i ? "Measured in host memory, " : "Measured on NVIDIA_H200, ", true); /* over the bars */
        assert_true(oc_canvas_resize(&screen->canvas, 80, 24));
        help_drawn(screen, "three_others_compute_on_the_GPU_that_there_is_on_this_machine",
                   false); /* no room for the reason */
        help_screen_free(screen);
    }
}

/* Both lanes run the stage that the screen shows beside them: the last one here, whose logits are large. What another
 * stage holds is not shown. */
static void the_fullest_stage_runs(void **state)
{
    (void)state;
    struct help_screen *screen =
        HELP_SCREEN(160, 48, "framework=megatron", "model.layers=4", "model.hidden=64", "model.heads=4",
                    "model.vocab=32000", "batch.seq=512", "batch.micro=4", "parallel.pp=2", "parallel.world=2",
                    "recompute=full", "batch.global=8", "model.tied=true");
    struct oc_app *app = &screen->app;
    char plan[24], text[8192];
    oc_app_settle_all(app);
    assert_int_equal(app->answer->verdict.worst_stage, 1);
    app->live = oc_live_start(script);
    app->probe_auto = app->live_dirty = true;
    snprintf(plan, sizeof plan, "%016llx", (unsigned long long)app->answer->plan.hash);
    behave("done", plan);
    assert_false(oc_app_live(app, 0));
    oc_live_tick(app->live, 1000);
    settle(app->live, OC_LANE_DRY, 1000);
    settle(app->live, OC_LANE_REAL, 1000);
    assert_int_equal(starts(), 2);
    FILE *file = fopen(log_path, "r");
    assert_non_null(file);
    while (fgets(text, sizeof text, file)) assert_non_null(strstr(text, " --stage 1 "));
    fclose(file);
    assert_int_equal(oc_live_result(app->live, OC_LANE_DRY, app->answer->plan.hash)->status, OC_PROBE_DONE);
    assert_null(oc_app_simulated(app)); /* this child said that it ran stage 0 */
    help_screen_free(screen);
}

/* In the step view each moment's figure is that of the dry run too, and the probe's at its size: 0 bytes apart. */
static void assert_moments(const char *saved)
{
    char path[104], text[1024];
    int moments = 0;
    bool below = false;
    snprintf(path, sizeof path, "%s.step", saved);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(text, sizeof text, file)) {
        static const char *const names[] = {" forward ", " loss ", " backward ", " reduce ",
                                            " clip ",    " step ", " idle "};
        below |= strstr(text, "Steady, GiB") != NULL;
        for (size_t i = 0; below && i < sizeof names / sizeof names[0]; i++) {
            double model, simulated;
            int apart, probe;
            const char *row = strstr(text, names[i]);
            if (!row || sscanf(row + strlen(names[i]), "%lf %lf %d %d", &model, &simulated, &apart, &probe) != 4)
                continue;
            assert_true(model > 0 && model == simulated && apart == 0 && probe == 0);
            moments++;
        }
    }
    fclose(file);
    unlink(path);
    assert_true(moments >= 5);
}

/* The real program, its real children: what was simulated and measured stands beside the model of the same stage and
 * the same shape, and is the same to the byte. The fullest stage is the last of these, and the first. */
static void model_and_probe_agree_on_the_screen(void **state)
{
    (void)state;
    static const char *const runs[] = {
        "--set model.layers=8 --set tp=1 --set batch.micro=4 --set recompute=full --set optimizer=sgd",
        "--set tp=2 --set optimizer=adam"};
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        char keys[96], saved[96], command[768], text[1024], difference[32] = "", where[16] = "";
        bool measured = false, rest = false;
        snprintf(keys, sizeof keys, "%s/keys", folder);
        snprintf(saved, sizeof saved, "%s/saved", folder);
        FILE *file = fopen(keys, "w");
        fprintf(file, ":size 160 48\n:wait\n:save-screen %s\n2\n:save-screen %s.step\n", saved, saved);
        fclose(file);
        snprintf(command, sizeof command,
                 "%s --no-display --script %s --set framework=megatron --set model.name=llama-3-8b --set pp=4 "
                 "--set world=8 --set batch.global=16 --set batch.seq=4096 --set precision=bf16 %s",
                 OOMCAST_BIN, keys, runs[i]);
        assert_int_equal(system(command), 0);
        file = fopen(saved, "r");
        while (fgets(text, sizeof text, file)) {
            const char *row = strstr(text, "= allocated"), *stage = strstr(text, ", GiB");
            if (row) sscanf(row, "= allocated %*s %*s %*s %31s", difference);
            if (stage && stage - text > 7) snprintf(where, sizeof where, "%.7s", stage - 7);
            measured |= strstr(text, "differs by 0 B") != NULL;
            rest |= strstr(text, "MiB of unsplit blocks") != NULL;
        }
        fclose(file);
        assert_string_equal(difference, "0");
        if (i == 1) assert_true(rest); /* in the model's own figure */
        assert_string_equal(where, i == 0 ? "stage 3" : "stage 0");
        assert_true(measured);
        assert_moments(saved);
        unlink(keys);
        unlink(saved);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_starts_when_the_plan_stands_still),
        cmocka_unit_test(a_change_stops_the_old_child),
        cmocka_unit_test(what_goes_wrong_is_said_once),
        cmocka_unit_test(the_child_is_told_what_was_given),
        cmocka_unit_test(results_are_read_with_care),
        cmocka_unit_test(the_screen_shows_only_what_belongs_to_its_plan),
        cmocka_unit_test(the_screen_says_where_it_was_measured),
        cmocka_unit_test(the_fullest_stage_runs),
        cmocka_unit_test(model_and_probe_agree_on_the_screen),
    };
    return cmocka_run_group_tests(tests, make_script, remove_script);
}
