#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark: what a job costs the server, native verbs beside the reference scripts, on one server
# in one run. Prints ratios of server CPU time; absolute figures are this machine's and say little.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: bench/run.sh [--jobs N] [--rounds N] [--pending N] [--module FILE] [--help]

Runs enqueue, claim and complete of N jobs (default 200000, 100-byte payload) through the native verbs
and through the reference Lua scripts, rounds interleaved (default 5), 20 connections 32 deep, AOF off.
Prints the median and the range of: user + system time of the server process per job, and the ratio
native / script. Every round checks that each job was completed once.

  --jobs N       jobs of a round, 1000 to 5000000
  --rounds N     rounds, 1 to 100
  --pending N    jobs that wait behind those of a round the whole time, up to 5000000 (default none); run it
                 with 1000 and with 1000000 to see what the depth of a queue costs
  --module FILE  the built module (default: that of ./check.sh or of the README's build)
TEXT
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=200000
rounds=5
pending=0
module=
for built in "$root/build/gcc/module/emq.so" "$root/build/release/module/emq.so"; do
    [[ -n $module || ! -f $built ]] || module=$built
done

fail() {
    printf 'bench: %s\n' "$1" >&2
    exit "${2:-1}"
}

number() { # number NAME VALUE MIN MAX
    [[ $2 =~ ^[1-9][0-9]{0,8}$ ]] && (($2 >= $3 && $2 <= $4)) || fail "$1 takes a number from $3 to $4" 2
}

while (($# > 0)); do
    case $1 in
    --help | -h)
        usage
        exit 0
        ;;
    --jobs | --rounds | --pending | --module)
        (($# > 1)) || fail "$1 needs a value" 2
        case $1 in
        --jobs) number "$1" "$2" 1000 5000000 && jobs=$2 ;;
        --rounds) number "$1" "$2" 1 100 && rounds=$2 ;;
        --pending) number "$1" "$2" 1 5000000 && pending=$2 ;;
        --module) module=$2 ;;
        esac
        shift 2
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
done
[[ -f $module ]] || fail "no module${module:+ at $module}: build it (README.md), or give --module FILE"

server_bin=$("$root/tools/get-valkey.sh" --print server)
cli_bin=$("$root/tools/get-valkey.sh" --print cli)
bench_bin=$(dirname "$server_bin")/valkey-benchmark
[[ -x $bench_bin ]] || fail "no valkey-benchmark beside $server_bin"

dir=
stop_server() {
    if [[ -n $dir ]]; then
        "$root/tools/server.sh" stop "$dir" >/dev/null || true
        dir=
    fi
}
trap stop_server EXIT
trap 'exit 130' INT TERM

while IFS='=' read -r name value; do
    case $name in
    dir) dir=$value ;;
    socket) socket=$value ;;
    pid) pid=$value ;;
    esac
done < <("$root/tools/server.sh" start --module "$module" --conf 'appendonly no' --conf 'save ""')
[[ -n $dir ]] || fail "the server did not start"

cli() { "$cli_bin" -s "$socket" "$@"; }

ticks() { # user + system time of the server, in clock ticks
    local fields
    fields=$(sed 's/.*) //' "/proc/$pid/stat")
    # shellcheck disable=SC2086
    set -- $fields
    echo $((${12} + ${13}))
}

queue='emq:{bench}:'
id='JOB__rand_1st__'
payload=$(printf 'x%.0s' {1..100})
for verb in enqueue claim complete; do
    declare "sha_$verb=$(cli SCRIPT LOAD "$(cat "$root/tests/diff/reference/$verb.lua")")"
done

run() { # run COMMAND...: $jobs of them, prints the server's ticks
    local before after
    before=$(ticks)
    "$bench_bin" -s "$socket" -n "$jobs" -r "$jobs" --sequential -c 20 -P 32 -q "$@" >/dev/null
    after=$(ticks)
    echo $((after - before))
}

tail_enqueue=(2 "${queue}job:$id" "${queue}pending" "$id" "$payload")
tail_claim=(3 "${queue}pending" "${queue}active" "$queue" 3600000)
tail_complete=(3 "${queue}active" "${queue}job:$id" "$queue" "$id" 1)

# Their ids come after those of a round in byte order: a claim never takes one.
behind='JOBz__rand_1st__'
if ((pending > 0)); then
    "$bench_bin" -s "$socket" -n "$pending" -r "$pending" --sequential -c 20 -P 32 -q EMQ.ENQUEUE 2 \
        "${queue}job:$behind" "${queue}pending" "$behind" "$payload" >/dev/null
fi

results=$dir/results
lifecycle() { # lifecycle SIDE: one line per verb
    local side=$1 verb
    for verb in enqueue claim complete; do
        local -n tail=tail_$verb
        local -n sha=sha_$verb
        if [[ $side == native ]]; then
            echo "$verb $side $(run "EMQ.${verb^^}" "${tail[@]}")" >>"$results"
        else
            echo "$verb $side $(run EVALSHA "$sha" "${tail[@]}")" >>"$results"
        fi
    done
    local completed left
    completed=$(cli HGET "${queue}metrics:completed" count)
    left=$(($(cli ZCARD "${queue}pending") + $(cli EXISTS "${queue}active")))
    [[ $completed == "$jobs" && $left == "$pending" ]] ||
        fail "$side: $completed of $jobs jobs completed, $left of $pending left"
    cli DEL "${queue}metrics:completed" >/dev/null
}

printf 'bench: %s, %s cores, %s, %s jobs, %s rounds, %s pending behind them, 20 connections 32 deep, AOF off\n' \
    "$("$server_bin" --version | sed 's/ sha=.*//')" "$(nproc)" \
    "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)" "$jobs" "$rounds" "$pending" >&2
for ((round = 1; round <= rounds; round++)); do
    printf 'bench: round %d of %d\n' "$round" "$rounds" >&2
    lifecycle native
    lifecycle script
done

awk -v jobs="$jobs" -v tick="$(getconf CLK_TCK)" '
    function sorted(list, n,    i, j, t) {
        for (i = 2; i <= n; i++)
            for (j = i; j > 1 && list[j] < list[j - 1]; j--) {
                t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
            }
    }
    { n[$1, $2]++; cost[$1, $2, n[$1, $2]] = $3 * 1e6 / tick / jobs; seen[$1] = 1 }
    END {
        printf "%-9s %28s %28s %26s\n", "verb", "native us/job", "script us/job", "native / script"
        split("enqueue claim complete", order, " ")
        for (v = 1; v <= 3; v++) {
            verb = order[v]; count = n[verb, "native"]
            for (i = 1; i <= count; i++) {
                a[i] = cost[verb, "native", i]; b[i] = cost[verb, "script", i]
                r[i] = b[i] > 0 ? a[i] / b[i] : 0
            }
            sorted(a, count); sorted(b, count); sorted(r, count)
            m = int((count + 1) / 2)
            printf "%-9s %12.2f (%5.2f to %5.2f) %12.2f (%5.2f to %5.2f) %10.2f (%4.2f to %4.2f)\n", verb,
                a[m], a[1], a[count], b[m], b[1], b[count], r[m], r[1], r[count]
        }
    }' "$results"
