#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libemq.so exports exactly the functions that the public headers mark, and libemq.a takes no name
# outside of emq_.
#
#     symbols_test.sh SHARED-LIBRARY STATIC-LIBRARY
set -euo pipefail
export LC_ALL=C

include=${EMQ_SOURCE_DIR:?run the tests through ctest}/include

declared=$(cat "$include"/emq/*.h | tr '\n' ' ' | grep -oE 'EMQ_API [^;]*' |
    grep -oE '\bemq_[a-z0-9_]+\(' | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$1" | awk '{ print $3 }' | sort -u)
[[ -n $declared ]] || { echo 'no function found in the headers' >&2; exit 1; }
diff <(printf '%s\n' "$declared") <(printf '%s\n' "$exported") || {
    echo 'declared (<) and exported (>) functions differ' >&2
    exit 1
}

if nm -g --defined-only "$2" | awk 'NF == 3 { print $3 }' | grep -vE '^(emq_|__odr_asan\.emq_)'; then
    echo 'the static library takes these names from the program that links it' >&2
    exit 1
fi
readelf -d "$1" | grep 'SONAME.*\[libemq\.so\.0\]' >/dev/null || { echo 'the soname is wrong' >&2; exit 1; }
echo "$(wc -l <<<"$exported") functions are exported"
