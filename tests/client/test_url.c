/* SPDX-License-Identifier: Apache-2.0 */
/* URLs: tables of good and bad ones, and bytes that no URL has. */
#include <emq/emq.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmocka_all.h"
#include "random.h"

#define ANY "\x01" /* what no option holds */

/* Fields that are left out are at their default. */
static const struct good {
    const char *url;
    const char *host;
    unsigned port;
    int database;
    const char *unix_path;
    const char *username;
    const char *password;
    int tls;
} good[] = {
    {"redis://h", "h", 0, 0, NULL, NULL, NULL, 0},
    {"valkey://h", "h", 0, 0, NULL, NULL, NULL, 0},
    {"REDIS://h", "h", 0, 0, NULL, NULL, NULL, 0},
    {"rediss://h", "h", 0, 0, NULL, NULL, NULL, 1},
    {"valkeys://h:6380", "h", 6380, 0, NULL, NULL, NULL, 1},
    {"redis://h/", "h", 0, 0, NULL, NULL, NULL, 0},
    {"redis://h?", "h", 0, 0, NULL, NULL, NULL, 0},
    {"redis://h:1", "h", 1, 0, NULL, NULL, NULL, 0},
    {"redis://h:65535/7", "h", 65535, 7, NULL, NULL, NULL, 0},
    {"redis://h/2147483647", "h", 0, 2147483647, NULL, NULL, NULL, 0},
    {"redis://h?db=3", "h", 0, 3, NULL, NULL, NULL, 0},
    {"redis://h/?db=3", "h", 0, 3, NULL, NULL, NULL, 0},
    {"redis://queue-1.internal_x:7000", "queue-1.internal_x", 7000, 0, NULL, NULL, NULL, 0},
    {"redis://127.0.0.1:7000", "127.0.0.1", 7000, 0, NULL, NULL, NULL, 0},
    {"redis://[::1]", "::1", 0, 0, NULL, NULL, NULL, 0},
    {"redis://[::1]:7000/2", "::1", 7000, 2, NULL, NULL, NULL, 0},
    {"redis://u:p@[fe80::1%25eth0]:7000", "fe80::1%eth0", 7000, 0, NULL, "u", "p", 0},
    {"redis://:p@h", "h", 0, 0, NULL, NULL, "p", 0},
    {"redis://u:p@h:1/2", "h", 1, 2, NULL, "u", "p", 0},
    {"redis://u:p:q@h", "h", 0, 0, NULL, "u", "p:q", 0},
    {"redis://u:p@q@h", "h", 0, 0, NULL, "u", "p@q", 0},
    {"redis://u%3ax:%2f%3F%23%40%25%0a@h", "h", 0, 0, NULL, "u:x", "/?#@%\n", 0},
    {"redis://u:\xc3\xa4@h", "h", 0, 0, NULL, "u", "\xc3\xa4", 0},
    {"redis://u@h?password_env=X", "h", 0, 0, NULL, "u", NULL, 0},
    {"redis://u+v:p+q@h", "h", 0, 0, NULL, "u+v", "p+q", 0},
    {"unix:///s", NULL, 0, 0, "/s", NULL, NULL, 0},
    {"unix:///run/a%20b/s?db=4", NULL, 0, 4, "/run/a b/s", NULL, NULL, 0},
    {"unix://u:p@/run/s", NULL, 0, 0, "/run/s", "u", "p", 0},
    {"unix://:p@/run/s?db=1", NULL, 0, 1, "/run/s", NULL, "p", 0},
};

static void expect_text(const char *url, const char *got, const char *want) {
    if ((got == NULL) != (want == NULL) || (got != NULL && strcmp(got, want) != 0)) {
        fail_msg("%s gives '%s', want '%s'", url, got == NULL ? "-" : got,
                 want == NULL ? "-" : want);
    }
}

static emq_url *parse(const char *text) {
    emq_url *url = NULL;
    char error[256] = ANY;
    int result = emq_url_parse(&url, text, error, sizeof(error));
    if (result != EMQ_OK) {
        fail_msg("%s: %s", text, error);
    }
    assert_string_equal(error, "");
    return url;
}

static void good_ones_give_their_parts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        const struct good *g = &good[i];
        emq_url *url = parse(g->url);
        const emq_client_options *o = emq_url_get_options(url);
        expect_text(g->url, o->host, g->host);
        expect_text(g->url, o->unix_path, g->unix_path);
        expect_text(g->url, o->username, g->username);
        expect_text(g->url, o->password, g->password);
        assert_int_equal(o->size, sizeof(*o));
        assert_int_equal(o->port, g->port);
        assert_int_equal(o->database, g->database);
        assert_int_equal(o->tls, g->tls);
        emq_url_free(url);
    }
}

static void every_key_has_its_option(void **state) {
    (void)state;
    emq_url *url = parse("rediss://h/?db=1&name=w%26-7&connect_timeout_ms=2&command_timeout_ms="
                         "4294967295&max_payload=4&password_file=/p%3d&tls_ca_file=/a&tls_ca_dir=/"
                         "b&tls_cert_file=/c&tls_key_file=/d&tls_server_name=n&tls_insecure=1");
    const emq_client_options *o = emq_url_get_options(url);
    assert_int_equal(o->database, 1);
    assert_string_equal(o->client_name, "w&-7");
    assert_int_equal(o->connect_timeout_ms, 2);
    assert_int_equal(o->command_timeout_ms, UINT32_MAX);
    assert_int_equal(o->max_payload, 4);
    assert_string_equal(o->password_file, "/p=");
    assert_null(o->password_env);
    assert_string_equal(o->tls_ca_file, "/a");
    assert_string_equal(o->tls_ca_dir, "/b");
    assert_string_equal(o->tls_cert_file, "/c");
    assert_string_equal(o->tls_key_file, "/d");
    assert_string_equal(o->tls_server_name, "n");
    assert_int_equal(o->tls_insecure, 1);
    emq_url_free(url);
    url = parse("redis://h?password_env=EMQ_PASSWORD");
    assert_string_equal(emq_url_get_options(url)->password_env, "EMQ_PASSWORD");
    emq_url_free(url);
}

static void sentinels_stand_with_the_name_of_their_primary(void **state) {
    (void)state;
    emq_url *url = parse("valkey+sentinel://u:p@a,b:7000,[::1]:7001,[fe80::1%25eth0]/main-1?db=2");
    const emq_client_options *o = emq_url_get_options(url);
    assert_string_equal(o->sentinels, "a,b:7000,[::1]:7001,[fe80::1%eth0]");
    assert_string_equal(o->primary_name, "main-1");
    assert_null(o->host);
    assert_int_equal(o->port, 0);
    assert_string_equal(o->username, "u");
    assert_string_equal(o->password, "p");
    assert_int_equal(o->database, 2);
    assert_int_equal(o->tls, 0);
    assert_null(o->sentinel_password);
    emq_url_free(url);
    url = parse("rediss+sentinel://a/m%2fx?sentinel_username=s&sentinel_password=%26%40");
    o = emq_url_get_options(url);
    assert_string_equal(o->primary_name, "m/x");
    assert_string_equal(o->sentinel_username, "s");
    assert_string_equal(o->sentinel_password, "&@");
    assert_int_equal(o->tls, 1);
    emq_url_free(url);
    url = parse("redis+sentinel://a/m?sentinel_password_file=/f");
    assert_string_equal(emq_url_get_options(url)->sentinel_password_file, "/f");
    emq_url_free(url);
    url = parse("valkeys+sentinel://a/m?sentinel_password_env=E&tls_insecure=1");
    assert_string_equal(emq_url_get_options(url)->sentinel_password_env, "E");
    emq_url_free(url);
}

static const struct bad {
    const char *url;
    const char *says;
} bad[] = {
    {"", "starts with none of"},
    {"h", "starts with none of"},
    {"h:6379", "starts with none of"},
    {"http://h", "starts with none of"},
    {"redis:h", "starts with none of"},
    {"redis:/h", "starts with none of"},
    {"redis+tls://h", "starts with none of"},
    {"redis://", "no host"},
    {"redis:///1", "no host"},
    {"redis://:6379", "no host"},
    {"redis://u:p@", "no host"},
    {"redis://a b", "space"},
    {"redis://h\n", "control byte"},
    {"redis://h#x", "%23"},
    {"redis://u:SECRET#@h", "%23"},
    {"redis://u:SECRET/x@h", "@ behind"},
    {"redis://u:1/SECRET?x@h", "@ behind"},
    {"redis://u:SECRET?x@h", "@ behind"},
    {"redis://u:SE%GGCRET@h", "hexadecimal"},
    {"redis://u:SECRET%@h", "hexadecimal"},
    {"redis://u:SECRET%4@h", "hexadecimal"},
    {"redis://u:SECRET%00@h", "NUL"},
    {"redis://@h", "empty user or password"},
    {"redis://u:@h", "empty user or password"},
    {"redis://:@h", "empty user or password"},
    {"redis://u@h", "username is set without a password"},
    {"redis://u:SECRET@h?password_env=X", "more than one of password"},
    {"redis://h?password_file=/x&password_env=X", "more than one of password"},
    {"redis://h:", "port"},
    {"redis://h:0", "port"},
    {"redis://h:65536", "port"},
    {"redis://h:99999999999999999999999", "port"},
    {"redis://h:-1", "port"},
    {"redis://h:+1", "port"},
    {"redis://u:SECRET", "port"},
    {"redis://::1", "no host"},
    {"redis://fe80::1", "port"},
    {"redis://h%2fx", "no name and no address"},
    {"redis://h,i", "no name and no address"},
    {"redis://[::1", "IPv6"},
    {"redis://[]", "IPv6"},
    {"redis://[h]", "IPv6"},
    {"redis://[127.0.0.1]", "IPv6"},
    {"redis://[::1]6379", "IPv6"},
    {"redis://[::1%25]", "IPv6"},
    {"redis://[::1]:", "port"},
    {"redis://[::1]:x", "port"},
    {"redis://h/x", "database"},
    {"redis://h/-1", "database"},
    {"redis://h/1/", "database"},
    {"redis://h/2147483648", "database"},
    {"redis://h/1?db=1", "db twice"},
    {"redis://h?db=1&db=1", "db twice"},
    {"redis://h?db=", "for db"},
    {"redis://h?db=x", "for db"},
    {"redis://h?db", "for db"},
    {"redis://h?connect_timeout_ms=0", "for connect_timeout_ms"},
    {"redis://h?connect_timeout_ms=4294967296", "for connect_timeout_ms"},
    {"redis://h?max_payload=0", "for max_payload"},
    {"redis://h?max_payload=18446744073709551616", "for max_payload"},
    {"redis://h?name=", "for name"},
    {"redis://h?name=a%20b", "client_name"},
    {"redis://h?timeout=5", "unknown key: timeout"},
    {"redis://h?DB=1", "unknown key: DB"},
    {"redis://h?password=SECRET", "unknown key: password"},
    {"redis://h?db=1&", "unknown key"},
    {"redis://h?=1", "unknown key"},
    {"redis+sentinel://h/n?sentinel_password=a&SECRET", "unknown key"},
    {"redis+sentinel://h/n?sentinel_password=a&SECRET=b", "unknown key"},
    {"redis://h?tls_insecure=1", "TLS is set without tls"},
    {"rediss://h?tls_insecure=2", "for tls_insecure"},
    {"rediss://h?tls_insecure=5", "for tls_insecure"},
    {"rediss://h?tls_cert_file=/x", "one is missing"},
    {"redis+sentinel://", "no name of a primary"},
    {"redis+sentinel://a", "no name of a primary"},
    {"redis+sentinel://a/", "no name of a primary"},
    {"redis+sentinel://a?db=1", "no name of a primary"},
    {"redis+sentinel://a/m/1", "more than the name"},
    {"redis+sentinel:///m", "sentinels has no host"},
    {"redis+sentinel://,a/m", "sentinels has no host"},
    {"redis+sentinel://a,/m", "sentinels has no host"},
    {"redis+sentinel://a,,b/m", "sentinels has no host"},
    {"redis+sentinel://a,b:0/m", "port"},
    {"redis+sentinel://a,b:x/m", "port"},
    {"redis+sentinel://a,[::1/m", "IPv6"},
    {"redis+sentinel://a,b c/m", "space"},
    {"redis+sentinel://a;b/m", "no name and no address"},
    {"redis+sentinel://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a/m", "too many hosts"},
    {"redis+sentinel://u:SECRET/m", "port"},
    {"redis+sentinel://a/m?sentinel_username=s", "sentinel_username is set without"},
    {"redis+sentinel://a/m?sentinel_password=", "for sentinel_password"},
    {"redis+sentinel://a/m?sentinel_password=SECRET&sentinel_password_env=E",
     "more than one of sentinel_password"},
    {"redis+sentinel://a/m?tls_insecure=1", "TLS is set without tls"},
    {"redis://a?sentinel_password=SECRET", "set without sentinels"},
    {"unix+sentinel://a/m", "starts with none of"},
    {"unix://", "absolute path"},
    {"unix:///", "absolute path"},
    {"unix://s", "absolute path"},
    {"unix://run/s", "absolute path"},
    {"unix://u:SECRET@run/s", "absolute path"},
    {"unix:///s?tls_insecure=1", "TLS is set without tls"},
    {"unix:///s?host=h", "unknown key: host"},
};

static void bad_ones_are_refused_and_say_why(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        emq_url *url = (emq_url *)(void *)&url; /* to see that it is set */
        char error[512] = "";
        int result = emq_url_parse(&url, bad[i].url, error, sizeof(error));
        if (result != EMQ_EINVAL || url != NULL || strstr(error, bad[i].says) == NULL) {
            fail_msg("'%s': %s, '%s'", bad[i].url, emq_err_name(result), error);
        }
        assert_null(strstr(error, "SECRET"));
        assert_null(strstr(error, "CRET"));
    }
}

static void a_path_too_long_for_a_socket_is_refused(void **state) {
    char text[300] = "unix:///";
    char error[128];
    emq_url *url = NULL;
    (void)state;
    memset(text + 8, 'p', 200);
    assert_int_equal(emq_url_parse(&url, text, error, sizeof(error)), EMQ_EINVAL);
    assert_non_null(strstr(error, "unix_path"));
}

static void the_sentence_is_cut_to_its_room(void **state) {
    char error[8] = "1234567";
    emq_url *url = NULL;
    (void)state;
    assert_int_equal(emq_url_parse(&url, "h", error, 5), EMQ_EINVAL);
    assert_string_equal(error, "the ");
    assert_int_equal(error[5], '6');
    assert_int_equal(emq_url_parse(&url, "h", NULL, 0), EMQ_EINVAL);
}

static void missing_arguments_are_survived(void **state) {
    emq_url *url = NULL;
    emq_client *client = NULL;
    char error[64] = "";
    (void)state;
    assert_int_equal(emq_url_parse(NULL, "redis://h", error, sizeof(error)), EMQ_EINVAL);
    assert_int_equal(emq_url_parse(&url, "redis://h", NULL, 5), EMQ_EINVAL);
    assert_int_equal(emq_url_parse(&url, NULL, error, sizeof(error)), EMQ_EINVAL);
    assert_string_equal(error, "the URL is missing");
    assert_null(emq_url_get_options(NULL));
    emq_url_free(NULL);
    assert_int_equal(emq_client_open_url(NULL, "redis://h"), EMQ_EINVAL);
    assert_int_equal(emq_client_open_url(&client, NULL), EMQ_EINVAL);
    assert_string_equal(emq_client_get_error(client), "the URL is missing");
    emq_client_close(client);
}

static void a_client_of_a_bad_url_says_why_and_stays_closed(void **state) {
    emq_client *client = NULL;
    emq_id id = {{0}};
    (void)state;
    assert_int_equal(emq_client_open_url(&client, "redis://u:SECRET@h?colour=red"), EMQ_EINVAL);
    assert_string_equal(emq_client_get_error(client), "the URL has an unknown key: colour");
    assert_int_equal(emq_client_is_open(client), 0);
    assert_int_equal(emq_enqueue(&id, client, "q", "p", 1), EMQ_ECLOSED);
    assert_int_equal(emq_client_reconnect(client), EMQ_EINVAL);
    assert_string_equal(emq_client_get_error(client), "the URL has an unknown key: colour");
    emq_client_close(client);
}

/* Good URLs with bytes changed, taken out or put in: whatever comes of it, it comes with a
 * sentence or with options, and a sanitizer has nothing to say. */
static void any_bytes_are_survived(void **state) {
    (void)state;
    for (int round = 0; round < 200000; round++) {
        char text[128];
        char error[256];
        emq_url *url = NULL;
        const char *from = good[random_below(sizeof(good) / sizeof(good[0]))].url;
        if (random_below(8) == 0) {
            from = "redis+sentinel://u:p@h:1,[::1]:2,i/m?sentinel_password=%20";
        }
        (void)snprintf(text, sizeof(text), "%s", from);
        for (unsigned n = random_below(4); n > 0; n--) {
            static const char wanted[] = ":/?#[]@%&=\0001aF";
            size_t at = random_below((unsigned)strlen(text) + 1);
            text[at] = random_below(2) == 0 ? wanted[random_below(sizeof(wanted))]
                                            : (char)random_below(256);
        }
        text[sizeof(text) - 1] = '\0';
        int result = emq_url_parse(&url, text, error, sizeof(error));
        assert_true(result == EMQ_OK || result == EMQ_EINVAL);
        assert_int_equal(result == EMQ_OK, url != NULL);
        assert_int_equal(result == EMQ_OK, error[0] == '\0');
        emq_url_free(url);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_ones_give_their_parts),
        cmocka_unit_test(every_key_has_its_option),
        cmocka_unit_test(sentinels_stand_with_the_name_of_their_primary),
        cmocka_unit_test(bad_ones_are_refused_and_say_why),
        cmocka_unit_test(a_path_too_long_for_a_socket_is_refused),
        cmocka_unit_test(the_sentence_is_cut_to_its_room),
        cmocka_unit_test(missing_arguments_are_survived),
        cmocka_unit_test(a_client_of_a_bad_url_says_why_and_stays_closed),
        cmocka_unit_test(any_bytes_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
