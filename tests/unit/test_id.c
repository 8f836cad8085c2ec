/* SPDX-License-Identifier: Apache-2.0 */
/* Branded ids: vectors, validation order, byte order, and minting under clocks that misbehave,
 * among threads and after a fork. */
#include <emq/id.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "id.h"
#include "random.h"

#define ROUND_TRIPS 1000000
#define THREADS 8
#define IDS_PER_THREAD 20000
#define IDS_PER_MS 4096
#define FORKS 3000

static uint64_t snowflake_of(const emq_id *id) {
    uint64_t value = 0;
    assert_int_equal(emq_id_to_snowflake(&value, id), EMQ_OK);
    return value;
}

static unsigned node_of(const emq_id *id) {
    return (unsigned)(snowflake_of(id) >> 12) & EMQ_ID_NODE_MAX;
}

static int64_t ms_of(const emq_id *id) {
    int64_t ms = 0;
    assert_int_equal(emq_id_unix_ms(&ms, id), EMQ_OK);
    return ms;
}

static void vectors_hold_both_ways(void **state) {
    static const struct {
        const char *text;
        uint64_t snowflake;
    } vectors[] = {
        {"USR0KHTOWnGLuC", UINT64_C(274557032793636864)},
        {"USR0NgWEfAEJfs", UINT64_C(320636799581945856)},
        {"USRAzL8n0Y58m7", UINT64_C(9223372036854775807)},
        {"USR00000000000", 0},
        {"USR00000000001", 1},
        {"USR0000000000z", 61},
        {"USR00000000010", 62},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        emq_id id;
        assert_int_equal(emq_id_parse(&id, vectors[i].text, EMQ_ID_LEN), EMQ_OK);
        assert_string_equal(id.text, vectors[i].text);
        assert_true(snowflake_of(&id) == vectors[i].snowflake);
        memset(&id, 'x', sizeof(id));
        assert_int_equal(emq_id_from_snowflake(&id, "USR", vectors[i].snowflake), EMQ_OK);
        assert_string_equal(id.text, vectors[i].text);
    }
    emq_id id;
    assert_int_equal(emq_id_parse(&id, "USR0NgWEfAEJfs", EMQ_ID_LEN), EMQ_OK);
    assert_true(ms_of(&id) == INT64_C(1780512970164));
}

static void a_million_round_trips(void **state) {
    (void)state;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        /* every magnitude, not only the large numbers that a plain random number would be */
        uint64_t snowflake = (random_next() >> 1) >> random_below(63);
        emq_id id;
        emq_id again;
        assert_int_equal(emq_id_from_snowflake(&id, "JOB", snowflake), EMQ_OK);
        assert_int_equal(emq_id_parse(&again, id.text, EMQ_ID_LEN), EMQ_OK);
        assert_memory_equal(&id, &again, sizeof(id));
        assert_true(snowflake_of(&again) == snowflake);
    }
}

static void byte_order_is_numeric_order(void **state) {
    (void)state;
    for (int i = 0; i < ROUND_TRIPS / 4; i++) {
        uint64_t a = (random_next() >> 1) >> random_below(63);
        uint64_t b = random_below(2) == 0 ? (random_next() >> 1) >> random_below(63) : a ^ 1;
        emq_id id_a;
        emq_id id_b;
        assert_int_equal(emq_id_from_snowflake(&id_a, "JOB", a), EMQ_OK);
        assert_int_equal(emq_id_from_snowflake(&id_b, "JOB", b), EMQ_OK);
        int order = memcmp(id_a.text, id_b.text, EMQ_ID_LEN);
        assert_int_equal((order > 0) - (order < 0), (a > b) - (a < b));
    }
}

static void checks_come_in_their_order(void **state) {
    static const struct {
        const char *text;
        size_t n;
        int result;
    } table[] = {
        {"", 0, EMQ_EID_LENGTH},
        {"USR0KHTOWnGLu", 13, EMQ_EID_LENGTH},
        {"USR0KHTOWnGLuCC", 15, EMQ_EID_LENGTH},
        {"usr*", 4, EMQ_EID_LENGTH},
        {"usr************", 15, EMQ_EID_LENGTH},
        {"usr0KHTOWnGLuC", 14, EMQ_EID_NAMESPACE},
        {"USr0KHTOWnGLuC", 14, EMQ_EID_NAMESPACE},
        {"U5R0KHTOWnGLuC", 14, EMQ_EID_NAMESPACE},
        {"@SR0KHTOWnGLuC", 14, EMQ_EID_NAMESPACE},
        {"US[0KHTOWnGLuC", 14, EMQ_EID_NAMESPACE},
        {"\0SR0KHTOWnGLuC", 14, EMQ_EID_NAMESPACE},
        {"\xc3\x84R0KHTOWnGLuC", 14, EMQ_EID_NAMESPACE},
        {"usrzzzzzzzzzz*", 14, EMQ_EID_NAMESPACE},
        {"usrzzzzzzzzzzz", 14, EMQ_EID_NAMESPACE},
        {"USR0KHTOWnGLu*", 14, EMQ_EID_CHARSET},
        {"USR*KHTOWnGLuC", 14, EMQ_EID_CHARSET},
        {"USR0KHTOWnGLu\0", 14, EMQ_EID_CHARSET},
        {"USR0KHTOWnGLu\xff", 14, EMQ_EID_CHARSET},
        {"USR0KHTOWnGLu/", 14, EMQ_EID_CHARSET},
        {"USR0KHTOWnGLu:", 14, EMQ_EID_CHARSET},
        {"USR0KHTOWnGLu@", 14, EMQ_EID_CHARSET},
        {"USR0KHTOWnGLu[", 14, EMQ_EID_CHARSET},
        {"USR0KHTOWnGLu`", 14, EMQ_EID_CHARSET},
        {"USR0KHTOWnGLu{", 14, EMQ_EID_CHARSET},
        {"USRzzzzzzzzzz*", 14, EMQ_EID_CHARSET},
        {"USRzzzzzzzzzzz", 14, EMQ_EID_RANGE},
        {"USRAzL8n0Y58m8", 14, EMQ_EID_RANGE},
        {"USRB0000000000", 14, EMQ_EID_RANGE},
        {"USRAzL8n0Y58m7", 14, EMQ_OK},
        {"AAA00000000000", 14, EMQ_OK},
        {"ZZZ00000000000", 14, EMQ_OK},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        emq_id id;
        emq_id before;
        memset(&id, 'x', sizeof(id));
        before = id;
        if (emq_id_parse(&id, table[i].text, table[i].n) != table[i].result) {
            fail_msg("%s (%zu bytes)", table[i].text, table[i].n);
        }
        assert_int_equal(emq_id_parse(NULL, table[i].text, table[i].n), table[i].result);
        if (table[i].result != EMQ_OK) {
            assert_memory_equal(&id, &before, sizeof(id));
        }
    }
}

static void every_byte_is_accepted_or_refused_as_said(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[EMQ_ID_LEN + 1] = "USR0KHTOWnGLuC";
        int is_capital = c >= 'A' && c <= 'Z';
        int is_digit = (c >= '0' && c <= '9') || is_capital || (c >= 'a' && c <= 'z');
        text[1] = (char)c;
        assert_int_equal(emq_id_parse(NULL, text, EMQ_ID_LEN),
                         is_capital ? EMQ_OK : EMQ_EID_NAMESPACE);
        text[1] = 'S';
        text[13] = (char)c;
        assert_int_equal(emq_id_parse(NULL, text, EMQ_ID_LEN), is_digit ? EMQ_OK : EMQ_EID_CHARSET);
    }
}

static void wrong_arguments_are_refused(void **state) {
    emq_id id = {"USR0KHTOWnGLuC"};
    emq_id endless;
    emq_id zero = {{0}};
    uint64_t snowflake = 7;
    int64_t ms = 7;
    (void)state;
    memset(&endless, 'A', sizeof(endless));
    assert_int_equal(emq_id_parse(&id, NULL, 14), EMQ_EINVAL);
    assert_int_equal(emq_id_to_snowflake(NULL, &id), EMQ_EINVAL);
    assert_int_equal(emq_id_to_snowflake(&snowflake, NULL), EMQ_EINVAL);
    assert_int_equal(emq_id_to_snowflake(&snowflake, &zero), EMQ_EID_LENGTH);
    assert_int_equal(emq_id_to_snowflake(&snowflake, &endless), EMQ_EID_LENGTH);
    assert_int_equal(emq_id_unix_ms(NULL, &id), EMQ_EINVAL);
    assert_int_equal(emq_id_unix_ms(&ms, NULL), EMQ_EINVAL);
    assert_int_equal(emq_id_unix_ms(&ms, &zero), EMQ_EID_LENGTH);
    assert_true(snowflake == 7 && ms == 7);
    assert_int_equal(emq_id_valid(NULL), 0);
    assert_int_equal(emq_id_valid(&zero), 0);
    assert_int_equal(emq_id_valid(&endless), 0);
    assert_int_equal(emq_id_valid(&id), 1);
    assert_int_equal(emq_id_from_snowflake(NULL, "JOB", 1), EMQ_EINVAL);
    assert_int_equal(emq_id_from_snowflake(&id, NULL, 1), EMQ_EINVAL);
    assert_int_equal(emq_id_from_snowflake(&id, "JO", 1), EMQ_EID_NAMESPACE);
    assert_int_equal(emq_id_from_snowflake(&id, "JOBS", 1), EMQ_EID_NAMESPACE);
    assert_int_equal(emq_id_from_snowflake(&id, "", 1), EMQ_EID_NAMESPACE);
    assert_int_equal(emq_id_from_snowflake(&id, "job", UINT64_MAX), EMQ_EID_NAMESPACE);
    assert_int_equal(emq_id_from_snowflake(&id, "JOB", UINT64_C(1) << 63), EMQ_EID_RANGE);
    assert_int_equal(emq_id_mint(NULL, "JOB"), EMQ_EINVAL);
    assert_int_equal(emq_id_mint(&id, NULL), EMQ_EINVAL);
    assert_int_equal(emq_id_mint(&id, "job"), EMQ_EID_NAMESPACE);
    assert_int_equal(emq_id_set_node(EMQ_ID_NODE_MAX + 1), EMQ_EINVAL);
}

/* Each test of minting begins in a year of its own, since a process never goes back in time. */
static int64_t fresh_year(void) {
    static int64_t year = INT64_C(2000000000000);
    year += INT64_C(1000) * 3600 * 24 * 365;
    return year;
}

static uint64_t mint_at(emq_id *id, int64_t ms) {
    assert_int_equal(emq_id_mint_at(id, "JOB", ms), EMQ_OK);
    assert_int_equal(memcmp(id->text, "JOB", 3), 0);
    return snowflake_of(id);
}

static void minting_reads_the_clock(void **state) {
    emq_id id;
    struct timespec before;
    struct timespec after;
    (void)state;
    (void)clock_gettime(CLOCK_REALTIME, &before);
    assert_int_equal(emq_id_mint(&id, "EVT"), EMQ_OK);
    (void)clock_gettime(CLOCK_REALTIME, &after);
    assert_int_equal(memcmp(id.text, "EVT", 3), 0);
    assert_int_equal(emq_id_valid(&id), 1);
    assert_true(ms_of(&id) >= (int64_t)before.tv_sec * 1000 + before.tv_nsec / 1000000);
    assert_true(ms_of(&id) <= (int64_t)after.tv_sec * 1000 + after.tv_nsec / 1000000);
}

static void a_clock_that_stands_still_borrows(void **state) {
    int64_t now = fresh_year();
    emq_id id;
    (void)state;
    uint64_t last = mint_at(&id, now);
    assert_true(ms_of(&id) == now);
    for (int i = 1; i < 3 * IDS_PER_MS; i++) {
        uint64_t next = mint_at(&id, now);
        assert_true(next > last);
        assert_true(ms_of(&id) == now + i / IDS_PER_MS);
        last = next;
    }
}

static void a_clock_that_steps_back_keeps_the_order(void **state) {
    int64_t now = fresh_year();
    emq_id id;
    (void)state;
    uint64_t last = mint_at(&id, now);
    for (int i = 0; i < 2 * IDS_PER_MS; i++) {
        uint64_t next = mint_at(&id, now - 1 - i % 86400000);
        assert_true(next > last);
        last = next;
    }
    assert_true(ms_of(&id) <= now + 2);
}

static void a_clock_that_jumps_ahead_is_followed(void **state) {
    int64_t now = fresh_year();
    emq_id id;
    (void)state;
    uint64_t last = mint_at(&id, now);
    for (int i = 1; i < 1000; i++) {
        uint64_t next = mint_at(&id, now + i * INT64_C(7));
        assert_true(next > last);
        assert_true(ms_of(&id) == now + i * INT64_C(7));
        last = next;
    }
}

static void a_changed_node_keeps_the_order(void **state) {
    int64_t now = fresh_year();
    emq_id id;
    (void)state;
    uint64_t last = mint_at(&id, now);
    for (unsigned i = 0; i < 3000; i++) {
        unsigned node = random_below(EMQ_ID_NODE_MAX + 1);
        assert_int_equal(emq_id_set_node(node), EMQ_OK);
        uint64_t next = mint_at(&id, now);
        assert_true(next > last);
        assert_int_equal(node_of(&id), node);
        last = next;
    }
    assert_int_equal(emq_id_set_node(0), EMQ_OK);
    assert_int_equal(emq_id_set_node(EMQ_ID_NODE_MAX), EMQ_OK);
}

static void a_clock_out_of_range_is_refused(void **state) {
    const int64_t last = EMQ_ID_EPOCH_MS + (INT64_C(1) << 41) - 1;
    emq_id id;
    (void)state;
    assert_int_equal(emq_id_mint_at(&id, "JOB", EMQ_ID_EPOCH_MS - 1), EMQ_EID_RANGE);
    assert_int_equal(emq_id_mint_at(&id, "JOB", 0), EMQ_EID_RANGE);
    assert_int_equal(emq_id_mint_at(&id, "JOB", INT64_MIN + EMQ_ID_EPOCH_MS), EMQ_EID_RANGE);
    assert_int_equal(emq_id_mint_at(&id, "JOB", last + 1), EMQ_EID_RANGE);
    assert_int_equal(emq_id_mint_at(&id, "JOB", INT64_MAX), EMQ_EID_RANGE);
    /* the last millisecond ends the numbers: tried in a child, since nothing comes behind it */
    pid_t child = fork();
    if (child == 0) {
        int result = emq_id_set_node(EMQ_ID_NODE_MAX);
        for (int i = 0; i < IDS_PER_MS && result == EMQ_OK; i++) {
            result = emq_id_mint_at(&id, "JOB", last);
        }
        int is_last = strcmp(id.text, "JOBAzL8n0Y58m7") == 0;
        int refused = emq_id_mint_at(&id, "JOB", last) == EMQ_EID_RANGE;
        _exit(result == EMQ_OK && is_last && refused ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void *mint_many(void *data) {
    emq_id *ids = data;
    for (int i = 0; i < IDS_PER_THREAD; i++) {
        if (emq_id_mint(&ids[i], "JOB") != EMQ_OK) {
            return data;
        }
    }
    return NULL;
}

static int compare_ids(const void *a, const void *b) {
    return memcmp(((const emq_id *)a)->text, ((const emq_id *)b)->text, EMQ_ID_LEN);
}

static void threads_mint_unique_and_increasing_ids(void **state) {
    pthread_t threads[THREADS];
    emq_id *ids = calloc((size_t)THREADS * IDS_PER_THREAD, sizeof(*ids));
    (void)state;
    assert_non_null(ids);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, mint_many, ids + (size_t)i * IDS_PER_THREAD), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    for (size_t i = 1; i < (size_t)THREADS * IDS_PER_THREAD; i++) {
        if (i % IDS_PER_THREAD != 0) {
            assert_true(compare_ids(&ids[i - 1], &ids[i]) < 0);
        }
    }
    qsort(ids, (size_t)THREADS * IDS_PER_THREAD, sizeof(*ids), compare_ids);
    for (size_t i = 1; i < (size_t)THREADS * IDS_PER_THREAD; i++) {
        assert_true(compare_ids(&ids[i - 1], &ids[i]) < 0);
    }
    free(ids);
}

/* Mints in a child and hands the id over through a pipe. */
static void mint_in_child(emq_id *id) {
    int ends[2];
    int status = -1;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        emq_id own;
        int done = emq_id_mint(&own, "JOB") == EMQ_OK &&
                   write(ends[1], &own, sizeof(own)) == (ssize_t)sizeof(own);
        _exit(done ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(read(ends[0], id, sizeof(*id)), sizeof(*id));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* So many forks that a node drawn as the parent's by chance, one in 1024, would be seen. */
static void a_child_draws_another_node(void **state) {
    emq_id parent;
    emq_id child;
    (void)state;
    assert_int_equal(emq_id_mint(&parent, "JOB"), EMQ_OK);
    for (int i = 0; i < FORKS; i++) {
        mint_in_child(&child);
        assert_int_not_equal(node_of(&child), node_of(&parent));
    }
    emq_id next;
    assert_int_equal(emq_id_mint(&next, "JOB"), EMQ_OK);
    assert_int_equal(node_of(&next), node_of(&parent));
}

static void a_chosen_node_is_not_the_childs(void **state) {
    emq_id parent;
    emq_id child;
    (void)state;
    assert_int_equal(emq_id_set_node(5), EMQ_OK);
    assert_int_equal(emq_id_mint(&parent, "JOB"), EMQ_OK);
    assert_int_equal(node_of(&parent), 5);
    for (int i = 0; i < 3; i++) {
        mint_in_child(&child);
        assert_int_not_equal(node_of(&child), 5);
    }
}

int main(void) {
    /* minting by the real clock comes before the tests that go ahead of it */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vectors_hold_both_ways),
        cmocka_unit_test(a_million_round_trips),
        cmocka_unit_test(byte_order_is_numeric_order),
        cmocka_unit_test(checks_come_in_their_order),
        cmocka_unit_test(every_byte_is_accepted_or_refused_as_said),
        cmocka_unit_test(wrong_arguments_are_refused),
        cmocka_unit_test(minting_reads_the_clock),
        cmocka_unit_test(threads_mint_unique_and_increasing_ids),
        cmocka_unit_test(a_child_draws_another_node),
        cmocka_unit_test(a_chosen_node_is_not_the_childs),
        cmocka_unit_test(a_clock_that_stands_still_borrows),
        cmocka_unit_test(a_clock_that_steps_back_keeps_the_order),
        cmocka_unit_test(a_clock_that_jumps_ahead_is_followed),
        cmocka_unit_test(a_changed_node_keeps_the_order),
        cmocka_unit_test(a_clock_out_of_range_is_refused),
    };
    return cmocka_run_group_tests_name("id", tests, NULL, NULL);
}
