/* SPDX-License-Identifier: Apache-2.0 */
/* An asynchronous client on a loop of its own, open when the clock begins to run. */
#include "async_run.h"

static void on_state(emq_async *client, emq_async_state state, int reason, void *user) {
    async_run *run = user;
    if (state == EMQ_ASYNC_CLOSED || state == EMQ_ASYNC_REFUSED) {
        bench_die(run->b, "the asynchronous client: %s: %s", emq_err_name(reason),
                  emq_async_get_error(client));
    }
    if (state == EMQ_ASYNC_OPEN) {
        uv_stop(&run->loop);
    }
}

void async_run_open(async_run *run, bench *b) {
    emq_client_options options;
    emq_async_options async_options = EMQ_ASYNC_OPTIONS_INIT;
    bench_client_options(&options, b);
    async_options.on_state = on_state;
    async_options.user = run;
    run->b = b;
    bench_check(b, uv_loop_init(&run->loop) == 0, "no loop");
    int result = emq_async_open(&run->client, &run->loop, &options, &async_options);
    bench_expect(b, result, "emq_async_open", "");
    async_run_wait(run);
}

void async_run_wait(async_run *run) {
    (void)uv_run(&run->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&run->loop); /* refused while it has handles: until it is open */
}

void async_run_close(async_run *run) {
    (void)emq_async_close(run->client, NULL, NULL);
}
