#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one target of libFuzzer for some seconds: fuzz.sh NAME. The targets have a build tree of their
# own below the one that is tested, since they need clang and its sanitizers, whatever that one has.
# Without clang's runtime the test is skipped (77).
set -euo pipefail

name=$1
seconds=${EMQ_FUZZ_SECONDS:-3}
root=$EMQ_SOURCE_DIR
tree=$EMQ_BUILD_DIR/libfuzzer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

printf 'int LLVMFuzzerTestOneInput(const void *d, unsigned long n);\nint LLVMFuzzerTestOneInput(const void *d, unsigned long n) { (void)d; return n > 99; }\n' >"$work/probe.c"
if ! command -v clang >/dev/null || ! clang -fsanitize=fuzzer,address "$work/probe.c" -o "$work/probe" 2>/dev/null; then
    echo "skipped: clang with its libFuzzer runtime is missing (Debian: clang and libclang-rt-dev)"
    exit 77
fi

build() {
    cmake -S "$root" -B "$tree" -DCMAKE_C_COMPILER=clang -DEMQ_SANITIZE=fuzzer -DEMQ_WERROR=ON \
        -DEMQ_BUILD_TESTS=ON -DEMQ_BUILD_MODULE=OFF -DEMQ_BUILD_EXAMPLES=OFF -DEMQ_TEST_PARTS=client &&
        cmake --build "$tree" -j "$(nproc)" --target "fuzz_$name"
}
mkdir -p "$tree"
if ! flock "$tree" bash -c "root='$root' tree='$tree' name='$name'; $(declare -f build); build" >"$work/log" 2>&1; then
    tail -n 40 "$work/log"
    exit 1
fi

mkdir "$work/seeds"
n=0
seed() { printf "$1" >"$work/seeds/$((n += 1))"; } # seed FORMAT: what printf makes of it

seeds_url() {
    seed 'redis://u:p%%20@h:1/2?db=1&name=n'
    seed 'rediss://[::1%%25eth0]:7000?tls_ca_file=/a&tls_insecure=1'
    seed 'unix://u:p@/run/s?db=4&password_env=X'
    seed 'valkeys://h?connect_timeout_ms=5&max_payload=9'
    seed 'valkey+sentinel://u:p@h:1,[::1]:2,i/main?db=1&sentinel_username=s&sentinel_password=%%40'
}

seeds_name() {
    local kind
    for kind in '' pending metrics:completed flow:outbox:bad events:seq job:JOB0KHTOWnGLuC \
        job:JOB0KHTOWnGLuC:logs g:red:pending de:d stream:s:failures; do
        seed "emq:{q}:$kind"
    done
    seed '{emq}:version'
    seed 'JOB0KHTOWnGLuC'
    seed '9223372036854775807'
}

seeds_event() {
    seed '{"event":"e","job":"j","seq":2}'
    seed '{"event_b64":"/w==","job":"\\u00e9","seq":-1,"x_b64":"/wD+","":"","y_b64":"YWJj"}'
    seed '{"job_b64":"gA==","seq":9223372036854775807,"event":"\\"\\\\","n":"a\\u0000b"}'
}

# The first byte is the decoder: each of them sees each reply.
seeds_reply() {
    local decoder reply byte
    for ((decoder = 0; decoder < 40; decoder++)); do
        printf -v byte '\\%03o' "$decoder"
        for reply in ':1\r\n' '$-1\r\n' '+OK\r\n' '$9\r\nscheduled\r\n' '-EMQSTALE complete token mismatch\r\n' \
            '*3\r\n$14\r\nJOB0KHTOWnGLuC\r\n$1\r\np\r\n:1\r\n' '*1\r\n*3\r\n$14\r\nJOB0KHTOWnGLuC\r\n$1\r\np\r\n:1\r\n' \
            '*2\r\n*1\r\n$14\r\nJOB0KHTOWnGLuC\r\n*0\r\n' '*2\r\n:1\r\n:0\r\n' '*1\r\n$14\r\nJOB0KHTOWnGLuC\r\n' \
            '*2\r\n$1\r\nh\r\n$4\r\n6379\r\n' '*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n' \
            '*4\r\n$8\r\nattempts\r\n$1\r\n1\r\n$5\r\nstate\r\n$4\r\ndead\r\n' \
            '*4\r\n$4\r\nwire\r\n$12\r\nechomq:6.0.0\r\n$5\r\nmajor\r\n:0\r\n' \
            '*3\r\n$7\r\nmessage\r\n$19\r\nemq:{orders}:events\r\n$31\r\n{"event":"e","job":"j","seq":2}\r\n' \
            '*3\r\n$9\r\nsubscribe\r\n$19\r\nemq:{orders}:events\r\n:1\r\n' \
            ':1\r\n:1\r\n:1\r\n:1\r\n*0\r\n*0\r\n*2\r\n$6\r\npaused\r\n$1\r\n1\r\n'; do
            seed "$byte\\002$reply"
        done
    done
}

"seeds_$name"
"$tree/tests/client/fuzz_$name" -max_total_time="$seconds" -max_len=4096 -print_final_stats=1 \
    -artifact_prefix="$work/" "$work/seeds" >"$work/log" 2>&1 || {
    tail -n 60 "$work/log"
    for found in "$work"/crash-* "$work"/timeout-* "$work"/leak-* "$work"/oom-*; do
        [[ -f $found ]] && base64 "$found"
    done
    exit 1
}
tail -n 8 "$work/log"
