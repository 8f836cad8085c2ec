/* SPDX-License-Identifier: Apache-2.0 */
/* Passwords from a file and from the environment: read at each connect, and never told. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "secret.h"
#include "server_fixture.h"

#define VARIABLE "EMQ_TEST_PASSWORD"

static char file[SERVER_PATH_MAX + 32];

static int start_with_file(void **state) {
    (void)start_server(state);
    (void)snprintf(file, sizeof(file), "%s/password", server.dir);
    return 0;
}

static void write_file(const char *bytes, size_t n) {
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void write_text(const char *text) {
    write_file(text, strlen(text));
}

static void require_password(const char *password) {
    run(server.admin, "CONFIG", "SET", "requirepass", password, NULL);
}

static emq_client_options options_with_file(void) {
    emq_client_options options = options_for_server(&server);
    options.password_file = file;
    return options;
}

/* The password is this one, byte for byte. */
static void expect_secret(const char *want) {
    emq_client_options options = EMQ_CLIENT_OPTIONS_INIT;
    emq_secret secret;
    emq_text error;
    options.password_file = file;
    assert_int_equal(emq_secret_load(&secret, &options, &error), EMQ_OK);
    assert_string_equal(secret.bytes, want);
    emq_secret_clear(&secret);
    assert_null(secret.bytes);
}

static void one_newline_at_the_end_is_dropped(void **state) {
    (void)state;
    write_text("word");
    expect_secret("word");
    write_text("word\n");
    expect_secret("word");
    write_text("word\n\n");
    expect_secret("word\n");
    write_text(" two words\r\n");
    expect_secret(" two words\r");
}

static void a_file_that_cannot_be_used_is_named(void **state) {
    (void)state;
    emq_client_options options = options_with_file();
    (void)unlink(file);
    EXPECT_OPEN(&options, EMQ_EINVAL, "/password does not exist");
    write_text("");
    EXPECT_OPEN(&options, EMQ_EINVAL, "/password is empty");
    write_text("\n");
    EXPECT_OPEN(&options, EMQ_EINVAL, "/password is empty");
    write_file("SEC\0RET", 7);
    EXPECT_OPEN(&options, EMQ_EINVAL, "/password has a NUL byte in it");
    options.password_file = server.dir;
    EXPECT_OPEN(&options, EMQ_EINVAL, "is no regular file");
    options.password_file = "/dev/null/x";
    EXPECT_OPEN(&options, EMQ_EINVAL, "/dev/null/x does not exist");
}

/* Opening it must not wait for somebody who writes. */
static void a_pipe_is_refused_and_not_waited_for(void **state) {
    (void)state;
    emq_client_options options = options_with_file();
    (void)unlink(file);
    assert_int_equal(mkfifo(file, 0600), 0);
    EXPECT_OPEN(&options, EMQ_EINVAL, "is no regular file");
    (void)unlink(file);
}

static void the_size_has_a_bound(void **state) {
    (void)state;
    char *large = malloc(EMQ_PASSWORD_FILE_MAX + 1);
    assert_non_null(large);
    memset(large, 'x', EMQ_PASSWORD_FILE_MAX + 1);
    emq_client_options options = options_with_file();
    write_file(large, EMQ_PASSWORD_FILE_MAX + 1);
    EXPECT_OPEN(&options, EMQ_EINVAL, "has more than 64 KiB");
    write_file(large, EMQ_PASSWORD_FILE_MAX);
    large[EMQ_PASSWORD_FILE_MAX] = '\0';
    expect_secret(large);
    free(large);
}

static void the_file_is_read_at_each_connect(void **state) {
    (void)state;
    require_password("first");
    write_text("first\n");
    emq_client_options options = options_with_file();
    emq_client *client = open_client(&options);
    require_password("second");
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_EAUTH);
    assert_null(strstr(emq_client_get_error(client), "first"));
    write_text("second\n");
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    (void)unlink(file);
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_EINVAL);
    EXPECT_SAYS(client, "/password does not exist");
    assert_int_equal(emq_client_is_open(client), 0);
    write_text("second");
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    emq_client_close(client);
    require_password("");
}

static void a_variable_is_read_when_asked_for(void **state) {
    (void)state;
    require_password("right");
    emq_client_options options = options_for_server(&server);
    assert_int_equal(setenv(VARIABLE, "right", 1), 0);
    assert_int_equal(setenv("EMQ_PASSWORD", "right", 1), 0);
    EXPECT_OPEN(&options, EMQ_EAUTH, "NOAUTH"); /* nobody asked for it */
    options.password_env = VARIABLE;
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    options.username = "default";
    EXPECT_OPEN(&options, EMQ_OK, NULL);
    assert_int_equal(setenv(VARIABLE, "", 1), 0);
    EXPECT_OPEN(&options, EMQ_EINVAL, VARIABLE " is empty");
    assert_int_equal(unsetenv(VARIABLE), 0);
    EXPECT_OPEN(&options, EMQ_EINVAL, VARIABLE " is not set");
    require_password("");
}

static void a_url_opens_with_its_password(void **state) {
    (void)state;
    char url[SERVER_PATH_MAX * 2];
    emq_client *client = NULL;
    require_password("a/b@c");
    (void)snprintf(url, sizeof(url), "unix://default:a%%2Fb%%40c@%s?name=by-url", server.socket);
    int result = emq_client_open_url(&client, url);
    EXPECT_RESULT(client, result, EMQ_OK);
    emq_client_close(client);
    (void)snprintf(url, sizeof(url), "valkey://:a%%2Fb%%40c@127.0.0.1:%d/2", server.port);
    result = emq_client_open_url(&client, url);
    EXPECT_RESULT(client, result, EMQ_EFENCE_ABSENT); /* the fence is in database 0 */
    emq_client_close(client);
    write_text("a/b@c\n");
    (void)snprintf(url, sizeof(url), "redis://localhost:%d?password_file=%s", server.port, file);
    result = emq_client_open_url(&client, url);
    EXPECT_RESULT(client, result, EMQ_OK);
    EXPECT_RESULT(client, emq_client_reconnect(client), EMQ_OK);
    emq_client_close(client);
    require_password("");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_newline_at_the_end_is_dropped),
        cmocka_unit_test(a_file_that_cannot_be_used_is_named),
        cmocka_unit_test(a_pipe_is_refused_and_not_waited_for),
        cmocka_unit_test(the_size_has_a_bound),
        cmocka_unit_test(the_file_is_read_at_each_connect),
        cmocka_unit_test(a_variable_is_read_when_asked_for),
        cmocka_unit_test(a_url_opens_with_its_password),
    };
    return RUN_SERVER_TESTS("client.password", tests, start_with_file, stop_server);
}
