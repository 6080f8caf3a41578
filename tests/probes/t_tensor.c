/* Tensors and books: owners decide when memory is freed, freed memory is poisoned, instants are the first of the
 * largest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "probes/tensor.h"

struct fixture {
    struct oc_probe_backend backend;
    struct oc_books books;
    struct oc_rank rank;
};

static void open_books(struct fixture *f, uint64_t limit, bool poison)
{
    memset(f, 0, sizeof *f);
    oc_backend_host(&f->backend, limit);
    assert_true(oc_books_open(&f->books, &f->backend, false, poison, &f->rank));
}

static bool is_poison(const unsigned char *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (memory[i] != 0xA5) return false;
    return true;
}

static struct oc_tensor *floats(struct fixture *f, const char *name, uint64_t n)
{
    return oc_tensor_new(&f->books, OC_ACTIVATIONS, "block", name, OC_FP32, n);
}

static void the_last_owner_frees(void **state)
{
    (void)state;
    struct fixture f;
    open_books(&f, 0, false);
    struct oc_tensor *a = floats(&f, "a", 100), *again = oc_tensor_hold(a);
    assert_int_equal(f.books.requested, 400);
    assert_int_equal(f.books.allocated, 512);
    oc_tensor_let_go(&f.books, &a);
    assert_null(a);
    assert_int_equal(f.books.requested, 400);
    oc_tensor_let_go(&f.books, &again);
    assert_int_equal(f.books.requested, 0);
    assert_int_equal(f.books.allocated, 0);
    oc_tensor_let_go(&f.books, &again); /* no tensor: nothing happens */
    oc_books_close(&f.books);
}

static void fresh_and_freed_memory_is_poison(void **state)
{
    (void)state;
    struct fixture f;
    open_books(&f, 0, true);
    struct oc_tensor *a = floats(&f, "a", 100);
    unsigned char *memory = a->array.data;
    assert_true(is_poison(memory, 400));
    memset(memory, 0, 400);
    oc_tensor_let_go(&f.books, &a);
    assert_true(is_poison(memory, 400)); /* the segment is still held */
    oc_books_close(&f.books);
}

static void dropping_takes_saved_tensors_of_that_name_only(void **state)
{
    (void)state;
    struct fixture f;
    open_books(&f, 0, false);
    struct oc_tensor *a = floats(&f, "a", 100), *other = floats(&f, "b", 100), *loose = floats(&f, "a", 100);
    struct oc_tensor *saved = oc_tensor_save(&f.books, a), *saved_other = oc_tensor_save(&f.books, other);
    memset(a->array.data, 0, 400);
    memset(other->array.data, 0, 400);
    memset(loose->array.data, 0, 400);
    assert_int_equal(oc_books_drop(&f.books, "block.a"), 1);
    assert_int_equal(oc_books_drop(&f.books, "block.a"), 0);
    assert_int_equal(oc_books_drop(&f.books, "block"), 0);
    assert_true(is_poison(a->array.data, 400));
    assert_false(is_poison(other->array.data, 400) || is_poison(loose->array.data, 400));
    assert_int_equal(f.books.requested, 800);
    struct oc_tensor **const all[] = {&a, &other, &loose, &saved, &saved_other};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) oc_tensor_let_go(&f.books, all[i]);
    assert_int_equal(f.books.requested, 0);
    oc_books_close(&f.books);
}

/* In whole pages, and those that a free neighbour begins. */
static void memory_that_is_free_is_given_back(void **state)
{
    (void)state;
    struct fixture f;
    open_books(&f, 0, false);
    struct oc_tensor *a = floats(&f, "a", 10000), *b = floats(&f, "b", 10000), *c = floats(&f, "c", 100);
    unsigned char *first = a->array.data, *seam = (unsigned char *)b->array.data - 1, *last = c->array.data;
    assert_int_equal(first[0] = first[20000] = *seam = last[0] = 7, 7);
    oc_tensor_let_go(&f.books, &a);
    assert_int_equal(first[20000], 0); /* fresh pages are zero */
    assert_int_equal(*seam, 7);        /* its page is b's too */
    oc_tensor_let_go(&f.books, &b);
    assert_int_equal(*seam, 0);
    assert_int_equal(last[0], 7);
    oc_tensor_let_go(&f.books, &c);
    oc_books_close(&f.books);
}

static void a_moment_keeps_the_first_of_its_largest_instants(void **state)
{
    (void)state;
    struct fixture f;
    open_books(&f, 0, false);
    f.books.recording = true;
    struct oc_instant *forward = &f.rank.moments[OC_FIRST][OC_M_FORWARD], *idle = &f.rank.moments[OC_FIRST][OC_M_IDLE];
    oc_books_at(&f.books, OC_FIRST, OC_PH_INIT, OC_PART_NONE, -1, -1);
    struct oc_tensor *weight = oc_tensor_new(&f.books, OC_WEIGHTS, "block", "w", OC_FP32, 1000);
    oc_books_at(&f.books, OC_FIRST, OC_PH_FORWARD, OC_PART_LAYER, 0, 3);
    assert_int_equal(forward->requested, 4000); /* what it begins with */
    oc_tensor_let_go(&f.books, &weight);
    struct oc_tensor *a = floats(&f, "a", 128); /* an instant of its own, though smaller */
    assert_int_equal(forward->requested, 512);
    oc_tensor_let_go(&f.books, &a);
    oc_books_at(&f.books, OC_FIRST, OC_PH_FORWARD, OC_PART_LAYER, 0, 4);
    a = floats(&f, "a", 127); /* as large when rounded: the first stays */
    assert_int_equal(forward->place.layer, 3);
    assert_int_equal(forward->requested, 512);
    struct oc_tensor *b = floats(&f, "b", 1);
    assert_int_equal(forward->place.layer, 4);
    assert_int_equal(forward->requested, 512);
    assert_int_equal(forward->allocated, 1024);
    assert_int_equal(forward->classes[OC_BUFFERS], 512); /* rounding */
    oc_books_at(&f.books, OC_FIRST, OC_PH_IDLE, OC_PART_NONE, -1, -1);
    oc_tensor_let_go(&f.books, &a);
    assert_int_equal(idle->allocated, 1024);
    assert_int_equal(idle->place.layer, -1);
    oc_tensor_let_go(&f.books, &b);
    oc_books_close(&f.books);
}

static void streams_share_the_limit_but_not_what_they_free(void **state)
{
    (void)state;
    struct fixture f;
    open_books(&f, 44 << 20, false);
    struct oc_tensor *a = oc_tensor_on(&f.books, 1, OC_BUFFERS, "block", "a", OC_FP32, 1 << 20);
    oc_tensor_let_go(&f.books, &a);
    struct oc_tensor *b = floats(&f, "b", 1 << 20); /* 4 MiB, of a segment of 20 MiB */
    assert_int_equal(oc_books_reserved(&f.books), 40 << 20);
    a = oc_tensor_on(&f.books, 1, OC_BUFFERS, "block", "a", OC_FP32, 1 << 20);
    assert_int_equal(oc_books_reserved(&f.books), 40 << 20);
    oc_tensor_let_go(&f.books, &a);
    struct oc_tensor *large = floats(&f, "large", 6 << 20); /* 24 MiB: the other stream gives back its own */
    assert_false(f.books.out_of_memory);
    assert_int_equal(oc_books_reserved(&f.books), 44 << 20);
    a = oc_tensor_on(&f.books, 1, OC_BUFFERS, "block", "a", OC_FP32, 1);
    assert_true(f.books.out_of_memory);
    oc_tensor_let_go(&f.books, &large);
    oc_tensor_let_go(&f.books, &b);
    oc_books_close(&f.books);
}

static void without_room_nothing_more_happens(void **state)
{
    (void)state;
    struct fixture f;
    open_books(&f, 2 << 20, true);
    struct oc_tensor *a = floats(&f, "a", 100), *none = floats(&f, "b", 1 << 20);
    assert_true(f.books.out_of_memory);
    assert_int_equal(f.books.wanted, 4 << 20);
    struct oc_tensor *later = floats(&f, "c", 1); /* there would be room, but the step is over */
    struct oc_tensor *saved = oc_tensor_save(&f.books, later), *held = oc_tensor_hold(none);
    oc_tensor_let_go(&f.books, &saved);
    oc_tensor_let_go(&f.books, &held);
    oc_tensor_let_go(&f.books, &none);
    oc_tensor_let_go(&f.books, &later);
    assert_int_equal(f.books.requested, 400);
    oc_tensor_let_go(&f.books, &a);
    oc_books_close(&f.books);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_owner_frees),
        cmocka_unit_test(fresh_and_freed_memory_is_poison),
        cmocka_unit_test(dropping_takes_saved_tensors_of_that_name_only),
        cmocka_unit_test(memory_that_is_free_is_given_back),
        cmocka_unit_test(a_moment_keeps_the_first_of_its_largest_instants),
        cmocka_unit_test(streams_share_the_limit_but_not_what_they_free),
        cmocka_unit_test(without_room_nothing_more_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
