/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of `emq bench`: its name, and its removal, whatever state a run has left it in. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

#define PAGE 500     /* jobs that are removed at once */
#define TRIES 20     /* to remove the queue */
#define PAUSE_MS 250 /* between two */

typedef char key_text[EMQ_KEY_MAX + 1];

int bench_queue_name(char out[EMQ_QUEUE_MAX + 1]) {
    emq_id id;
    int result = emq_id_mint(&id, "JOB");
    if (result == EMQ_OK) {
        (void)snprintf(out, EMQ_QUEUE_MAX + 1, "emq-bench-%s", id.text + 3);
    }
    return result;
}

static int delete_keys(emq_client *client, key_text *keys, size_t count) {
    const char *words[PAGE + 1] = {"DEL"};
    for (size_t i = 0; i < count; i++) {
        words[i + 1] = keys[i];
    }
    emq_reply *reply = NULL;
    int result =
        count == 0 ? EMQ_OK : emq_client_command(&reply, client, (int)count + 1, words, NULL);
    emq_reply_free(reply);
    return result;
}

/* The rows of a page of a set. */
static int delete_rows(emq_client *client, const char *queue, const emq_reply *ids,
                       key_text *keys) {
    size_t count = 0;
    for (size_t i = 0; i < emq_reply_get_count(ids) && i < PAGE; i++) {
        emq_id id;
        size_t n = 0;
        const char *text = emq_reply_get_string(emq_reply_get_element(ids, i), &n);
        if (text != NULL && emq_id_parse(&id, text, n) == EMQ_OK &&
            emq_key_job(keys[count], sizeof(keys[count]), queue, &id) >= 0) {
            count++;
        }
    }
    return delete_keys(client, keys, count);
}

static int empty_set(emq_client *client, const char *queue, emq_key_kind set, key_text *keys) {
    key_text key;
    int result = emq_key_queue(key, sizeof(key), queue, set);
    result = result < 0 ? result : EMQ_OK;
    size_t count = PAGE;
    for (size_t first = 0; result == EMQ_OK && count == PAGE; first += PAGE) {
        char from[24];
        char to[24];
        emq_reply *ids = NULL;
        (void)snprintf(from, sizeof(from), "%zu", first);
        (void)snprintf(to, sizeof(to), "%zu", first + PAGE - 1);
        const char *const words[] = {"ZRANGE", key, from, to};
        result = emq_client_command(&ids, client, 4, words, NULL);
        count = emq_reply_get_count(ids);
        if (result == EMQ_OK) {
            result = delete_rows(client, queue, ids, keys);
        }
        emq_reply_free(ids);
    }
    return result;
}

/* The sets go last: as long as they are there, the rows can be found. */
static int remove_all(emq_client *client, const char *queue, key_text *keys) {
    static const emq_key_kind kinds[] = {EMQ_KEY_PENDING,   EMQ_KEY_ACTIVE, EMQ_KEY_SCHEDULE,
                                         EMQ_KEY_DEAD,      EMQ_KEY_WAKE,   EMQ_KEY_META,
                                         EMQ_KEY_COMPLETED, EMQ_KEY_FAILED};
    int result = empty_set(client, queue, EMQ_KEY_PENDING, keys);
    if (result == EMQ_OK) {
        result = empty_set(client, queue, EMQ_KEY_ACTIVE, keys);
    }
    if (result != EMQ_OK) {
        return result;
    }
    size_t count = 0;
    for (; count < sizeof(kinds) / sizeof(kinds[0]); count++) {
        (void)emq_key_queue(keys[count], sizeof(keys[count]), queue, kinds[count]);
    }
    return delete_keys(client, keys, count);
}

/* It may be repeated, so that a connection that was cut, or a server that starts again, leaves
 * nothing behind. */
int bench_queue_remove(emq_client *client, const char *queue) {
    static const struct timespec pause = {0, PAUSE_MS * 1000000L};
    key_text *keys = calloc(PAGE, sizeof(*keys));
    int result = keys == NULL ? EMQ_ENOMEM : EMQ_OK;
    for (int i = 0; i < TRIES && keys != NULL; i++) {
        result = emq_client_is_open(client) ? EMQ_OK : emq_client_reconnect(client);
        if (result == EMQ_OK) {
            result = remove_all(client, queue, keys);
        }
        emq_class class = emq_err_class(result);
        if (class != EMQ_CLASS_RETRYABLE && class != EMQ_CLASS_UNKNOWN) {
            break;
        }
        (void)nanosleep(&pause, NULL);
    }
    free(keys);
    return result;
}
