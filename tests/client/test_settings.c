/* SPDX-License-Identifier: Apache-2.0 */
/* Options: defaults, what is out of range, and structs of another version's size. */
#include "settings.h"

#include <emq/emq.h>
#include <string.h>

#include "cmocka_all.h"

static void defaults_are_the_documented_ones(void **state) {
    emq_settings settings;
    (void)state;
    assert_int_equal(emq_settings_init(&settings, NULL), EMQ_OK);
    assert_string_equal(settings.options.host, "127.0.0.1");
    assert_int_equal(settings.options.port, 6379);
    assert_int_equal(settings.options.database, 0);
    assert_null(settings.options.unix_path);
    assert_null(settings.options.username);
    assert_null(settings.options.password);
    assert_string_equal(settings.options.client_name, "libemq");
    assert_int_equal(settings.options.connect_timeout_ms, 5000);
    assert_int_equal(settings.options.command_timeout_ms, 5000);
    assert_int_equal(settings.options.max_payload, 8 * 1024 * 1024);
    emq_settings_clear(&settings);
}

static void both_initialisers_agree(void **state) {
    emq_client_options by_macro = EMQ_CLIENT_OPTIONS_INIT;
    emq_client_options by_function;
    (void)state;
    memset(&by_function, 0xff, sizeof(by_function));
    emq_client_options_init(&by_function);
    emq_client_options_init(NULL);
    assert_int_equal(by_function.size, sizeof(by_function));
    assert_int_equal(by_macro.size, by_function.size);
    assert_null(by_function.host);
    assert_int_equal(by_function.max_payload, 0);
}

static void strings_are_copied(void **state) {
    char host[] = "localhost";
    char user[] = "user";
    char password[] = "password";
    char name[] = "name";
    emq_settings settings;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    (void)state;
    options.host = host;
    options.username = user;
    options.password = password;
    options.client_name = name;
    assert_int_equal(emq_settings_init(&settings, &options), EMQ_OK);
    host[0] = user[0] = password[0] = name[0] = 'X';
    assert_string_equal(settings.options.host, "localhost");
    assert_string_equal(settings.options.username, "user");
    assert_string_equal(settings.options.password, "password");
    assert_string_equal(settings.options.client_name, "name");
    emq_settings_clear(&settings);
}

static void check_refused(const emq_client_options *options, const char *says) {
    emq_client *client = NULL;
    emq_settings settings;
    char error[128] = "";
    assert_int_equal(emq_settings_init(&settings, options), EMQ_EINVAL);
    assert_int_equal(emq_client_open(&client, options), EMQ_EINVAL);
    assert_non_null(strstr(emq_client_get_error(client), says));
    assert_int_equal(emq_client_is_open(client), 0);
    assert_int_equal(emq_client_reconnect(client), EMQ_EINVAL);
    assert_non_null(strstr(emq_client_get_error(client), says));
    emq_client_close(client);
    assert_int_equal(emq_install(options, error, sizeof(error)), EMQ_EINVAL);
    assert_non_null(strstr(error, says));
}

#define CHECK_REFUSED_FOR(field, value, says)                                                      \
    do {                                                                                           \
        emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;                                      \
        options.field = (value);                                                                   \
        check_refused(&options, says);                                                             \
    } while (0)
#define CHECK_REFUSED(field, value) CHECK_REFUSED_FOR(field, value, #field)

static emq_client_options with_sentinels(const char *list) {
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.sentinels = list;
    options.primary_name = "main";
    return options;
}

static void options_of_sentinel_go_together(void **state) {
    (void)state;
    CHECK_REFUSED_FOR(primary_name, "main", "without sentinels");
    CHECK_REFUSED_FOR(sentinel_username, "u", "sentinel_username is set without a password");
    CHECK_REFUSED_FOR(sentinel_password, "p", "without sentinels");
    CHECK_REFUSED_FOR(sentinel_password_file, "p", "without sentinels");
    CHECK_REFUSED_FOR(sentinel_password_env, "p", "without sentinels");
    CHECK_REFUSED_FOR(sentinels, "s", "primary_name is missing");
    emq_client_options options = with_sentinels("s");
    options.host = "h";
    check_refused(&options, "sentinels is set with host, port or unix_path");
    options.host = NULL;
    options.port = 1;
    check_refused(&options, "sentinels is set with host, port or unix_path");
    options.port = 0;
    options.unix_path = "/s";
    check_refused(&options, "sentinels is set with host, port or unix_path");
    options.unix_path = NULL;
    options.sentinel_password_env = "";
    check_refused(&options, "sentinel_password_env is empty");
    options.sentinel_password_env = NULL;
    options.primary_name = "";
    check_refused(&options, "primary_name is missing");
    options.primary_name = "main";
    options.sentinels = "a,b,";
    check_refused(&options, "sentinels has no host");
}

static void sentinels_are_read_and_copied(void **state) {
    char list[] = "a:7000,[::1]";
    emq_settings settings;
    emq_settings again;
    emq_client_options options = with_sentinels(list);
    (void)state;
    options.sentinel_password = "p";
    assert_int_equal(emq_settings_init(&settings, &options), EMQ_OK);
    list[0] = 'X';
    assert_string_equal(settings.options.sentinels, "a:7000,[::1]");
    assert_null(settings.options.host);
    assert_int_equal(settings.sentinel_list.count, 2);
    assert_string_equal(settings.sentinel_list.list[0].host, "a");
    assert_int_equal(settings.sentinel_list.list[0].port, 7000);
    assert_string_equal(settings.sentinel_list.list[1].host, "::1");
    assert_int_equal(settings.sentinel_list.list[1].port, 26379);
    /* settings of settings, as a pool makes them */
    assert_int_equal(emq_settings_init(&again, &settings.options), EMQ_OK);
    assert_int_equal(again.sentinel_list.count, 2);
    emq_settings_clear(&again);
    emq_settings_clear(&settings);
}

static void values_out_of_range_are_refused(void **state) {
    char path[200];
    (void)state;
    memset(path, 'p', sizeof(path));
    path[108] = '\0'; /* one more than a socket address holds */
    CHECK_REFUSED(unix_path, path);
    CHECK_REFUSED(unix_path, "");
    CHECK_REFUSED(host, "");
    CHECK_REFUSED(database, -1);
    CHECK_REFUSED(reserved, 1);
    CHECK_REFUSED(username, "user without a password");
    CHECK_REFUSED(password_file, "");
    CHECK_REFUSED(password_env, "");
    CHECK_REFUSED(tls, 2);
    CHECK_REFUSED(tls_insecure, -1);
    CHECK_REFUSED_FOR(tls_ca_file, "c", "without tls");
    CHECK_REFUSED_FOR(tls_insecure, 1, "without tls");
    CHECK_REFUSED(client_name, "two words");
    CHECK_REFUSED(client_name, "line\nfeed");
    CHECK_REFUSED(client_name, "\xc3\xa4");
    path[107] = '\0';
    emq_settings settings;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    options.unix_path = path;
    assert_int_equal(emq_settings_init(&settings, &options), EMQ_OK);
    emq_settings_clear(&settings);
}

/* The struct of an older version ends earlier: what lies behind is not read. */
static void older_structs_have_defaults_behind_their_end(void **state) {
    emq_settings settings;
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    (void)state;
    options.port = 7000;
    options.max_payload = 1;
    options.command_timeout_ms = 1;
    options.size = offsetof(emq_client_options, command_timeout_ms);
    assert_int_equal(emq_settings_init(&settings, &options), EMQ_OK);
    assert_int_equal(settings.options.port, 7000);
    assert_int_equal(settings.options.command_timeout_ms, 5000);
    assert_int_equal(settings.options.max_payload, 8 * 1024 * 1024);
    emq_settings_clear(&settings);
}

static void newer_structs_must_be_at_their_defaults(void **state) {
    struct {
        emq_client_options options;
        uint64_t newer;
    } larger = {EMQ_CLIENT_OPTIONS_INIT, 0};
    emq_settings settings;
    (void)state;
    larger.options.size = sizeof(larger);
    assert_int_equal(emq_settings_init(&settings, &larger.options), EMQ_OK);
    emq_settings_clear(&settings);
    larger.newer = 1;
    check_refused(&larger.options, "later version");
}

static void a_size_that_was_never_set_is_refused(void **state) {
    (void)state;
    CHECK_REFUSED(size, 0);
    CHECK_REFUSED(size, sizeof(size_t) - 1);
    CHECK_REFUSED(size, SIZE_MAX);
}

static void missing_handles_are_survived(void **state) {
    emq_id id = {{0}};
    emq_job *job = NULL;
    emq_reply *reply = NULL;
    const char *const words[] = {"PING"};
    (void)state;
    assert_int_equal(emq_client_open(NULL, NULL), EMQ_EINVAL);
    assert_int_equal(emq_client_reconnect(NULL), EMQ_EINVAL);
    emq_client_close(NULL);
    assert_int_equal(emq_client_is_open(NULL), 0);
    assert_string_equal(emq_client_get_error(NULL), "");
    assert_int_equal(emq_enqueue(&id, NULL, "q", "p", 1), EMQ_EINVAL);
    assert_int_equal(emq_claim(&job, NULL, "q", 1), EMQ_EINVAL);
    assert_int_equal(emq_claim(NULL, NULL, "q", 1), EMQ_EINVAL);
    assert_int_equal(emq_complete(NULL, NULL), EMQ_EINVAL);
    assert_int_equal(emq_client_command(&reply, NULL, 1, words, NULL), EMQ_EINVAL);
    assert_int_equal(emq_client_command(NULL, NULL, 1, words, NULL), EMQ_EINVAL);
    assert_int_equal(emq_install(NULL, NULL, 5), EMQ_EINVAL);
    emq_job_free(NULL);
    emq_reply_free(NULL);
    assert_null(emq_job_get_lease(NULL));
    assert_null(emq_job_get_payload(NULL, NULL));
    assert_int_equal(emq_job_get_attempts(NULL), 0);
}

static void the_version_is_the_headers(void **state) {
    (void)state;
    assert_string_equal(emq_version(), EMQ_VERSION_STRING);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_documented_ones),
        cmocka_unit_test(both_initialisers_agree),
        cmocka_unit_test(strings_are_copied),
        cmocka_unit_test(options_of_sentinel_go_together),
        cmocka_unit_test(sentinels_are_read_and_copied),
        cmocka_unit_test(values_out_of_range_are_refused),
        cmocka_unit_test(older_structs_have_defaults_behind_their_end),
        cmocka_unit_test(newer_structs_must_be_at_their_defaults),
        cmocka_unit_test(a_size_that_was_never_set_is_refused),
        cmocka_unit_test(missing_handles_are_survived),
        cmocka_unit_test(the_version_is_the_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
