/* Which rank of which launcher this process is, from the environment. */
#include <stdlib.h>
#include <string.h>

#include "oomcast/probe.h"

/* torchrun comes first: it runs inside what srun or mpirun started, and sets its own names there. */
static const struct {
    const char *by, *rank, *world, *local;
} launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK"},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
    {"hydra", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
};

enum { MOST_RANKS = 1 << 24 };

static bool number(const char *name, int *value)
{
    const char *text = getenv(name);
    char *end;
    if (!text || !text[0]) return false;
    const long n = strtol(text, &end, 10);
    if (*end || n < 0 || n > MOST_RANKS) return false;
    *value = (int)n;
    return true;
}

bool oc_find_rank(struct oc_launch *launch)
{
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        int rank, world;
        /* A shell of sbatch or salloc has a rank, and is alone. */
        if (!number(launchers[i].rank, &rank) || !number(launchers[i].world, &world)) continue;
        if (rank >= world || world < 2) continue;
        *launch = (struct oc_launch){.rank = rank, .world = world, .local = rank, .by = launchers[i].by};
        if (!number(launchers[i].local, &launch->local) && !number("SLURM_LOCALID", &launch->local))
            number("OMPI_COMM_WORLD_LOCAL_RANK", &launch->local);
        return true;
    }
    *launch = (struct oc_launch){.world = 1, .by = ""};
    return false;
}
