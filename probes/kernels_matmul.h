/* The one kernel behind every matrix product: 64 x 64 tiles, 16 deep, fp32 accumulation, any strides (so any
 * transposition). Part of kernels.h. 256 lanes each own a 4 x 4 square of the tile. */
#ifndef OC_PROBES_KERNELS_MATMUL_H
#define OC_PROBES_KERNELS_MATMUL_H

enum { OC_TILE = 64, OC_TILE_DEPTH = 16, OC_SQUARE = 4, OC_TILE_PITCH = OC_TILE + 4 /* fewer bank conflicts */ };

/* Loads a[first.., k..] (or b[k.., first..]) into shared[depth][OC_TILE_PITCH], zero outside the matrix. `along` is the
 * stride along the tile's edge, `deep` the one along k: lanes run along whichever is contiguous. */
OC_FN void oc_tile_stage(float *shared, struct oc_array array, int64_t start, int64_t along, int64_t deep,
                         int64_t first, int64_t count, int64_t k, int64_t inner, int lane)
{
    for (int i = lane; i < OC_TILE * OC_TILE_DEPTH; i += OC_TILE_LANES) {
        int edge = deep == 1 ? i / OC_TILE_DEPTH : i % OC_TILE, depth = deep == 1 ? i % OC_TILE_DEPTH : i / OC_TILE;
        int inside = first + edge < count && k + depth < inner;
        shared[depth * OC_TILE_PITCH + edge] =
            inside ? oc_load(array, start + (first + edge) * along + (k + depth) * deep) : 0.0f;
    }
}

OC_FN void oc_matmul_tile(const struct oc_op_matmul *op, int64_t tile)
{
    OC_SHARED float shared_a[OC_TILE_DEPTH * OC_TILE_PITCH];
    OC_SHARED float shared_b[OC_TILE_DEPTH * OC_TILE_PITCH];
    OC_PRIVATE(float, sums, OC_SQUARE *OC_SQUARE);

    int64_t down = (op->rows + OC_TILE - 1) / OC_TILE, across = (op->columns + OC_TILE - 1) / OC_TILE;
    int64_t column0 = tile % across * OC_TILE, row0 = tile / across % down * OC_TILE;
    int64_t sample = tile / across / down / op->heads, head = tile / across / down % op->heads;
    int64_t start_a = sample * op->a.sample + head * op->a.head, start_b = sample * op->b.sample + head * op->b.head;
    int64_t start_c = sample * op->c.sample + head * op->c.head;

    OC_FOR_LANES(lane)
    {
        OC_UNROLL for (int i = 0; i < OC_SQUARE * OC_SQUARE; i++) OC_MINE(sums, lane)[i] = 0.0f;
    }
    for (int64_t k = 0; k < op->inner; k += OC_TILE_DEPTH) {
        OC_FOR_LANES(lane)
        {
            oc_tile_stage(shared_a, op->a.array, start_a, op->a.row, op->a.column, row0, op->rows, k, op->inner, lane);
            oc_tile_stage(shared_b, op->b.array, start_b, op->b.column, op->b.row, column0, op->columns, k, op->inner,
                          lane);
        }
        OC_SYNC();
        OC_FOR_LANES(lane)
        {
            int r = lane / 16 * OC_SQUARE, c = lane % 16 * OC_SQUARE;
            if (row0 + r >= op->rows || column0 + c >= op->columns) continue; /* the square lies outside */
            OC_UNROLL for (int depth = 0; depth < OC_TILE_DEPTH; depth++)
            {
                const float *a = shared_a + depth * OC_TILE_PITCH + r, *b = shared_b + depth * OC_TILE_PITCH + c;
                OC_UNROLL for (int i = 0; i < OC_SQUARE; i++)
                {
                    OC_UNROLL for (int j = 0; j < OC_SQUARE; j++) OC_MINE(sums, lane)[i * OC_SQUARE + j] += a[i] * b[j];
                }
            }
        }
        OC_SYNC();
    }
    OC_FOR_LANES(lane)
    {
        int64_t r = row0 + lane / 16 * OC_SQUARE, c = column0 + lane % 16 * OC_SQUARE;
        OC_UNROLL for (int i = 0; i < OC_SQUARE; i++)
        {
            OC_UNROLL for (int j = 0; j < OC_SQUARE; j++)
            {
                if (r + i < op->rows && c + j < op->columns) {
                    int64_t at = start_c + (r + i) * op->c.row + (c + j) * op->c.column;
                    float before = op->accumulate ? oc_load(op->c.array, at) : 0.0f;
                    oc_store(op->c.array, at, before + OC_MINE(sums, lane)[i * OC_SQUARE + j]);
                }
            }
        }
    }
}

#endif
