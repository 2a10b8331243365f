/* prim/signals: names to numbers and back. */
#include "prim/signals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>

static void every_name_is_found_again(void **state)
{
    (void)state;
    char name[SIGNALS_NAME_MAX];
    for (int signal = 1; signal <= SIGRTMAX; signal++) {
        if (signal == 32 || signal == 33) /* the C library's own: they have no names */
            continue;
        signals_name(signal, name);
        assert_int_equal(signals_find(name), signal);
        assert_int_equal(signals_find(name + 3), signal);
    }
}

static void other_spellings_and_what_is_none(void **state)
{
    (void)state;
    assert_int_equal(signals_find("sigterm"), SIGTERM);
    assert_int_equal(signals_find("Kill"), SIGKILL);
    assert_int_equal(signals_find("SIGIOT"), SIGABRT);
    assert_int_equal(signals_find("CLD"), SIGCHLD);
    assert_int_equal(signals_find("SIGIO"), SIGPOLL);
    assert_int_equal(signals_find("RTMAX"), SIGRTMAX);
    assert_int_equal(signals_find("SIGRTMAX-1"), SIGRTMAX - 1);
    static const char *const none[] = {"",       "SIG",     "9",         "SIG9",      "FOO",
                                       "TERM ",  " TERM",   "SIGSIGHUP", "RTMIN-1",   "RTMIN+99",
                                       "RTMIN+", "RTMAX+1", "RTMIN+1x",  "RTMIN+001", "RTM"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_int_equal(signals_find(none[i]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_is_found_again),
        cmocka_unit_test(other_spellings_and_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
