/* Tensors with a class, a name and owners, over the caching allocator; and the books that are kept of them.
 *
 * A tensor has as many owners as PyTorch would hold references: the frame of the function that made it, the autograd
 * graph, a checkpoint, an autocast cache. It is freed when the last lets go, so the order of frees follows from who
 * holds what.
 *
 * When memory runs out every later call does nothing: `out_of_memory` is set, and new tensors are a stand-in with no
 * data that is safe to pass anywhere but to a kernel.
 *
 * Ownership: oc_books_open() allocates, oc_books_close() releases everything, tensors included. */
#ifndef OC_PROBES_TENSOR_H
#define OC_PROBES_TENSOR_H

#include "probes/backend.h"

enum { OC_MAX_ROWS = OC_MAX_MEASURED };

struct oc_tensor {
    struct oc_array array; /* what kernels take */
    uint64_t elements, bytes;
    uint32_t handle; /* of its block */
    uint8_t stream;  /* whose allocator has it */
    int32_t owners;
    uint16_t row;           /* of the books: class and name */
    uint16_t padding_row;   /* of what lies behind its elements, */
    uint64_t padding;       /* bytes; 0 = nothing does */
    bool saved, dropped;    /* held by the autograd graph; freed early on purpose */
    struct oc_tensor *prev; /* all live tensors, in a list */
    struct oc_tensor *next;
};

/* All tensors of one name: "layers.norm1" and "x32". Both point to static text. */
struct oc_book_row {
    const char *block, *name;
    uint8_t class, dtype;
    bool saved; /* the autograd graph has held one */
    uint32_t count;
    uint64_t bytes;
};

struct oc_books {
    struct oc_probe_backend *backend;
    /* One a stream of the GPU, made when the first tensor asks for it: streams do not give each other what they have
     * freed. The step itself runs in order. */
    struct oc_alloc *allocs[OC_MAX_STREAMS];
    struct oc_alloc_provider provider;
    uint64_t reserved_peak; /* of all of them together */
    bool poison;            /* freed memory is filled with 0xA5, and so is fresh memory */
    void (*trace)(void *user, uint32_t handle, uint64_t bytes); /* as in struct oc_probe_options */
    void *trace_user;
    bool out_of_memory;
    uint64_t wanted; /* bytes that there was no room for */

    uint64_t requested, allocated, classes[OC_CLASSES];
    struct oc_book_row rows[OC_MAX_ROWS];
    int n_rows;
    struct oc_tensor live;    /* head of the ring of live tensors */
    struct oc_tensor *spare;  /* structs to use again */
    struct oc_tensor nowhere; /* the stand-in when memory has run out */

    struct oc_place place;                   /* where the step is */
    bool recording;                          /* whether instants count: the first two iterations */
    bool level_only;                         /* nothing was allocated yet in this moment */
    struct oc_rank *rank;                    /* receives moments and peaks */
    struct oc_book_row at_peak[OC_MAX_ROWS]; /* rows at the largest instant of the steady iteration */
    int n_at_peak;
    uint64_t steady_peak;
};

/* `rank` is filled with moments and peaks until the books are closed. False when out of host memory. */
bool oc_books_open(struct oc_books *books, struct oc_probe_backend *backend, bool expandable_segments, bool poison,
                   struct oc_rank *rank);
void oc_books_close(struct oc_books *books);

/* The step has come to this phase and part; micro-batch and layer are -1 where there is none. */
void oc_books_at(struct oc_books *books, enum oc_iteration iteration, enum oc_phase phase, enum oc_part part,
                 int micro_batch, int layer);

/* Chooses first_peak and peak among the moments, and reads the allocator's peak. */
void oc_books_finish(struct oc_books *books);

/* A tensor with one owner, its contents undefined. */
struct oc_tensor *oc_tensor_new(struct oc_books *books, enum oc_class class, const char *block, const char *name,
                                enum oc_dtype dtype, uint64_t elements);

/* One block for what many tensors are views of: `padding` more elements, which count as buffers, lie behind it. */
struct oc_tensor *oc_tensor_pool(struct oc_books *books, enum oc_class class, const char *block, const char *name,
                                 enum oc_dtype dtype, uint64_t elements, uint64_t padding);

/* Made by another stream than the one that computes (0): gathers and reductions have streams of their own. */
struct oc_tensor *oc_tensor_on(struct oc_books *books, int stream, enum oc_class class, const char *block,
                               const char *name, enum oc_dtype dtype, uint64_t elements);

/* Bytes of the segments of all streams. */
uint64_t oc_books_reserved(const struct oc_books *books);

/* A part of a tensor, in a struct that the books know nothing of: it has no owners and is not let go. */
struct oc_tensor oc_tensor_view(const struct oc_tensor *of, uint64_t first, uint64_t elements);

/* One more owner; returns the tensor. */
struct oc_tensor *oc_tensor_hold(struct oc_tensor *tensor);

/* One more owner, the autograd graph. */
struct oc_tensor *oc_tensor_save(struct oc_books *books, struct oc_tensor *tensor);

/* One owner fewer: *tensor becomes NULL. NULL is allowed. */
void oc_tensor_let_go(struct oc_books *books, struct oc_tensor **tensor);

/* Frees and poisons every saved tensor of this full name ("layers.norm1.x32") under its owners' feet. Returns how many.
 */
int oc_books_drop(struct oc_books *books, const char *name);

#endif
