#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles an example outside of this tree, against the installed library through pkg-config, runs it on a
# private server and checks what came of it.
#
#     examples_test.sh C-COMPILER FOLDER-OF-HIREDIS.PC EXAMPLE [FLAG...]
#
# The flags are those of this tree's sanitizer, which the installed library needs as well.
set -euo pipefail
export LC_ALL=C

cc=$1
hiredis=$2
example=$3
flags=("${@:4}")
source_dir=${EMQ_SOURCE_DIR:?run the tests through ctest}
flavour=${EMQ_SERVER_FLAVOUR:-plain}
deadline=120 # seconds that a condition may take on a busy machine
scratch=$(mktemp -d "${TMPDIR:-/tmp}/emq-example.XXXXXX")
background=()
trap 'end_of_test $?' EXIT
trap 'exit 143' TERM

end_of_test() { # end_of_test STATUS
    trap - EXIT
    set +e
    ((${#background[@]} == 0)) || kill -KILL "${background[@]}" 2>/dev/null
    [[ ! -f $scratch/server/facts ]] || "$source_dir/tools/server.sh" stop "$scratch/server" || set -- 1
    if (($1 != 0)); then
        for file in "$scratch"/*.out "$scratch"/*.err; do
            [[ ! -f $file ]] || { printf -- '--- %s\n' "${file##*/}" && cat "$file"; } >&2
        done
    fi
    rm -rf -- "$scratch"
    exit "$1"
}

fail() {
    printf 'FAILED: %s: %s\n' "$example" "$1" >&2
    exit 1
}

quietly() { # quietly COMMAND...: shows what it said only when it fails
    "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "failed: $*"; }
}

wait_for() { # wait_for COMMAND...: until it succeeds
    local end=$((SECONDS + deadline))
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < end)) || fail "never came true: $*"
        sleep 0.02
    done
}

# ---- building as a user does ----

export PKG_CONFIG_PATH=$hiredis${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
quietly cmake --install "${EMQ_BUILD_DIR:?run the tests through ctest}" --prefix "$scratch/prefix"
pc=$(find "$scratch/prefix" -name emq.pc)
[[ -n $pc ]] || fail 'no emq.pc is installed'
export PKG_CONFIG_PATH=${pc%/*}:$PKG_CONFIG_PATH
LD_LIBRARY_PATH=$(pkg-config --variable=libdir emq):$(pkg-config --variable=libdir hiredis)
export LD_LIBRARY_PATH

compile() { # compile SOURCE PROGRAM PACKAGE...
    local words
    mapfile -t words < <(pkg-config --cflags --libs "${@:3}" | xargs -n 1 printf '%s\n')
    "$cc" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -pedantic -Werror "${flags[@]}" "$1" -o "$2" \
        "${words[@]}"
}

packages=(emq)
case $example in
async_worker) packages+=(libuv) ;;
webhook) packages+=(libcurl) ;;
esac
(($(wc -l <"$source_dir/examples/$example.c") < 150)) || fail 'it is no short example any more'
compile "$source_dir/examples/$example.c" "$scratch/$example" "${packages[@]}"
program=$scratch/$example

# ---- the server ----

"$source_dir/tools/server.sh" start --dir "$scratch/server" --flavour "$flavour" \
    --module "${EMQ_MODULE:?run the tests through ctest}" >"$scratch/facts"
cli=$(sed -n 's/^cli=//p' "$scratch/facts")
socket=$scratch/server/s
export EMQ_URL=unix://$socket

ask() { "$cli" -s "$socket" "$@"; }
pending() { ask ZCARD "emq:{$1}:pending"; }
completed() { ask HGET "emq:{$1}:metrics:completed" count; }
is() { [[ $("${@:2}") == "$1" ]]; } # is VALUE COMMAND...

admit() { # admit QUEUE ID PAYLOAD
    ask EMQ.ENQUEUE 2 "emq:{$1}:job:$2" "emq:{$1}:pending" "$2" "$3" >"$scratch/log"
}

start() { # start NAME COMMAND...: in the background
    "${@:2}" >"$scratch/$1.out" 2>"$scratch/$1.err" </dev/null &
    background=("$!")
}

end_with() { # end_with SIGNAL: ends what was started, which must end well
    local result=0
    kill "-$1" "${background[0]}"
    wait "${background[0]}" || result=$?
    background=()
    ((result == 0)) || fail "exit status $result after SIG$1"
}

is_wrong_use() { # is_wrong_use ARGUMENT...: told at once, whether there is a server or not
    local result=0
    EMQ_URL=unix://$scratch/nobody timeout "$deadline" "$program" "$@" >"$scratch/log" 2>&1 </dev/null || result=$?
    ((result == 2)) || fail "exit status $result of: $*"
    grep -q '^Usage: ' "$scratch/log" || fail "no usage is told of: $*"
}

# ---- the examples ----

run_producer() {
    local id payloads number
    is_wrong_use -0 --help
    is_wrong_use 'no queue'
    said=$(printf 'one\n\ntwo words\nlast' | "$program" lines) || fail "$said"
    [[ $said == '4 jobs are known to be admitted' ]] || fail "it said: $said"
    payloads=$(for id in $(ask ZRANGE 'emq:{lines}:pending' 0 -1); do
        ask HGET "emq:{lines}:job:$id" payload
    done)
    [[ $payloads == $'one\n\ntwo words\nlast' ]] || fail "the payloads are: $payloads"
    printf 'a\nb\0c\0' | "$program" -0 records >"$scratch/said"
    is 2 pending records || fail "NUL-separated records: $(pending records)"
    head -c 100000 /dev/urandom >"$scratch/file"
    "$program" files "$scratch/file" "$scratch/facts" >"$scratch/said"
    id=$(ask ZRANGE 'emq:{files}:pending' 0 0)
    ask HGET "emq:{files}:job:$id" payload >"$scratch/payload"
    cmp <(cat "$scratch/file" && echo) "$scratch/payload" || fail 'a file has changed on its way'
    ! "$program" files "$scratch/missing" >"$scratch/said" 2>"$scratch/log" || fail 'no file, no error'
    # the connection is lost again and again; each record is one job all the same
    mkfifo "$scratch/fifo"
    "$program" many <"$scratch/fifo" >"$scratch/many.out" 2>"$scratch/many.err" &
    background=("$!")
    exec 3>"$scratch/fifo"
    for number in {1..12}; do
        seq 500 >&3
        wait_for is "$((number * 500))" pending many
        ask CLIENT KILL TYPE normal >/dev/null
    done
    exec 3>&-
    wait "${background[0]}" || fail "it gave up: $(cat "$scratch/many.err")"
    background=()
    grep -qF 'trying again' "$scratch/many.err" || fail 'no connection was lost'
    grep -qxF '6000 jobs are known to be admitted' "$scratch/many.out" || fail 'it counts wrongly'
    is 6000 pending many || fail "$(pending many) jobs instead of 6000"
    # a record that is refused: what is known of which
    result=0
    { seq 700 && head -c 9000000 /dev/zero | tr '\0' x; } | "$program" refused >"$scratch/refused.out" \
        2>"$scratch/refused.err" || result=$?
    ((result == 1)) || fail "exit status $result"
    grep -qF 'records 701 to 701 were not admitted' "$scratch/refused.err" || fail 'it does not say which'
    grep -qxF '700 jobs are known to be admitted' "$scratch/refused.out" || fail 'it does not say how many'
}

run_async_worker() {
    local number
    is_wrong_use timers 8
    is_wrong_use 'no queue'
    for number in {10..49}; do
        admit timers "JOB000000000$number" 50
    done
    start worker "$program" timers
    wait_for is 40 completed timers
    # longer than its lease, which is renewed, also when the connections are cut
    admit timers JOB00000000101 4000
    admit timers JOB00000000102 10
    wait_for is 41 completed timers
    ask CLIENT KILL TYPE normal >"$scratch/log"
    wait_for is 42 completed timers
    # one that is in hand when it is told to stop is finished
    admit timers JOB00000000103 1500
    wait_for is 1 ask ZCARD 'emq:{timers}:active'
    end_with TERM
    is 43 completed timers || fail "$(completed timers) jobs completed"
    is 0 pending timers || fail 'a job is left'
    [[ $(grep -c '^JOB' "$scratch/worker.out") == 43 ]] || fail 'a lease was not renewed: a job ran twice'
    # what a dead worker held comes back
    admit timers JOB00000000104 1
    ask EMQ.CLAIM 3 'emq:{timers}:pending' 'emq:{timers}:active' 'emq:{timers}:' 1 >"$scratch/log"
    start worker "$program" timers
    wait_for is 44 completed timers
    end_with TERM
}

run_worker() {
    local number
    is_wrong_use work 4 5
    is_wrong_use 'no queue' 4
    for number in {10..59}; do
        admit work "JOB000000000$number" "payload $number"
    done
    admit work JOB00000000101 fail
    start worker "$program" work 4
    wait_for is 50 completed work
    wait_for is 1 ask ZCARD 'emq:{work}:dead'
    [[ $(grep -c 'attempt 1: payload' "$scratch/worker.out") == 50 ]] || fail 'not every job once'
    is 3 ask HGET 'emq:{work}:job:JOB00000000101' failures || fail 'not three failures'
    is 'it asked for it' ask HGET 'emq:{work}:job:JOB00000000101' last_error || fail 'no reason'
    # four at once, and finished when it is told to stop
    for number in {61..64}; do
        admit work "JOB000000000$number" 'sleep 1000'
    done
    wait_for is 4 ask ZCARD 'emq:{work}:active'
    end_with TERM
    is 54 completed work || fail "$(completed work) jobs completed"
    grep -qF '54 completed, 3 failed, 1 dead' "$scratch/worker.err" || fail 'it counts wrongly'
}

run_reminders() {
    local soon later never now
    is_wrong_use in 5
    is_wrong_use at noon 'lunch'
    is_wrong_use in -1 'late'
    is_wrong_use move JOB00000000001 soon
    is_wrong_use cancel
    is_wrong_use watch it
    is_wrong_use look
    never=$("$program" in 5 'never')
    later=$("$program" in 0.2 'put off')
    "$program" cancel "$never"
    "$program" move "$later" 3600
    start watch "$program" watch
    soon=$("$program" in 1 'soon')
    now=$(ask TIME | sed -n 1p)
    "$program" at "$((now - 1))" 'overdue' >"$scratch/log"
    wait_for grep -qxF "$soon: soon" "$scratch/watch.out"
    wait_for grep -qF ': overdue' "$scratch/watch.out"
    "$program" move "$later" 0
    wait_for grep -qxF "$later: put off" "$scratch/watch.out"
    ! "$program" move "$later" 0 2>"$scratch/log" || fail 'one that was printed is moved'
    end_with TERM
    is 3 completed reminders || fail "$(completed reminders) reminders"
    ! grep -q never "$scratch/watch.out" || fail 'a cancelled one is printed'
    is 1 ask ZCARD 'emq:{reminders}:schedule' || fail 'the cancelled one is gone'
}

run_webhook() {
    local port calls=$scratch/calls
    is_wrong_use send http://127.0.0.1/
    is_wrong_use work 8
    is_wrong_use dead all
    is_wrong_use look
    compile "$source_dir/tests/install/http_server.c" "$scratch/http_server" libmicrohttpd
    mkfifo "$scratch/fifo"
    "$scratch/http_server" "$calls" "$scratch/fixed" <"$scratch/fifo" >"$scratch/port" &
    local web=$!
    exec 3>"$scratch/fifo" # it ends when this is closed, also by the end of this test
    wait_for test -s "$scratch/port"
    port=$(<"$scratch/port")
    "$program" send "http://127.0.0.1:$port/ok" fine
    "$program" send "http://127.0.0.1:$port/flaky" again
    "$program" send "http://127.0.0.1:$port/missing" dead
    "$program" send 'nonsense://x' odd
    start work "$program" work
    wait_for is 2 completed webhooks
    wait_for is 2 ask ZCARD 'emq:{webhooks}:dead'
    [[ $(grep -c '^/ok fine JOB' "$calls") == 1 ]] || fail 'not one call'
    [[ $(grep -c '^/flaky again JOB' "$calls") == 3 ]] || fail 'not three calls until it worked'
    [[ $(grep '^/flaky' "$calls" | sort -u | wc -l) == 1 ]] || fail 'the key is another each time'
    [[ $(grep -c '^/missing' "$calls") == 1 ]] || fail 'what is hopeless was tried again'
    "$program" dead >"$scratch/dead.out"
    grep -q ' HTTP status 404$' "$scratch/dead.out" || fail 'no reason is told'
    : >"$scratch/fixed"
    "$program" reprocess
    wait_for is 3 completed webhooks
    wait_for is 1 ask ZCARD 'emq:{webhooks}:dead'
    [[ $(grep -c '^/missing dead JOB' "$calls") == 2 ]] || fail 'it was not sent again'
    end_with TERM
    exec 3>&-
    wait "$web"
}

is_wrong_use
is_wrong_use --help
is_wrong_use -h
"run_$example"
echo "passed: $example"
