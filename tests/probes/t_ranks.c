/* Many ranks: who this process is under each launcher, one short line from every rank, a file for each, and all of them
 * together again, with those that are missing. With OpenMPI for real where it is installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "oomcast/probe.h"
#include "tests/probes/help_process.h"

static char text[1 << 18], folder[64];

/* What a command prints; returns its exit status. */
static int run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int run(const char *format, ...)
{
    char command[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return help_run(command, text, sizeof text);
}

#define PROBE "'" OOMCAST_BIN "' probe"
#define SLICE                                                                                                          \
    "--set framework=megatron --set model.layers=4 --set model.hidden=256 --set model.heads=4 --set model.vocab=1000 " \
    "--set batch.seq=64 --set parallel.tp=2 --set parallel.pp=2 --set kernels.loss=te-fused --set gpu=none"

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/oomcast-ranks-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return run("rm -rf '%s'", folder);
}

/* ---- Who this is ---- */

static const char *const names[] = {"RANK",
                                    "WORLD_SIZE",
                                    "LOCAL_RANK",
                                    "OMPI_COMM_WORLD_RANK",
                                    "OMPI_COMM_WORLD_SIZE",
                                    "OMPI_COMM_WORLD_LOCAL_RANK",
                                    "SLURM_PROCID",
                                    "SLURM_NTASKS",
                                    "SLURM_LOCALID",
                                    "PMI_RANK",
                                    "PMI_SIZE",
                                    "MPI_LOCALRANKID"};

static void launchers_are_known_by_their_variables(void **state)
{
    (void)state;
    static const struct {
        const char *set[8][2];
        const char *by;
        int rank, world, local;
    } rows[] = {
        {{{NULL}}, "", 0, 1, 0},
        {{{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}}, "torchrun", 5, 8, 1},
        {{{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "3"}},
         "openmpi",
         3,
         4,
         3},
        {{{"SLURM_PROCID", "9"}, {"SLURM_NTASKS", "16"}, {"SLURM_LOCALID", "1"}}, "slurm", 9, 16, 1},
        {{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}, "hydra", 1, 2, 1},
        /* torchrun under srun: its own ranks count */
        {{{"SLURM_PROCID", "0"},
          {"SLURM_NTASKS", "2"},
          {"SLURM_LOCALID", "0"},
          {"RANK", "6"},
          {"WORLD_SIZE", "16"},
          {"LOCAL_RANK", "6"}},
         "torchrun",
         6,
         16,
         6},
        /* a shell of sbatch or salloc is not a rank of many */
        {{{"SLURM_PROCID", "0"}}, "", 0, 1, 0},
        {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}, "", 0, 1, 0},
        {{{"RANK", "8"}, {"WORLD_SIZE", "8"}}, "", 0, 1, 0},
        {{{"RANK", "x"}, {"WORLD_SIZE", "8"}}, "", 0, 1, 0},
        {{{"RANK", "-1"}, {"WORLD_SIZE", "8"}}, "", 0, 1, 0},
        {{{"RANK", "1"}, {"WORLD_SIZE", "99999999999999999999"}}, "", 0, 1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct oc_launch launch;
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) unsetenv(names[n]);
        for (int n = 0; n < 8 && rows[i].set[n][0]; n++) setenv(rows[i].set[n][0], rows[i].set[n][1], 1);
        assert_int_equal(oc_find_rank(&launch), rows[i].world > 1);
        assert_string_equal(launch.by, rows[i].by);
        assert_int_equal(launch.rank, rows[i].rank);
        assert_int_equal(launch.world, rows[i].world);
        assert_int_equal(launch.local, rows[i].local);
    }
    for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) unsetenv(names[n]);
}

/* ---- Lines ---- */

/* Each line is whole, short, and says its length. */
static int count_lines(void)
{
    int lines = 0;
    for (char *line = text, *end; *line; line = end + 1, lines++) {
        end = strchr(line, '\n');
        assert_non_null(end);
        assert_true(end - line < PIPE_BUF);
        *end = '\0';
        const char *length = strstr(line, "\"length\":\"");
        assert_non_null(length);
        assert_int_equal(strtol(length + 10, NULL, 10), end - line);
        *end = '\n';
    }
    return lines;
}

static void a_rank_takes_its_stage_and_says_one_line(void **state)
{
    (void)state;
    for (int rank = 0; rank < 4; rank++) {
        char stage[32], launch[128];
        assert_int_equal(run("RANK=%d WORLD_SIZE=4 LOCAL_RANK=%d " PROBE " --json --device dry " SLICE, rank, rank), 0);
        assert_int_equal(count_lines(), 1);
        snprintf(stage, sizeof stage, "\"stage\":%d", rank / 2);
        snprintf(launch, sizeof launch, "\"rank\":%d,\"world\":4,\"local\":%d,\"by\":\"torchrun\"", rank, rank);
        assert_non_null(strstr(text, stage));
        assert_non_null(strstr(text, launch));
    }
}

static void ranks_are_merged_and_missing_ones_named(void **state)
{
    (void)state;
    for (int rank = 0; rank < 8; rank++)
        if (rank != 3)
            assert_int_equal(run("SLURM_PROCID=%d SLURM_NTASKS=8 SLURM_LOCALID=0 " PROBE
                                 " --json --device dry --out '%s' " SLICE " >>'%s/stream'",
                                 rank, folder, folder),
                             0);
    assert_int_equal(run(PROBE " --merge '%s'", folder), 3);
    assert_non_null(strstr(text, "7 of 8 ranks have left a result; missing is rank 3."));
    assert_non_null(strstr(text, "  0-2 "));
    assert_non_null(strstr(text, "  4-7 "));
    assert_int_equal(run(PROBE " --merge - --json <'%s/stream'", folder), 3);
    assert_non_null(strstr(text, "\"missing\":[3]"));
    assert_non_null(strstr(text, "\"bad_lines\":0"));
    /* A line in pieces is counted, and its rank is missing. */
    assert_int_equal(run("sed '5s/^.\\{100\\}//' '%s/stream' | " PROBE " --merge -", folder), 3);
    assert_non_null(strstr(text, "missing are ranks 3, 5."));
    assert_non_null(strstr(text, "1 lines were torn"));
    assert_int_equal(run(PROBE " --merge '%s/nowhere' 2>&1", folder), 2);
}

static void a_rank_that_failed_says_why(void **state)
{
    (void)state;
    assert_int_equal(
        run("RANK=0 WORLD_SIZE=2 " PROBE " --json --device host --full --limit 4MiB --out '%s' " SLICE, folder), 3);
    assert_int_equal(run("RANK=1 WORLD_SIZE=2 " PROBE " --json --device dry --out '%s' " SLICE, folder), 0);
    assert_int_equal(run(PROBE " --merge '%s'", folder), 3);
    assert_non_null(strstr(text, "2 of 2 ranks"));
    assert_non_null(strstr(text, "oom"));
    assert_non_null(strstr(text, "no room for"));
}

/* ---- For real ---- */

static void openmpi_runs_four(void **state)
{
    (void)state;
    if (run("command -v mpirun >/dev/null 2>&1") != 0) skip();
    static const char launch[] = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe "
                                 "--mca btl_vader_single_copy_mechanism none -n 4 ";
    for (int i = 0; i < 3; i++) { /* lines of four at once come whole */
        assert_int_equal(run("%s" PROBE " --json --device dry --out '%s' " SLICE " 2>/dev/null", launch, folder), 0);
        assert_int_equal(count_lines(), 4);
        for (int rank = 0; rank < 4; rank++) {
            char said[64];
            snprintf(said, sizeof said, "\"rank\":%d,\"world\":4", rank);
            assert_non_null(strstr(text, said));
        }
    }
    assert_int_equal(run(PROBE " --merge '%s'", folder), 0);
    assert_non_null(strstr(text, "4 of 4 ranks have left a result."));
    assert_non_null(strstr(text, "  0-1 "));
    /* In real memory, each rank its own slice. */
    assert_int_equal(
        run("%s" PROBE " --json --device host --steps 2 " SLICE " 2>/dev/null | " PROBE " --merge -", launch), 0);
    assert_non_null(strstr(text, "4 of 4 ranks have left a result."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launchers_are_known_by_their_variables),
        cmocka_unit_test(a_rank_takes_its_stage_and_says_one_line),
        cmocka_unit_test_setup_teardown(ranks_are_merged_and_missing_ones_named, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(a_rank_that_failed_says_why, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(openmpi_runs_four, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
