/* What differs between a CPU loop and a CUDA thread, as few macros as the kernel bodies need. These are the CPU's; a
 * CUDA C file defines its own before it includes kernels.h.
 *
 * A row is shared by `lanes` lanes, of which this is number `lane`: on the CPU lane 0 of 1. A tile is shared by
 * OC_TILE_LANES lanes: the CPU runs each stretch between two OC_SYNC() for all of them in turn, so what a lane carries
 * across OC_SYNC() is declared with OC_PRIVATE and found with OC_MINE. */
#ifndef OC_PROBES_LANES_H
#define OC_PROBES_LANES_H

enum { OC_TILE_LANES = 256 };

#ifndef OC_SHARED
#define OC_SHARED
#define OC_SYNC()                     ((void)0)
#define OC_FOR_LANES(lane)            for (int lane = 0; lane < OC_TILE_LANES; lane++)
#define OC_PRIVATE(type, name, count) type name[OC_TILE_LANES][count]
#define OC_MINE(name, lane)           name[lane]
#define OC_UNROLL
#define OC_HEAD_DIMS_PER_LANE    256                /* the largest head_dim of the flash kernels, over one lane */
#define OC_ADD(to, value)        (*(to) += (value)) /* other rows may be adding to it */
#define OC_FOR_MY_DIMS(i, count) for (int i = 0; i < (count); i++)
OC_FN void oc_lanes_wait(void) {}
OC_FN float oc_lanes_sum(float value)
{
    return value;
}
OC_FN float oc_lanes_max(float value)
{
    return value;
}
#endif

#endif
