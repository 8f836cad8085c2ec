/* SPDX-License-Identifier: Apache-2.0 */
/* Reading hosts and ports. Nothing is looked up. */
#include "address.h"

#include <arpa/inet.h>
#include <string.h>

int emq_number_read(uint64_t *out, const char *digits, size_t n, uint64_t limit) {
    uint64_t number = 0;
    for (size_t i = 0; i < n; i++) {
        if (digits[i] < '0' || digits[i] > '9') {
            return 0;
        }
        uint64_t digit = (uint64_t)(digits[i] - '0');
        if (digit > limit || number > (limit - digit) / 10) {
            return 0;
        }
        number = number * 10 + digit;
    }
    *out = number;
    return n > 0;
}

static int name_valid(const char *host) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789.-_";
    size_t length = strlen(host);
    return length > 0 && length <= EMQ_HOST_MAX && strspn(host, allowed) == length;
}

/* An IPv6 address, which may have a zone behind a %. */
static int ipv6_valid(const char *host) {
    char address[INET6_ADDRSTRLEN];
    struct in6_addr ignored;
    size_t length = strcspn(host, "%");
    if (length >= sizeof(address) || (host[length] == '%' && !name_valid(host + length + 1))) {
        return 0;
    }
    memcpy(address, host, length);
    address[length] = '\0';
    return inet_pton(AF_INET6, address, &ignored) == 1;
}

int emq_host_valid(const char *host) {
    return name_valid(host) || ipv6_valid(host);
}

/* Takes the host over; returns 0 when it is too long for one. */
static int take_host(emq_address *out, const char *host, size_t n) {
    if (n > EMQ_HOST_MAX) {
        return 0;
    }
    memcpy(out->host, host, n);
    out->host[n] = '\0';
    return strlen(out->host) == n;
}

/* What is behind the host: nothing, or a colon and a port. */
static const char *read_port(emq_address *out, const char *text, size_t n) {
    uint64_t number = 0;
    out->port = 0;
    if (n == 0) {
        return NULL;
    }
    if (!emq_number_read(&number, text + 1, n - 1, UINT16_MAX) || number == 0) {
        return "has a port that is no number from 1 to 65535 (an IPv6 address stands in brackets)";
    }
    out->port = (uint16_t)number;
    return NULL;
}

static const char *read_ipv6(emq_address *out, const char *text, size_t n) {
    const char *end = memchr(text, ']', n);
    size_t length = end == NULL ? n : (size_t)(end - text) + 1;
    if (end == NULL || (length < n && text[length] != ':') ||
        !take_host(out, text + 1, length - 2) || !ipv6_valid(out->host)) {
        return "has no IPv6 address in its brackets, or no port behind them";
    }
    return read_port(out, text + length, n - length);
}

const char *emq_address_read(emq_address *out, const char *text, size_t n) {
    if (n > 0 && *text == '[') {
        return read_ipv6(out, text, n);
    }
    const char *colon = n > 0 ? memchr(text, ':', n) : NULL;
    size_t length = colon == NULL ? n : (size_t)(colon - text);
    if (length == 0) {
        return "has no host";
    }
    if (!take_host(out, text, length) || !name_valid(out->host)) {
        return "has a host that is no name and no address";
    }
    return read_port(out, text + length, n - length);
}

const char *emq_addresses_read(emq_address *out, int max, int *count, const char *text) {
    const char *wrong = NULL;
    *count = 0;
    for (;;) {
        size_t length = strcspn(text, ",");
        if (*count == max) {
            return "has too many hosts";
        }
        wrong = emq_address_read(&out[*count], text, length);
        ++*count;
        if (wrong != NULL || text[length] == '\0') {
            return wrong;
        }
        text += length + 1;
    }
}
