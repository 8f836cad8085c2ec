#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark: prepares everything, runs the contenders on this machine in one run, rounds
# interleaved, and reports medians with their ranges, as ratios. docs/performance.md tells the method.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: bench/run.sh [--full | --quick] [--minutes N] [--rounds N] [--only PATTERN] [--build DIR]
                    [--out DIR] [--plan] [--help]

Builds the driver and the module, starts private servers, and measures what bench/targets.txt asks for,
in as many rounds as fit into the time. Every run checks that each job was delivered once and completed
once. Prints the report; writes into the folder DIR:

  results.jsonl  one line for each run of a cell, as it was measured
  report.json    medians, ranges, ratios, and the machine
  report.txt     what was printed
  targets.md     the table of docs/performance.md
  *.svg          the plots, where gnuplot is found or can be installed

  --full         the whole matrix, without a limit of time; a second call goes on where the first was ended
  --quick        few jobs, one round, in seconds: that everything works; the figures say nothing
  --minutes N    no round is begun that would end later than N minutes after the first (default 13)
  --rounds N     at most so many rounds (default 9)
  --only PATTERN the cells whose names match, a pattern as of bash's [[ == ]]; a cell is called
                 what/contender/…
  --build DIR    a build tree with EMQ_BUILD_BENCH=ON and the module (default: builds build/bench)
  --out DIR      default build/bench-out, with --full build/bench-full
  --plan         prints the cells and ends

Servers listen on 127.0.0.1 and in private folders only, and are ended at the end. Peers are fetched into
${XDG_CACHE_HOME:-~/.cache}/emq and not installed; one that can't be had is reported with its reason.

Exit status: 0 measured, whatever the figures; 1 a run failed or lost a job; 2 wrong use.
TEXT
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
mode=default
minutes=13
rounds=9
only='*'
build=
out=
plan_only=

say() { printf 'bench: %s\n' "$1" >&2; }

fail() {
    say "$1"
    exit "${2:-1}"
}

number() { # number NAME VALUE MAX
    [[ $2 =~ ^[1-9][0-9]{0,5}$ && $2 -le $3 ]] || fail "$1 takes a number from 1 to $3" 2
}

while (($# > 0)); do
    case $1 in
    --help | -h)
        usage
        exit 0
        ;;
    --full) mode=full minutes=100000 ;;
    --quick) mode=quick rounds=1 ;;
    --plan) plan_only=yes ;;
    --minutes | --rounds | --only | --build | --out)
        (($# > 1)) || fail "$1 needs a value" 2
        case $1 in
        --minutes) number "$1" "$2" 100000 && minutes=$2 ;;
        --rounds) number "$1" "$2" 999 && rounds=$2 ;;
        --only) only=$2 ;;
        --build) build=$2 ;;
        --out) out=$2 ;;
        esac
        shift
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
    shift
done

# shellcheck source=bench/servers.sh
. "$root/bench/servers.sh"
# shellcheck source=bench/peers.sh
. "$root/bench/peers.sh"
# shellcheck source=bench/cells.sh
. "$root/bench/cells.sh"
plan_cells

if [[ -n $plan_only ]]; then
    printf '%s\n' "${names[@]}"
    exit 0
fi
((${#names[@]} > 0)) || fail "no cell's name matches $only" 2

# The driver and the module.
if [[ -z $build ]]; then
    build=$root/build/bench
    "$root/tools/deps.sh" build server
    say "building into $build"
    mkdir -p "$build"
    cmake -S "$root" -B "$build" -DEMQ_BUILD_BENCH=ON -DEMQ_BUILD_EXAMPLES=OFF -DCMAKE_BUILD_TYPE=Release \
        -DVALKEYMODULE_INCLUDE_DIR="$("$root/tools/get-valkey.sh" --print include)" >"$build/log" 2>&1 &&
        cmake --build "$build" -j "$(nproc)" >>"$build/log" 2>&1 || {
        tail -n 20 "$build/log" >&2
        fail 'the build failed'
    }
fi
driver=$build/bench/emq_bench
module=$build/module/emq.so
[[ -x $driver && -f $module ]] || fail "no driver or no module in $build"

default_out=$root/build/bench-out
[[ $mode != full ]] || default_out=$root/build/bench-full
out=${out:-$default_out}
mkdir -p "$out"
out=$(cd "$out" && pwd)
results=$out/results.jsonl

facts() {
    printf 'commit=%s\n' "$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)"
    printf 'cpu=%s\n' "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
    printf 'cores=%s\n' "$(nproc)"
    printf 'kernel=%s\n' "$(uname -sr)"
    printf 'server=%s\n' "$("$("$root/tools/get-valkey.sh" --print server)" --version | sed 's/ sha=.*//')"
    printf 'libraries=hiredis %s, libuv %s\n' "$(pkg-config --modversion hiredis)" "$(pkg-config --modversion libuv)"
    local type
    type=$(sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=//p' "$build/CMakeCache.txt")
    printf 'build=%s\n' "${type:-RelWithDebInfo}, $(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")"
    printf 'payload=100 bytes, unless the cell says otherwise\n'
}

facts >"$out/facts.new"
if [[ $mode == full && -f $results ]]; then
    cmp -s "$out/facts.new" <(grep -v '^peer ' "$out/facts") ||
        fail "$out was measured on another machine or commit: give another --out, or remove it" 2
    say "going on with $(wc -l <"$results") runs in $results"
else
    : >"$results"
fi
mv "$out/facts.new" "$out/facts"

trap stop_servers EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

unmeasured() { # unmeasured CELL REASON
    local line
    line=$(printf '{"cell":"%s","round":0,"unmeasured":"%s"}' "$1" "${2//\"/}")
    ! grep -qF "$line" "$results" || return 0
    say "$1: unmeasured: $2"
    printf '%s\n' "$line" >>"$results"
}

run_cell() { # run_cell INDEX ROUND
    local name=${names[$1]} server=${servers[$1]}
    if ! start_server "$server"; then
        unmeasured "$name" "$peer_reason"
        return 0
    fi
    # shellcheck disable=SC2086
    "${runner[$1]}" "$name" "$2" "$server" ${arguments[$1]} >>"$results" ||
        fail "$name: the run failed: this benchmark proves nothing"
}

drive() { # drive CELL ROUND SERVER MEASURE CONTENDER [NAME=VALUE]...
    local cell=$1 round=$2 server=$3 measure=$4 contender=$5
    shift 5
    "$driver" "$measure" "$contender" cell="$cell" round="$round" pid="${server_pid[$server]}" \
        port="${server_port[$server]}" scripts="$root/tests/diff/reference" "$@"
}

time_text() { # time_text SECONDS
    if (($1 < 90)); then echo "$1 s"; else echo "$((($1 + 59) / 60)) min"; fi
}

say "plan: ${#names[@]} cells, up to $rounds rounds$([[ $mode == full ]] || echo ", $minutes minutes at most")"
begun=$SECONDS
longest=0
for ((round = 1; round <= rounds; round++)); do
    left=$((begun + minutes * 60 - SECONDS))
    if ((round > 1 && longest * 11 / 10 > left)); then
        say "no time for another round: $((round - 1)) of $rounds were run"
        break
    fi
    round_begun=$SECONDS
    shown=$SECONDS
    for ((i = 0; i < ${#names[@]}; i++)); do
        ((round <= most_rounds[i])) || continue
        ! grep -qF "{\"cell\":\"${names[i]}\",\"round\":$round," "$results" || continue
        if ((SECONDS - shown >= 15 || i == 0)); then
            shown=$SECONDS
            text="round $round of $rounds, cell $((i + 1)) of ${#names[@]}"
            if ((longest > 0)); then
                estimate=$((longest * (rounds - round + 1) - (SECONDS - round_begun)))
                ((estimate <= begun + minutes * 60 - SECONDS)) || estimate=$((begun + minutes * 60 - SECONDS))
                text+=", $(time_text $((estimate > 0 ? estimate : 1))) left at most"
            fi
            say "$text"
        fi
        run_cell "$i" "$round"
    done
    ((SECONDS - round_begun <= longest)) || longest=$((SECONDS - round_begun))
done
stop_servers
peer_facts >>"$out/facts"

"$build/bench/emq_bench_report" "$out" "$root/bench/targets.txt" | tee "$out/report.txt"
if [[ $only != '*' ]]; then
    say 'some cells alone: no plots'
elif command -v gnuplot >/dev/null || { [[ $mode != quick ]] && "$root/tools/deps.sh" plot; }; then
    (cd "$out" && gnuplot "$root/bench/plot.gp") || say 'gnuplot failed: no plots'
fi
say "results in $out, after $(time_text $((SECONDS - begun)))"
