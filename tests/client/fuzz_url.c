/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a URL, for libFuzzer. */
#include <emq/url.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char error[64];
    emq_url *url = NULL;
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    int result = emq_url_parse(&url, text, error, sizeof(error));
    if ((result == 0) != (url != NULL) || (result == 0) != (error[0] == '\0')) {
        abort();
    }
    emq_url_free(url);
    free(text);
    return 0;
}
