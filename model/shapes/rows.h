/* Shorthand that the tables of all op sets have in common. Included by files of tables only: its names are short. */
#ifndef OOMCAST_ROWS_H
#define OOMCAST_ROWS_H

#include "model/shapes/opset.h"

#define T OC_D_TOKENS
#define H OC_D_HIDDEN
#define Q OC_D_Q
#define K OC_D_K
#define F OC_D_FFN
#define V OC_D_VOCAB
#define S OC_D_SCORES
#define A OC_D_ROWS

#define HALF  OC_F_HALF
#define FLASH OC_F_FLASH
#define NORM2 OC_F_TWO_NORMS

/* On which model chunks a row of a part exists. */
#define END_EMBED OC_END_HERE
#define END_LAYER 0
#define END_HEAD  OC_END_HERE

/* A temporary of backward. */
#define BACK(part, name_, need_, without_, role_, birth_, death_, why_, ...)                                           \
    {                                                                                                                  \
        .name = name_, .need = need_, .without = without_, .role = OC_R_##role_, .end = END_##part,                    \
        .birth = OC_BWD(part, birth_), .death = OC_BWD(part, death_), .keep = OC_F_NEVER, .why = why_, .dims = {       \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

#endif
