/* The probe's independence, held by the linker's own view: what liboc_probe.a needs of this project, liboc_base.a
 * defines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 2048, NAME = 128 };

struct names {
    char text[MOST][NAME];
    int n;
};

static bool has(const struct names *names, const char *name)
{
    for (int i = 0; i < names->n; i++)
        if (strcmp(names->text[i], name) == 0) return true;
    return false;
}

/* The oc_ symbols of a library that nm shows under `option`. */
static void list(const char *library, const char *option, struct names *names)
{
    char command[1024], line[1024], symbol[NAME];
    snprintf(command, sizeof command, "nm %s '%s' 2>/dev/null", option, library);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    while (fgets(line, sizeof line, pipe)) {
        /* "0000000000000010 T oc_bytes" or "                 U oc_bytes" */
        const char *at = strstr(line, " oc_");
        if (!at || sscanf(at, " %127s", symbol) != 1 || has(names, symbol)) continue;
        assert_true(names->n < MOST);
        snprintf(names->text[names->n++], NAME, "%s", symbol);
    }
    assert_int_equal(pclose(pipe), 0);
}

static void the_probe_needs_nothing_of_the_model_but_base(void **state)
{
    (void)state;
    static struct names needed, own, base;
    list(OC_LIB_PROBE, "--undefined-only", &needed);
    list(OC_LIB_PROBE, "--defined-only --extern-only", &own);
    list(OC_LIB_BASE, "--defined-only --extern-only", &base);
    if (OC_LIB_KERNELS[0]) list(OC_LIB_KERNELS, "--defined-only --extern-only", &own); /* its CUDA half */
    assert_true(has(&own, "oc_probe_run"));
    assert_true(has(&needed, "oc_alloc_get") && has(&base, "oc_alloc_get"));
    for (int i = 0; i < needed.n; i++)
        if (!has(&own, needed.text[i]) && !has(&base, needed.text[i])) fail_msg("the probe needs %s", needed.text[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_probe_needs_nothing_of_the_model_but_base)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
