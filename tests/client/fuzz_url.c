/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a URL. */
#include <emq/url.h>
#include <string.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char error[64];
    emq_url *url = NULL;
    char *text = malloc(size + 1);
    MUST(text != NULL);
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    int result = emq_url_parse(&url, text, error, sizeof(error));
    MUST((result == 0) == (url != NULL));
    MUST((result == 0) == (error[0] == '\0'));
    emq_url_free(url);
    free(text);
    return 0;
}
