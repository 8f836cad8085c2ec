#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the URL parser with libFuzzer and feeds it for some seconds. The sources are compiled anew:
# whatever compiler and sanitizer the tree has, this one needs clang's. Without that runtime the test
# is skipped (77).
set -euo pipefail

seconds=${1:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$EMQ_SOURCE_DIR

printf 'int LLVMFuzzerTestOneInput(const void *d, unsigned long n);\nint LLVMFuzzerTestOneInput(const void *d, unsigned long n) { (void)d; return n > 99; }\n' >"$work/probe.c"
if ! command -v clang >/dev/null || ! clang -fsanitize=fuzzer,address "$work/probe.c" -o "$work/probe" 2>/dev/null; then
    echo "skipped: clang with its libFuzzer runtime is missing (Debian: clang and libclang-rt-dev)"
    exit 77
fi

sources=("$root"/tests/client/fuzz_url.c "$root"/src/*.c)
for name in url address settings text result dial resolve deadline memory tls_none; do
    sources+=("$root/libemq/$name.c")
done
clang -std=c11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
    -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE -I"$root/include" -I"$root/src" -I"$root/libemq" \
    $(pkg-config --cflags hiredis) "${sources[@]}" -o "$work/fuzz" $(pkg-config --libs hiredis) -lpthread

mkdir "$work/seeds"
n=0
for url in 'redis://u:p%20@h:1/2?db=1&name=n' 'rediss://[::1%25eth0]:7000?tls_ca_file=/a&tls_insecure=1' \
    'unix://u:p@/run/s?db=4&password_env=X' 'valkeys://h?connect_timeout_ms=5&max_payload=9' \
    'valkey+sentinel://u:p@h:1,[::1]:2,i/main?db=1&sentinel_username=s&sentinel_password=%40'; do
    printf '%s' "$url" >"$work/seeds/$((n += 1))"
done
"$work/fuzz" -max_total_time="$seconds" -max_len=256 -print_final_stats=1 -artifact_prefix="$work/" \
    "$work/seeds" >"$work/log" 2>&1 || {
    cat "$work/log"
    for found in "$work"/crash-* "$work"/timeout-* "$work"/leak-* "$work"/oom-*; do
        [[ -f $found ]] && base64 "$found"
    done
    exit 1
}
tail -n 8 "$work/log"
