#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libemq keeps no state of the process but the counter and the node number of ids,
# the allocator, and how many look-ups nobody waits for; it takes no signal and installs no handler but the one for forks that ids need.
#
#     state_test.sh STATIC-LIBRARY
set -euo pipefail
export LC_ALL=C

# Writable data: what lies in .data or .bss (.data.rel.ro is read-only once it is loaded).
allowed='^(id\.c\.o:(last_minted|node_number|parent_node|once\.[0-9]+|get_node\.once)|memory\.c\.o:(allocator|is_settled)|resolve\.c\.o:abandoned)$'
found=$(nm -A --format=sysv --defined-only "$1" | tr -d ' ' |
    awk -F'|' '$7 ~ /^\.(t?data|t?bss)(\.|$)/ && $7 !~ /^\.data\.rel\.ro/ && $1 !~ /__(asan|odr|tsan|ubsan|unnamed)|:\.L/ {
        n = split($1, path, ":"); print path[n - 1] ":" path[n] }' | sort -u)
[[ $found == *id.c.o:last_minted* ]] || { echo 'the counter of ids was not found' >&2; exit 1; }
if grep -vE "$allowed" <<<"$found"; then
    echo 'this is writable state of the whole process' >&2
    exit 1
fi

if nm -A --undefined-only "$1" | grep -E ' U (sigaction|signal|sigaltstack|bsd_signal|sigset|atexit|on_exit|__cxa_atexit)$'; then
    echo 'the library installs a handler' >&2
    exit 1
fi
if nm -A --undefined-only "$1" | grep -E ' U (pthread|__register)_atfork$' | grep -v 'id\.c\.o:'; then
    echo 'the library watches forks' >&2
    exit 1
fi
