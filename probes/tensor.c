#include "probes/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POISON = 0xA5 };

bool oc_books_open(struct oc_books *books, struct oc_probe_backend *backend, bool expandable_segments, bool poison,
                   struct oc_rank *rank)
{
    memset(books, 0, sizeof *books);
    books->backend = backend;
    books->poison = poison;
    books->rank = rank;
    books->live.next = books->live.prev = &books->live;
    books->provider = backend->segments;
    books->provider.expandable_segments = expandable_segments;
    if (poison) books->provider.used = books->provider.unused = NULL; /* what is freed keeps its poison */
    books->allocs[0] = oc_alloc_create(&books->provider);
    return books->allocs[0] != NULL;
}

void oc_books_close(struct oc_books *books)
{
    while (books->live.next != &books->live) {
        struct oc_tensor *tensor = books->live.next;
        books->live.next = tensor->next;
        free(tensor);
    }
    while (books->spare) {
        struct oc_tensor *tensor = books->spare;
        books->spare = tensor->next;
        free(tensor);
    }
    for (int i = 0; i < OC_MAX_STREAMS; i++) {
        oc_alloc_destroy(books->allocs[i]);
        books->allocs[i] = NULL;
    }
}

/* ---- Instants ---- */

static void take_instant(const struct oc_books *books, struct oc_instant *instant)
{
    instant->requested = books->requested;
    instant->allocated = books->allocated;
    memcpy(instant->classes, books->classes, sizeof instant->classes);
    instant->classes[OC_BUFFERS] += books->allocated - books->requested; /* rounding */
    instant->place = books->place;
    instant->exists = true;
}

static struct oc_instant *this_moment(const struct oc_books *books)
{
    return &books->rank->moments[books->place.iteration][books->place.moment];
}

void oc_books_at(struct oc_books *books, enum oc_iteration iteration, enum oc_phase phase, enum oc_part part,
                 int micro_batch, int layer)
{
    enum oc_moment moment = oc_phase_moment(phase);
    books->place = (struct oc_place){.iteration = iteration,
                                     .moment = moment,
                                     .micro_batch = micro_batch,
                                     .layer = layer,
                                     .tick = {.phase = (uint8_t)phase, .part = (uint8_t)part}};
    if (!books->recording || this_moment(books)->exists) return;
    take_instant(books, this_moment(books)); /* the level it begins with, should nothing be allocated in it */
    books->level_only = true;
}

/* The state after an allocation is an instant: the first of the largest is kept. */
static void note_instant(struct oc_books *books)
{
    if (!books->recording) return;
    struct oc_instant *largest = this_moment(books);
    if (books->level_only || books->allocated > largest->allocated) take_instant(books, largest);
    books->level_only = false;
    if (books->place.iteration != OC_STEADY || books->allocated <= books->steady_peak) return;
    books->steady_peak = books->allocated;
    memcpy(books->at_peak, books->rows, (size_t)books->n_rows * sizeof books->rows[0]);
    books->n_at_peak = books->n_rows;
}

void oc_books_finish(struct oc_books *books)
{
    struct oc_rank *rank = books->rank;
    for (int m = OC_M_FORWARD; m < OC_MOMENTS; m++) {
        const struct oc_instant *first = &rank->moments[OC_FIRST][m], *steady = &rank->moments[OC_STEADY][m];
        if (first->exists && (!rank->first_peak.exists || first->allocated > rank->first_peak.allocated))
            rank->first_peak = *first;
        if (steady->exists && (!rank->peak.exists || steady->allocated > rank->peak.allocated)) rank->peak = *steady;
    }
    rank->reserved = books->reserved_peak;
    rank->allocated_by = rank->reserved_by = books->backend->evidence;
}

/* ---- Tensors ---- */

/* The row of a name; names are static text, so their addresses are enough. Rows are few: a linear search from the
 * newest. */
static uint16_t row_of(struct oc_books *books, enum oc_class class, const char *block, const char *name,
                       enum oc_dtype dtype)
{
    for (int i = books->n_rows - 1; i >= 0; i--) {
        const struct oc_book_row *row = &books->rows[i];
        if (row->name == name && row->block == block && row->class == class && row->dtype == dtype) return (uint16_t)i;
    }
    if (books->n_rows == OC_MAX_ROWS)
        return OC_MAX_ROWS - 1; /* more names than the step has: the last row takes the rest */
    books->rows[books->n_rows] =
        (struct oc_book_row){.block = block, .name = name, .class = (uint8_t) class, .dtype = (uint8_t)dtype};
    return (uint16_t)books->n_rows++;
}

static struct oc_tensor *take_struct(struct oc_books *books)
{
    struct oc_tensor *tensor = books->spare;
    if (!tensor) return calloc(1, sizeof *tensor);
    books->spare = tensor->next;
    memset(tensor, 0, sizeof *tensor);
    return tensor;
}

/* Adds a tensor's bytes to the books (sign 1) or takes them out (-1): what lies behind its elements counts apart. */
static void count(struct oc_books *books, const struct oc_tensor *tensor, int sign)
{
    struct oc_book_row *row = &books->rows[tensor->row], *padding = &books->rows[tensor->padding_row];
    const uint64_t factor = sign > 0 ? 1 : UINT64_MAX; /* modulo 2^64 */
    const uint64_t own = factor * (tensor->bytes - tensor->padding), more = factor * tensor->padding;
    row->count += (uint32_t)sign;
    row->bytes += own;
    books->classes[row->class] += own;
    if (tensor->padding) {
        padding->count += (uint32_t)sign;
        padding->bytes += more;
        books->classes[padding->class] += more;
    }
    books->requested += own + more;
    books->allocated += factor * oc_alloc_round(tensor->bytes);
}

static void poison(struct oc_books *books, const struct oc_tensor *tensor)
{
    books->backend->fill(books->backend, tensor->array.data, POISON, (size_t)tensor->bytes);
}

static struct oc_tensor *no_room(struct oc_books *books, uint64_t bytes)
{
    if (!books->out_of_memory) books->wanted = bytes;
    books->out_of_memory = true;
    return &books->nowhere;
}

uint64_t oc_books_reserved(const struct oc_books *books)
{
    uint64_t reserved = 0;
    for (int i = 0; i < OC_MAX_STREAMS; i++)
        if (books->allocs[i]) reserved += oc_alloc_stats(books->allocs[i])->reserved;
    return reserved;
}

static bool has_room(const struct oc_books *books)
{
    return !books->provider.limit || oc_books_reserved(books) <= books->provider.limit;
}

/* 0: there is no room, even when the other streams have given back what they have cached. */
static uintptr_t take_block(struct oc_books *books, int stream, uint64_t bytes, uint32_t *handle)
{
    if (!books->allocs[stream]) books->allocs[stream] = oc_alloc_create(&books->provider);
    if (!books->allocs[stream]) return 0;
    for (int try = 0; try < 2; try++) {
        const uintptr_t address = oc_alloc_get(books->allocs[stream], bytes, handle);
        if (address && has_room(books)) return address;
        if (address) oc_alloc_put(books->allocs[stream], *handle);
        for (int i = 0; i < OC_MAX_STREAMS; i++)
            if (books->allocs[i]) oc_alloc_empty_cache(books->allocs[i]);
    }
    return 0;
}

static struct oc_tensor *make(struct oc_books *books, int stream, enum oc_class class, const char *block,
                              const char *name, enum oc_dtype dtype, uint64_t elements, uint64_t padding)
{
    uint64_t bytes = oc_bytes(oc_add(elements, padding), dtype);
    if (books->out_of_memory) return &books->nowhere;
    struct oc_tensor *tensor = take_struct(books);
    if (!tensor) return no_room(books, bytes);
    const uintptr_t address = take_block(books, stream, bytes, &tensor->handle);
    if (oc_books_reserved(books) > books->reserved_peak) books->reserved_peak = oc_books_reserved(books);
    if (!address) {
        tensor->next = books->spare;
        books->spare = tensor;
        return no_room(books, bytes);
    }
    tensor->array = (struct oc_array){(void *)address, (int)dtype};
    tensor->elements = elements;
    tensor->bytes = bytes;
    tensor->owners = 1;
    tensor->stream = (uint8_t)stream;
    tensor->row = row_of(books, class, block, name, dtype);
    tensor->padding = bytes - oc_bytes(elements, dtype);
    if (padding) tensor->padding_row = row_of(books, OC_BUFFERS, block, "padding", dtype);
    tensor->next = &books->live;
    tensor->prev = books->live.prev;
    tensor->prev->next = tensor->next->prev = tensor;
    if (books->poison) poison(books, tensor);
    count(books, tensor, 1);
    if (books->trace) books->trace(books->trace_user, tensor->handle, bytes);
    note_instant(books);
    return tensor;
}

struct oc_tensor *oc_tensor_pool(struct oc_books *books, enum oc_class class, const char *block, const char *name,
                                 enum oc_dtype dtype, uint64_t elements, uint64_t padding)
{
    return make(books, 0, class, block, name, dtype, elements, padding);
}

struct oc_tensor *oc_tensor_on(struct oc_books *books, int stream, enum oc_class class, const char *block,
                               const char *name, enum oc_dtype dtype, uint64_t elements)
{
    return make(books, stream, class, block, name, dtype, elements, 0);
}

struct oc_tensor *oc_tensor_new(struct oc_books *books, enum oc_class class, const char *block, const char *name,
                                enum oc_dtype dtype, uint64_t elements)
{
    return make(books, 0, class, block, name, dtype, elements, 0);
}

struct oc_tensor oc_tensor_view(const struct oc_tensor *of, uint64_t first, uint64_t elements)
{
    const enum oc_dtype dtype = (enum oc_dtype)of->array.dtype;
    struct oc_tensor view = {.array = of->array, .elements = elements, .bytes = oc_bytes(elements, dtype)};
    if (view.array.data) view.array.data = (char *)of->array.data + oc_bytes(first, dtype);
    return view;
}

struct oc_tensor *oc_tensor_hold(struct oc_tensor *tensor)
{
    tensor->owners++;
    return tensor;
}

struct oc_tensor *oc_tensor_save(struct oc_books *books, struct oc_tensor *tensor)
{
    if (tensor == &books->nowhere) return tensor;
    tensor->saved = true;
    books->rows[tensor->row].saved = true;
    return oc_tensor_hold(tensor);
}

void oc_tensor_let_go(struct oc_books *books, struct oc_tensor **owner)
{
    struct oc_tensor *tensor = *owner;
    *owner = NULL;
    if (!tensor || tensor == &books->nowhere || --tensor->owners > 0) return;
    if (!tensor->dropped) {
        if (books->poison) poison(books, tensor);
        count(books, tensor, -1);
        oc_alloc_put(books->allocs[tensor->stream], tensor->handle);
        if (books->trace) books->trace(books->trace_user, tensor->handle, 0);
    }
    tensor->prev->next = tensor->next;
    tensor->next->prev = tensor->prev;
    tensor->next = books->spare;
    books->spare = tensor;
}

/* ---- Dropping, for tests ---- */

static bool is_named(const struct oc_book_row *row, const char *name)
{
    size_t block = strlen(row->block);
    return strncmp(name, row->block, block) == 0 && name[block] == '.' && strcmp(name + block + 1, row->name) == 0;
}

int oc_books_drop(struct oc_books *books, const char *name)
{
    int dropped = 0;
    for (struct oc_tensor *tensor = books->live.next; tensor != &books->live; tensor = tensor->next) {
        if (!tensor->saved || tensor->dropped || !is_named(&books->rows[tensor->row], name)) continue;
        poison(books, tensor);
        count(books, tensor, -1);
        oc_alloc_put(books->allocs[tensor->stream], tensor->handle);
        tensor->dropped = true;
        dropped++;
    }
    return dropped;
}
