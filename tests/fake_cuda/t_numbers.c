/* The stand-in's numbers against the toolkit's, where there is one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/fake_cuda/numbers.h"

#ifdef OC_CUDA_TOOLKIT
#include OC_CUDA_TOOLKIT

#define COMPARE(name, value) assert_int_equal(name, value);
static void numbers_are_cudas(void **state)
{
    (void)state;
    FAKE_CUDA_ERRORS(COMPARE)
    FAKE_CUDA_COPIES(COMPARE)
}
#else
static void numbers_are_cudas(void **state)
{
    (void)state;
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_cudas)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
