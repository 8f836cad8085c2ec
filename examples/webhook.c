/* SPDX-License-Identifier: Apache-2.0 */
/* A webhook sender: a job is a POST. What the other side may mend is tried again, with a backoff or
 * when it says so; what it never will is a dead letter at once, and dead letters can be revived.
 *
 *     webhook send URL BODY   admits a call
 *     webhook work            makes the calls, until SIGTERM
 *     webhook dead            lists the dead letters with their reasons
 *     webhook reprocess       revives them, their budgets anew */
#include <curl/curl.h>
#include <emq/emq.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE "webhooks"

static size_t drop_body(char *data, size_t size, size_t count, void *user) {
    (void)data, (void)user;
    return size * count;
}

static int judge(emq_task *task, CURL *curl, CURLcode code) {
    char text[128];
    long status = 0;
    curl_off_t wait = 0;
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &wait);
    if (code == CURLE_OK && status >= 200 && status < 300) {
        return EMQ_TASK_COMPLETE;
    }
    int n = code != CURLE_OK ? snprintf(text, sizeof(text), "%s", curl_easy_strerror(code))
                             : snprintf(text, sizeof(text), "HTTP status %ld", status);
    (void)emq_task_set_error(task, text, (size_t)n);
    if (wait > 0) { /* instead of the backoff */
        (void)emq_task_set_delay(task, (int64_t)wait * 1000);
    }
    int hopeless = code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT ||
                   (status >= 400 && status < 500 && status != 408 && status != 429);
    return hopeless ? EMQ_TASK_BURY : EMQ_TASK_FAIL;
}

/* A call that was answered may be made again, where its worker dies before the job is settled: the
 * job's id goes with it, by which the other side can tell. */
static int call(emq_task *task, void *user) {
    (void)user;
    char key[64];
    const char *url = emq_task_get_payload(task, NULL); /* the URL, a line break, the body */
    char *address = url == NULL ? NULL : strndup(url, strcspn(url, "\n"));
    CURL *curl = curl_easy_init();
    int verdict = EMQ_TASK_FAIL;
    (void)snprintf(key, sizeof(key), "Idempotency-Key: %s", emq_task_get_id(task)->text);
    struct curl_slist *headers = curl_slist_append(NULL, key);
    if (address != NULL && curl != NULL && headers != NULL) {
        const char *body = url + strlen(address) + (url[strlen(address)] == '\n');
        (void)curl_easy_setopt(curl, CURLOPT_URL, address);
        (void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
        (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
        (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop_body);
        (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L); /* there are other threads */
        (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 10000L);
        verdict = judge(task, curl, curl_easy_perform(curl));
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    free(address);
    return verdict;
}

static int work(const char *address) {
    emq_worker_options options = EMQ_WORKER_OPTIONS_INIT;
    emq_worker_queue queue = EMQ_WORKER_QUEUE_INIT;
    emq_worker *worker = NULL;
    emq_url *url = NULL;
    char error[256] = "";
    options.concurrency = 8;
    queue.max_failures = 4;
    queue.backoff = EMQ_BACKOFF_JITTER; /* a fleet that failed together comes back apart */
    queue.backoff_base_ms = 200;
    queue.backoff_max_ms = 60000;
    int result = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? EMQ_OK : EMQ_ESYSTEM;
    result = result ? result : emq_worker_block_signals();
    result = result ? result : emq_url_parse(&url, address, error, sizeof(error));
    result = result ? result : emq_worker_open(&worker, emq_url_get_options(url), &options);
    result = result ? result : emq_worker_add(worker, QUEUE, call, NULL, &queue);
    result = result ? result : emq_worker_start(worker);
    if (result == EMQ_OK) {
        result = emq_worker_run(NULL, worker, 12000); /* longer than a call may take */
    } else if (worker != NULL) {
        (void)emq_worker_copy_error(error, sizeof(error), worker);
        fprintf(stderr, "webhook: %s\n", error);
    }
    emq_worker_free(worker);
    emq_url_free(url);
    return result;
}

/* The newest ones; who has more dead letters than that calls it again, or reads on page by page. */
static int visit_dead(emq_client *client, int revive) {
    emq_ids *page = NULL;
    int result = emq_ids_browse(&page, client, QUEUE, EMQ_KEY_DEAD, NULL, 0, 10000);
    for (size_t i = 0; i < emq_ids_get_count(page) && result >= 0; i++) {
        emq_id id;
        emq_row *row = NULL;
        size_t n = 0;
        const char *text = emq_ids_get_text(page, i, &n);
        result = emq_id_parse(&id, text, n);
        if (result == EMQ_OK && revive) {
            result = emq_reprocess(client, QUEUE, &id);
        } else if (result == EMQ_OK && emq_row_read(&row, client, QUEUE, &id) == EMQ_OK) {
            const char *why = emq_row_get_last_error(row, NULL);
            printf("%s %s\n", text, why == NULL ? "" : why);
        }
        emq_row_free(row);
    }
    emq_ids_free(page);
    return result < 0 ? result : EMQ_OK; /* one that is gone: somebody was faster */
}

static int send_one(emq_client *client, const char *url, const char *body) {
    char payload[8192];
    emq_id id = {{0}};
    int n = snprintf(payload, sizeof(payload), "%s\n%s", url, body);
    return n < 0 || (size_t)n >= sizeof(payload)
               ? EMQ_ETOOBIG
               : emq_enqueue(&id, client, QUEUE, payload, (size_t)n);
}

int main(int argc, char **argv) {
    const char *address = getenv("EMQ_URL") ? getenv("EMQ_URL") : "redis://127.0.0.1";
    const char *verb = argc > 1 ? argv[1] : "";
    int sends = strcmp(verb, "send") == 0, works = strcmp(verb, "work") == 0;
    int lists = strcmp(verb, "dead") == 0, revives = strcmp(verb, "reprocess") == 0;
    emq_client *client = NULL;
    if (argc != (sends ? 4 : 2) || !(sends || works || lists || revives)) {
        fprintf(stderr, "Usage: webhook send URL BODY | work | dead | reprocess\n"
                        "EMQ_URL tells where the server is.\n");
        return 2;
    }
    int result = works ? work(address) : emq_client_open_url(&client, address);
    if (result == EMQ_OK && !works) {
        result = sends ? send_one(client, argv[2], argv[3]) : visit_dead(client, revives);
    }
    if (result != EMQ_OK) {
        fprintf(stderr, "webhook: %s\n", emq_strerror(result));
    }
    emq_client_close(client);
    return result == EMQ_OK ? 0 : 1;
}
