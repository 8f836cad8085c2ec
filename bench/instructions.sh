#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a verb costs the server in instructions: native, batched, the reference script, and the same effects
# as bare commands, in one server under callgrind. Independent of the machine's load.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: bench/instructions.sh [--jobs N] [--module FILE] [--aof] [--user RULES] [--check] [--keep DIR] [--help]

Runs enqueue, claim and complete of N jobs (default 4000, 100-byte payload) through each contender, one
after the other on one connection, and counts the instructions that the server process executes, its
reading and replying included. Prints them per job, and as ratios. Needs valgrind.

  --jobs N       jobs of each contender, a multiple of 32, 320 to 100000
  --module FILE  the built module (default: that of ./check.sh or of the README's build)
  --aof          with the append-only file on (everysec); otherwise off
  --user RULES   as a user with these rules of ACL SETUSER, and not as the default one
  --check        exit with 1 when a ratio is above its limit, which this script holds
  --keep DIR     leave one callgrind profile for each contender and verb there

Exit status: 0 done; 1 it failed, or a ratio is above its limit; 2 wrong use.
TEXT
}

# Ratios that --check allows: what was reached, and two per cent for another compiler or server.
limits='
enqueue native/bare 1.005
claim native/bare 0.750
complete native/bare 1.389
enqueue native/script 0.524
claim native/script 0.403
complete native/script 0.600
'

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=4000
module=
aof=no
rules=
check=
keep=
for built in "$root/build/gcc/module/emq.so" "$root/build/release/module/emq.so"; do
    [[ -n $module || ! -f $built ]] || module=$built
done

fail() {
    printf 'instructions: %s\n' "$1" >&2
    exit "${2:-1}"
}

while (($# > 0)); do
    case $1 in
    --help | -h)
        usage
        exit 0
        ;;
    --aof) aof=yes ;;
    --check) check=yes ;;
    --jobs | --module | --user | --keep)
        (($# > 1)) || fail "$1 needs a value" 2
        case $1 in
        --jobs)
            [[ $2 =~ ^[1-9][0-9]{2,5}$ ]] && (($2 >= 320 && $2 <= 100000 && $2 % 32 == 0)) ||
                fail "--jobs takes a multiple of 32 from 320 to 100000" 2
            jobs=$2
            ;;
        --module) module=$2 ;;
        --user) rules=$2 ;;
        --keep) keep=$2 ;;
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
[[ -f $module ]] || fail "no module${module:+ at $module}: build it (README.md), or give --module FILE"
command -v valgrind >/dev/null || fail "needs valgrind: tools/deps.sh profile"
server_bin=$("$root/tools/get-valkey.sh" --print server)
cli_bin=$("$root/tools/get-valkey.sh" --print cli)

dir=$(mktemp -d "${TMPDIR:-/tmp}/emq-instructions-XXXXXX")
pid=
finish() {
    [[ -z $pid ]] || kill "$pid" 2>/dev/null || true
    [[ -z $pid ]] || wait "$pid" 2>/dev/null || true
    rm -rf -- "$dir"
}
trap finish EXIT
trap 'exit 130' INT TERM

# Each profile is a dump of one run: names that an earlier dump has defined must stand in it again.
profile=()
[[ -z $keep ]] || profile=(--compress-strings=no)
cat >"$dir/conf" <<TEXT
include $root/tools/valkey.conf
port 0
unixsocket $dir/s
dir $dir
logfile $dir/log
hz 1
dynamic-hz no
appendonly $aof
loadmodule $(realpath "$module")
TEXT
valgrind --tool=callgrind "${profile[@]}" --callgrind-out-file="$dir/profile" "$server_bin" "$dir/conf" \
    >"$dir/out" 2>&1 &
pid=$!

cli() { "$cli_bin" -s "$dir/s" "$@"; }
for ((i = 0; i < 600; i++)); do
    [[ $(cli PING 2>/dev/null) != PONG ]] || break
    kill -0 "$pid" 2>/dev/null || fail "the server did not start: $(tail -n 3 "$dir/out" "$dir/log")"
    sleep 0.1
done
cli EMQ.INSTALL 1 '{emq}:version' >/dev/null
run_id=$(cli INFO server | sed -n 's/^run_id:\([0-9a-f]*\).*/\1/p')
login=()
if [[ -n $rules ]]; then
    # shellcheck disable=SC2086
    cli ACL SETUSER counted reset on '>counted' $rules >/dev/null
    login=(--user counted --pass counted --no-auth-warning)
fi
for verb in enqueue claim complete; do
    declare "sha_$verb=$(cli SCRIPT LOAD "$(cat "$root/tests/diff/reference/$verb.lua")")"
done

# Writes the commands of a contender's verb, in the order of the ids, as the server reads them.
commands() { # commands CONTENDER VERB SHA
    awk -v jobs="$jobs" -v contender="$1" -v verb="$2" -v sha="$3" -v run_id="$run_id" '
        function send(line,    n, i, word) {
            n = split(line, word, " ")
            printf "*%d\r\n", n
            for (i = 1; i <= n; i++) printf "$%d\r\n%s\r\n", length(word[i]), word[i]
        }
        function single(name, tail) {
            send((contender == "script" ? "EVALSHA " sha : name) " " tail)
        }
        function bare(id, row) {
            if (verb == "enqueue") {
                send("HSET " row " state pending attempts 0 payload " payload)
                send("ZADD " base "pending 0 " id)
            } else if (verb == "claim") {
                send("ZRANGE " base "pending 0 0")
                send("HMGET " row " attempts payload")
                send("ZREM " base "pending " id)
                send("HSET " row " state active attempts 1 lease_epoch " run_id)
                send("ZADD " base "active 4102444800000 " id)
            } else {
                send("ZREM " base "active " id)
                send("DEL " row)
                send("HINCRBY " base "metrics:completed count 1")
            }
        }
        BEGIN {
            base = "emq:{" contender "}:"
            payload = sprintf("%100s", ""); gsub(/ /, "x", payload)
            for (i = 0; i < jobs; i++) {
                id = sprintf("JOB%011d", i); row = base "job:" id
                if (contender == "bare") bare(id, row)
                else if (contender != "batch" && verb == "enqueue")
                    single("EMQ.ENQUEUE", "2 " row " " base "pending " id " " payload)
                else if (contender != "batch" && verb == "claim")
                    single("EMQ.CLAIM", "3 " base "pending " base "active " base " 3600000")
                else if (contender != "batch")
                    single("EMQ.COMPLETE", "3 " base "active " row " " base " " id " 1")
                else {
                    members = members " " id (verb == "enqueue" ? " " payload : " 1")
                    if (i % 32 == 31) {
                        if (verb == "enqueue") send("EMQ.ENQUEUES 2 " base "pending " base members)
                        else if (verb == "claim")
                            send("EMQ.CLAIMS 3 " base "pending " base "active " base " 3600000 32")
                        else send("EMQ.COMPLETES 2 " base "active " base members)
                        members = ""
                    }
                }
            }
        }'
}

# Sets `counted` to the instructions since the last dump; a dump is written when the server is next awake.
dumps=0
counted=0
dump() {
    callgrind_control -d "$1" "$pid" >"$dir/control" 2>&1 || fail "callgrind_control: $(<"$dir/control")"
    dumps=$((dumps + 1))
    for ((i = 0; i < 600; i++)); do
        ! grep -qs '^totals: ' "$dir/profile.$dumps" || break
        sleep 0.1
    done
    counted=$(sed -n 's/^totals: //p' "$dir/profile.$dumps")
}

for contender in bare native batch script; do
    for verb in enqueue claim complete; do
        sha=sha_$verb
        commands "$contender" "$verb" "${!sha}" >"$dir/commands"
        dump start
        cli "${login[@]}" --pipe <"$dir/commands" >"$dir/pipe" 2>&1 ||
            fail "$contender $verb: $(tail -n 3 "$dir/pipe")"
        dump "$contender-$verb"
        printf '%s %s %s\n' "$contender" "$verb" "$counted" >>"$dir/counts"
        [[ -z $keep ]] || { mkdir -p "$keep" && cp "$dir/profile.$dumps" "$keep/$contender-$verb"; }
    done
    completed=$(cli HGET "emq:{$contender}:metrics:completed" count)
    left=$(cli EXISTS "emq:{$contender}:pending" "emq:{$contender}:active")
    [[ $completed == "$jobs" && $left == 0 ]] || fail "$contender: $completed of $jobs jobs completed, $left sets left"
done

printf 'instructions: %s, %s jobs of each, AOF %s\n' "$("$server_bin" --version | sed 's/ sha=.*//')" "$jobs" "$aof" >&2
awk -v jobs="$jobs" -v limits="$limits" -v check="$check" '
    { cost[$2, $1] = $3 / jobs }
    END {
        n = split(limits, limit); above = 0
        for (i = 1; i < n; i += 3) most[limit[i], limit[i + 1]] = limit[i + 2]
        printf "%-9s %8s %8s %8s %8s   %11s %13s %12s\n", "verb", "bare", "native", "batch", "script",
            "native/bare", "native/script", "native/batch"
        split("enqueue claim complete", verbs, " ")
        for (v = 1; v <= 3; v++) {
            verb = verbs[v]
            floor_ratio = cost[verb, "native"] / cost[verb, "bare"]
            script_ratio = cost[verb, "native"] / cost[verb, "script"]
            printf "%-9s %8.0f %8.0f %8.0f %8.0f   %11.3f %13.3f %12.3f\n", verb, cost[verb, "bare"],
                cost[verb, "native"], cost[verb, "batch"], cost[verb, "script"], floor_ratio, script_ratio,
                cost[verb, "native"] / cost[verb, "batch"]
            above += floor_ratio > most[verb, "native/bare"] || script_ratio > most[verb, "native/script"]
        }
        if (check != "" && above > 0) {
            print "instructions: a ratio is above its limit" > "/dev/stderr"
            exit 1
        }
    }' "$dir/counts"
