/* SPDX-License-Identifier: Apache-2.0 */
/* Admits one job for each line of standard input, each NUL-terminated record, or each file that is
 * named; in batches. When the connection is lost a batch is repeated under the same ids, so that no
 * job is admitted twice, and when that is in vain it says what is known of which record. */
#include <emq/emq.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH_JOBS 500
#define BATCH_BYTES ((size_t)1024 * 1024)
#define TRIES 30 /* one a second */

typedef struct producer {
    emq_client *client;
    const char *queue;
    emq_id ids[BATCH_JOBS];
    emq_bytes payloads[BATCH_JOBS];
    char *owned[BATCH_JOBS]; /* the same, to be freed */
    int results[BATCH_JOBS];
    size_t count; /* jobs in the batch, */
    size_t bytes; /* and their payloads' bytes */
    uint64_t admitted;
} producer;

static int can_repeat(int result) {
    emq_class class = emq_err_class(result);
    return class == EMQ_CLASS_RETRYABLE || class == EMQ_CLASS_UNKNOWN;
}

/* The ids are minted by the first call and in place before anything is sent: under them a repeat
 * finds what was admitted already. */
static int send_batch(producer *p, int *unknown) {
    int result = EMQ_OK;
    for (int i = 0; i < TRIES; i++) {
        if (i > 0) {
            fprintf(stderr, "producer: %s; trying again\n", emq_client_get_error(p->client));
            (void)nanosleep(&(struct timespec){1, 0}, NULL);
            result = emq_client_is_open(p->client) ? EMQ_OK : emq_client_reconnect(p->client);
        }
        if (result == EMQ_OK) {
            result = emq_enqueues(p->results, p->ids, p->client, p->queue, p->payloads, p->count);
            *unknown = *unknown || emq_err_class(result) == EMQ_CLASS_UNKNOWN;
        }
        if (!can_repeat(result)) {
            break;
        }
    }
    return result;
}

static int flush_batch(producer *p) {
    int unknown = 0;
    int result = p->count == 0 ? EMQ_OK : send_batch(p, &unknown);
    uint64_t first = p->admitted + 1;
    if (result == EMQ_OK) {
        p->admitted += p->count; /* new, or a duplicate of an earlier try: both are admitted */
    } else {
        fprintf(stderr, "producer: %s\n", emq_client_get_error(p->client));
        fprintf(stderr, "producer: records %" PRIu64 " to %" PRIu64 " %s\n", first,
                first + p->count - 1,
                unknown ? "may have been admitted or not" : "were not admitted");
    }
    for (size_t i = 0; i < p->count; i++) {
        free(p->owned[i]);
    }
    memset(p->ids, 0, sizeof(p->ids)); /* zeroed: to be minted */
    p->count = p->bytes = 0;
    return result == EMQ_OK ? 0 : -1;
}

/* Takes the payload over: it is freed with the batch. */
static int add(producer *p, char *payload, size_t size) {
    int result = p->bytes + size > BATCH_BYTES ? flush_batch(p) : 0;
    p->owned[p->count] = payload;
    p->payloads[p->count++] = (emq_bytes){payload, size};
    p->bytes += size;
    return result == 0 && p->count == BATCH_JOBS ? flush_batch(p) : result;
}

static int add_records(producer *p, int delimiter) {
    for (;;) {
        char *record = NULL;
        size_t capacity = 0;
        ssize_t n = getdelim(&record, &capacity, delimiter, stdin);
        if (n < 0) {
            free(record);
            return ferror(stdin) ? -1 : 0;
        }
        size_t size = (size_t)n - (record[n - 1] == (char)delimiter);
        if (add(p, record, size) != 0) {
            return -1;
        }
    }
}

static int add_file(producer *p, const char *name) {
    FILE *file = fopen(name, "rb");
    long end = file != NULL && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
    size_t size = end < 0 ? 0 : (size_t)end;
    char *content = end < 0 ? NULL : malloc(size + 1);
    int whole =
        content != NULL && fseek(file, 0, SEEK_SET) == 0 && fread(content, 1, size, file) == size;
    if (!whole) {
        perror(name);
        free(content);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return whole ? add(p, content, size) : -1;
}

int main(int argc, char **argv) {
    static producer p; /* too large for a stack */
    int delimiter = argc > 1 && strcmp(argv[1], "-0") == 0 ? '\0' : '\n';
    int first = delimiter == '\0' ? 2 : 1;
    const char *url = getenv("EMQ_URL");
    if (argc <= first || argv[first][0] == '-' || !emq_queue_valid(argv[first])) {
        fprintf(stderr, "Usage: producer [-0] QUEUE <RECORDS, or: producer QUEUE FILE...\n"
                        "EMQ_URL tells where the server is.\n");
        return 2;
    }
    p.queue = argv[first];
    int result = emq_client_open_url(&p.client, url == NULL ? "redis://127.0.0.1" : url);
    if (result != EMQ_OK) {
        fprintf(stderr, "producer: %s\n", emq_client_get_error(p.client));
    } else if (argc == first + 1) {
        result = add_records(&p, delimiter);
    }
    for (int i = first + 1; i < argc && result == EMQ_OK; i++) {
        result = add_file(&p, argv[i]);
    }
    int last = result == EMQ_OK || p.count > 0 ? flush_batch(&p) : -1;
    printf("%" PRIu64 " jobs are known to be admitted\n", p.admitted);
    emq_client_close(p.client);
    return result == EMQ_OK && last == EMQ_OK ? 0 : 1;
}
