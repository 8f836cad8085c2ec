#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs `emq`, the command-line tool, on a private server, and checks what it prints and how it ends.
#
#     tool_test.sh TOOL MANUAL-PAGE CASE
#
# EMQ_TEST_SECONDS sets the time that a case may take (default 240).
set -euo pipefail
export LC_ALL=C

# Ends a hanging case, and all that it runs, while it still can clean up: before ctest's own limit.
if [[ -z ${EMQ_TEST_LIMITED:-} ]]; then
    EMQ_TEST_LIMITED=yes exec timeout --kill-after=30 "${EMQ_TEST_SECONDS:-240}" "$0" "$@"
fi
unset EMQ_TEST_LIMITED EMQ_URL

source_dir=${EMQ_SOURCE_DIR:?run the tests through ctest}
module=${EMQ_MODULE:?run the tests through ctest}
tool=$1
manual=$2
case=$3
flavour=${EMQ_SERVER_FLAVOUR:-plain}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/emq-test.XXXXXX")
background=() # what a case has started

end_of_test() {
    local result=$?
    trap - EXIT
    set +e
    ((${#background[@]} == 0)) || kill -KILL "${background[@]}" 2>/dev/null
    if [[ -f $scratch/server/facts ]]; then
        "$source_dir/tools/server.sh" stop "$scratch/server" || result=1
    fi
    if ((result != 0)); then
        printf -- '--- standard output\n' && cat "$scratch/out" 2>/dev/null
        printf -- '--- standard error\n' && cat "$scratch/err" 2>/dev/null
    fi
    rm -rf -- "$scratch"
    exit "$result"
}
trap end_of_test EXIT
trap 'exit 143' TERM

# shellcheck source=tests/support/script.sh
. "$source_dir/tests/support/script.sh"

# ---- running and checking ----

emq() { # emq STATUS ARGUMENT...: runs to the end and checks the exit status
    local expected=$1 result=0
    shift
    "$tool" "$@" >"$scratch/out" 2>"$scratch/err" || result=$?
    ((result == expected)) || die "exit status $result instead of $expected: emq $*"
}

a_server() {
    private_server "$@"
    export EMQ_URL=unix://$socket
}

output_is() { # output_is TEXT: the whole of it
    diff <(printf '%s\n' "$1") "$scratch/out" || die "standard output is another"
}
no_output() { [[ ! -s $scratch/out ]] || die "there is something on standard output"; }
no_error() { [[ ! -s $scratch/err ]] || die "there is something on standard error"; }

# What a JSON line has: tests of a filter that answers true or false.
json_is() { # json_is FILTER: true of the whole of standard output, as an array
    jq -e -s "$1" "$scratch/out" >/dev/null || die "JSON is not as expected: $1"
}
json_error_is() {
    jq -e -s "$1" "$scratch/err" >/dev/null || die "JSON on standard error is not as expected: $1"
}

counts_are() { # counts_are PENDING ACTIVE SCHEDULED DEAD, of the queue q
    local set want=("$@") i=0 found
    for set in pending active schedule dead; do
        found=$("$cli" -s "$socket" ZCARD "emq:{q}:$set")
        ((found == want[i])) || die "$set: $found instead of ${want[i]}"
        i=$((i + 1))
    done
}

# A claim that waits is on the server.
is_waiting() { [[ $("$cli" -s "$socket" CLIENT LIST) == *'cmd=EMQ.CLAIMS '* ]]; }

is_lease='^q JOB[0-9A-Za-z]{11} [0-9]+$'
is_id='^JOB[0-9A-Za-z]{11}$'

# ---- the cases ----

# shellcheck source=tests/tool/top_cases.sh
. "$source_dir/tests/tool/top_cases.sh"
# shellcheck source=tests/tool/bench_cases.sh
. "$source_dir/tests/tool/bench_cases.sh"

# One table of verbs: help, manual page, completion and documentation have the same ones.
case_help() {
    local verb verbs option
    emq 2
    output_has 'Usage: emq VERB'
    emq 0 --help
    cp "$scratch/out" "$scratch/help"
    emq 0 help
    cmp "$scratch/help" "$scratch/out"
    emq 0 --version
    output_has 'emq '
    emq 0 version --json
    json_is '.[0] | (.tool | length) > 0 and (.libemq | length) > 0 and (.tls | type) == "boolean"'
    local status=2 words='without TLS'
    jq -e .tls "$scratch/out" >/dev/null && status=3 words='with TLS'
    emq 0 version
    output_has "$words"
    emq "$status" ping --url rediss://127.0.0.1:1 # refused before it connects, or there is nobody
    # what the detail only repeats is said once
    (($(grep -o 'built without TLS' "$scratch/err" | wc -l) <= 1)) || die 'it is said twice'
    emq 2 no-such-verb
    error_has 'there is no verb no-such-verb'
    emq 2 help no-such-verb
    emq 0 help --list
    verbs=$(cut -f 1 "$scratch/out")
    for verb in $verbs; do
        emq 0 "$verb" --help
        output_has "Usage: emq $verb "
        output_has 'Example:'
        output_has '  emq '
        cp "$scratch/out" "$scratch/help"
        emq 0 help "$verb"
        cmp "$scratch/help" "$scratch/out"
        (($(wc -L <"$scratch/out") <= 100)) || die "the help of $verb is too wide"
        emq 2 "$verb" --no-such-option
        error_has "emq $verb: "
        grep -q "^\.SS \"emq ${verb}[ \"]" "$manual" || die "the manual page lacks $verb"
        grep -q "^| \`$verb\` |" "$source_dir/docs/tool.md" || die "docs/tool.md lacks $verb"
    done
    # no verb of the documentation that isn't there
    sed -n 's/^| `\([a-z]*\)` |.*/\1/p' "$source_dir/docs/tool.md" | sort -u >"$scratch/documented"
    sort <<<"$verbs" | diff "$scratch/documented" - || die "docs/tool.md has other verbs"
    for option in $("$tool" help claim --list | cut -f 1 | tr -d =); do
        grep -qF -- "${option//-/\\-}" "$manual" || die "the manual page lacks $option"
    done
    if command -v man >/dev/null; then
        man --warnings -l "$manual" >/dev/null 2>"$scratch/err" || true
        no_error
    fi
}

# shellcheck disable=SC2034 # COMP_WORDS and COMP_CWORD are the completion's
case_completion() {
    local COMP_WORDS COMP_CWORD COMPREPLY
    . "$source_dir/tools/emq/emq.bash"
    completes() { # completes EXPECTED WORD...: what the last word may become
        local expected=$1
        shift
        COMP_WORDS=("$tool" "$@")
        COMP_CWORD=$#
        _emq
        [[ ${COMPREPLY[*]} == "$expected" ]] || die "$* completes to: ${COMPREPLY[*]}"
    }
    completes 'enqueue' enq
    completes 'schedule' sch
    completes 'claim' help cla
    completes '--lease' claim --l
    completes '--json' claim q --j
    completes '' claim --lease 5
    completes '' no-such-verb --j
    completes 'worker' acl w
    completes 'producer worker operator installer' acl --json ''
    export EMQ_URL=unix://$scratch/nothing
    completes '' claim q
    a_server
    emq 0 enqueue orders x -q
    emq 0 enqueue mail x -q
    emq 0 queues --names
    output_is $'mail\norders'
    emq 0 queues --names --match 'm*' --json
    json_is '. == [{"queue":"mail"}]'
    emq 1 queues -n -m nothing
    emq 2 queues --names --sort dead
    completes 'orders' stats o
    completes 'mail orders' pause orders ''
    completes 'orders' claim --lease 5m o
    completes '' job orders J
    completes '' work orders -- o
    completes '' key o
    completes '' claim --url "$EMQ_URL" o # of another server, perhaps
}

case_address() {
    local port
    emq 3 ping --url "unix://$scratch/nothing"
    error_has 'emq ping: cannot connect'
    no_output
    emq 3 ping --json --url "unix://$scratch/nothing"
    json_error_is '.[0] | .error == "EMQ_ECONNECT" and .class == "retryable" and .status == 3 and .verb == "ping"'
    emq 2 ping --url 'redis://u:sesame@127.0.0.1:x'
    error_has '--url'
    ! grep -q sesame "$scratch/err" || die 'a password was printed'
    EMQ_URL=nonsense emq 2 ping
    error_has 'EMQ_URL'
    a_server
    EMQ_URL='' emq 3 ping --url "unix://$scratch/nothing"
    emq 0 ping
    output_has 'wire echomq:6.0.0'
    EMQ_URL=redis://127.0.0.1:1 emq 0 ping --url "unix://$socket" --count 2 --json
    json_is 'length == 2 and .[0].wire == "echomq:6.0.0" and .[1].round_trip_ms > 0'
    # wrong passwords are refusals, and stay unsaid
    port=$(sed -n 's/^port=//p' "$scratch/server/facts")
    emq 4 ping --url "redis://nobody:sesame@127.0.0.1:$port"
    ! grep -q sesame "$scratch/err" || die 'a password was printed'
    emq 4 ping --json --url "redis://nobody:sesame@127.0.0.1:$port"
    json_error_is '.[0].error == "EMQ_EAUTH"'
}

# The URL of an option is gone from the list of processes once the program waits.
case_password() {
    a_server
    "$cli" -s "$socket" ACL SETUSER worker on '>sesame' '+@all' '~*' '&*' >/dev/null
    "$tool" claim q --wait 60s --url "unix://worker:sesame@$socket" >"$scratch/out" 2>"$scratch/err" &
    background=("$!")
    wait_for is_waiting
    ! tr '\0' ' ' <"/proc/${background[0]}/cmdline" | grep sesame >/dev/null || die 'the password can be seen'
    emq 0 enqueue q x
    wait "${background[0]}"
    background=()
}

case_install() {
    a_server --no-fence
    emq 4 ping
    error_has 'EMQ.INSTALL'
    emq 0 install
    output_is 'installed'
    emq 1 install --json
    json_is '. == [{"result":"EMQ_DUPLICATE"}]'
    emq 0 ping
}

case_enqueue() {
    a_server
    emq 0 enqueue q one '' $'three\n\377'
    ! grep -Evqx "$is_id" "$scratch/out" || die 'no id'
    (($(wc -l <"$scratch/out") == 3)) || die 'not three ids'
    emq 0 peek q --json
    json_is 'map(.payload // .payload_b64) == ["one", "", "dGhyZWUK/w=="]'
    emq 0 enqueue q x --id JOB0NgWEfAEJfs --json
    json_is '. == [{"queue":"q","id":"JOB0NgWEfAEJfs","result":"EMQ_OK"}]'
    emq 1 enqueue q y --id JOB0NgWEfAEJfs
    no_output
    error_has 'JOB0NgWEfAEJfs: '
    emq 1 enqueue q y --id JOB0NgWEfAEJfs --json
    json_is '.[0].result == "EMQ_DUPLICATE"'
    counts_are 4 0 0 0
    emq 2 enqueue q
    emq 2 enqueue 'not a queue' x
    emq 2 enqueue q x y --id JOB0NgWEfAEJfs
    emq 2 enqueue q x --id USR0NgWEfAEJfs
    emq 2 enqueue q x --id JOB
    emq 2 enqueue q x -0
    counts_are 4 0 0 0
}

# Lines and records: every byte, empty ones, the last one without an end, more than a batch.
case_records() {
    a_server
    printf 'a\n\nb' | emq 0 enqueue q -
    emq 0 peek q --json
    json_is 'map(.payload) == ["a", "", "b"]'
    printf 'x\ny\0z\0' | emq 0 enqueue q - --null --quiet
    no_output
    emq 0 peek q --json
    json_is 'map(.payload)[3:] == ["x\ny", "z"]'
    : | emq 0 enqueue q -
    counts_are 5 0 0 0
    seq 2500 | emq 0 enqueue q - --json
    json_is 'length == 2500 and (map(.id) | unique | length) == 2500'
    # in the order in which they came
    emq 0 peek q -n 3000 --json
    json_is 'map(.payload)[5:] == [range(1; 2501) | tostring]'
    # larger than a batch, and small ones in between
    big() { head -c 6000000 /dev/zero | tr '\0' "$1"; }
    # a file is there at once, so that nothing is sent for want of input
    { printf 'a\0' && big x && printf '\0b\0' && big y && printf '\0' && big z; } >"$scratch/in"
    emq 0 enqueue big - -0 <"$scratch/in"
    mapfile -t ids <"$scratch/out"
    ((${#ids[@]} == 5)) || die 'not five'
    "$tool" job big "${ids[1]}" --payload | cmp - <(big x)
    "$tool" job big "${ids[3]}" --payload | cmp - <(big y)
    "$tool" job big "${ids[4]}" --payload | cmp - <(big z)
    [[ $("$tool" job big "${ids[2]}" --payload) == b ]] || die 'the small one is another'
    # too big: those in front are admitted, and it says so
    { printf 'small\0' && head -c 2000 /dev/zero | tr '\0' x; } >"$scratch/in"
    EMQ_URL="$EMQ_URL?max_payload=1000" emq 2 enqueue small - -0 <"$scratch/in"
    error_has '1 admitted; 0 unknown, which may have been admitted; 1 not admitted'
    (($(wc -l <"$scratch/out") == 1)) || die 'the id is missing'
}

# On a terminal a line tells how far it is, and the ids are left out of its way.
case_progress() {
    command -v script >/dev/null || { echo 'no script(1): skipped' && exit 77; }
    a_server
    script -qec "seq 3000 | $(printf '%q ' "$tool" enqueue q -) >$(printf %q "$scratch/ids")" /dev/null >"$scratch/out" </dev/null
    (($(wc -l <"$scratch/ids") == 3000)) || die 'ids are missing'
    grep -Eq $'\r3000 admitted, [0-9]+ a second' "$scratch/out" || die 'no progress is told'
    seq 10 | emq 0 enqueue q -
    no_error
}

# What came is sent when the input pauses, not when it ends.
case_pause_of_input() {
    a_server
    mkfifo "$scratch/fifo"
    "$tool" enqueue q - <"$scratch/fifo" >"$scratch/out" 2>"$scratch/err" &
    background=("$!")
    exec 3>"$scratch/fifo"
    printf 'one\ntwo\nhalf of' >&3
    are_two() { [[ $("$cli" -s "$socket" ZCARD 'emq:{q}:pending') == 2 ]]; }
    wait_for are_two
    printf ' three\n' >&3
    are_three() { [[ $("$cli" -s "$socket" ZCARD 'emq:{q}:pending') == 3 ]]; }
    wait_for are_three
    # a signal in the pause: it ends, and says how far it came
    kill -TERM "${background[0]}"
    local result=0
    wait "${background[0]}" || result=$?
    background=()
    exec 3>&-
    ((result == 143)) || die "exit status $result"
    error_has '3 admitted; 0 unknown'
    (($(wc -l <"$scratch/out") == 3)) || die 'ids are missing'
}

# A server that refuses: nothing is admitted, and nothing claims that it was.
case_refused() {
    a_server
    "$cli" -s "$socket" CONFIG SET maxmemory 1 >/dev/null
    seq 10 | emq 3 enqueue q -
    error_has '0 admitted; 0 unknown, which may have been admitted; 10 not admitted'
    no_output
    emq 3 schedule q a b --in 1h
    "$cli" -s "$socket" CONFIG SET maxmemory 0 >/dev/null
    "$cli" -s "$socket" ACL SETUSER nobody on nopass '+emq.version' '+get' '%R~{emq}:version' >/dev/null
    emq 4 enqueue q x --json --url "unix://nobody:x@$socket"
    json_error_is '.[0].error == "EMQ_ENOPERM"'
    seq 10 | emq 4 enqueue q - --json --url "unix://nobody:x@$socket"
    json_is 'length == 10 and all(.result == "EMQ_ENOPERM")'
    json_error_is '.[0].error == "EMQ_ENOPERM" and .[1] == {"verb": "enqueue", "admitted": 0, "duplicates": 0, "unknown": 0, "refused": 10}'
    counts_are 0 0 0 0
}

case_schedule() {
    a_server
    emq 0 schedule q a b --in 1h
    (($(wc -l <"$scratch/out") == 2)) || die 'not two ids'
    counts_are 0 0 2 0
    seq 1500 | emq 0 schedule q - --at 2000-01-02T03:04:05.678Z -q
    counts_are 0 0 1502 0
    [[ $("$cli" -s "$socket" ZRANGE 'emq:{q}:schedule' 0 0 WITHSCORES | tail -n 1) == 946782245678 ]] ||
        die 'it is another moment'
    emq 0 schedule r x --at 2000-01-02T05:04:05+02:00
    emq 0 schedule r x --at 2000-01-02T00:34-02:30
    emq 0 schedule r x --at @946782240
    [[ $("$cli" -s "$socket" ZRANGE 'emq:{r}:schedule' 0 -1 WITHSCORES | grep -c '^94678224[05]000$') == 3 ]] ||
        die 'they are other moments'
    emq 0 promote q
    output_is '1000 promoted'
    emq 0 promote q --limit 10 --json
    json_is '. == [{"queue":"q","promoted":10}]'
    counts_are 1010 0 492 0
    emq 0 schedule s x --in 1h --id JOB0NgWEfAEJfs
    emq 1 schedule s x --in 0 --id JOB0NgWEfAEJfs
    emq 1 reschedule s JOB0NgWEfAEJfs JOB0NgWEfAEJft --at @1000000000
    output_is $'JOB0NgWEfAEJfs scheduled\nJOB0NgWEfAEJft gone'
    emq 0 peek s --scheduled --json
    json_is '.[0].due_ms == 1000000000000'
    emq 0 promote s
    emq 4 reschedule s JOB0NgWEfAEJfs --in 1h --json
    json_is '.[0].result == "EMQ_ESTATE"'
    emq 2 reschedule s JOB0NgWEfAEJfs
    emq 2 reschedule s JOB --in 1h
    emq 2 reschedule s --in 1h
    for when in '' 1 1w -1s 1.5h 99999999999999999999s 3651d; do
        emq 2 schedule q x --in "$when"
        error_has '--in '
    done
    for when in '' now 2026-02-30T00:00:00Z 2026-01-01T00:00:00 2026-01-01T24:00Z 2026-1-1T00:00Z @x @-1 \
        1960-01-01T00:00:00Z 2026-01-01T00:00:00+2:00; do
        emq 2 schedule q x --at "$when"
        error_has '--at '
    done
    emq 2 schedule q x
    emq 2 schedule q x --in 1s --at @1
}

# Leases as claim prints them are what the others take.
case_leases() {
    local lease
    a_server
    emq 1 claim q
    no_output
    error_has 'emq claim: '
    emq 1 claim q --json
    no_output
    json_error_is '.[0].error == "EMQ_EMPTY"'
    emq 0 enqueue q one two three four five six seven -q
    emq 0 claim q
    grep -Eqx "$is_lease" "$scratch/out" || die 'no lease'
    lease=$(<"$scratch/out")
    # shellcheck disable=SC2086 # three words
    {
        emq 0 extend $lease --lease 1h
        output_has ' extended'
        emq 0 complete $lease
        output_has ' completed'
        emq 1 complete $lease
        output_has ' gone'
        emq 1 complete $lease --json
        json_is '.[0].queue == "q" and .[0].token == 1 and .[0].result == "EMQ_GONE"'
        lease=$("$tool" claim q)
        emq 0 requeue $lease
        emq 5 complete $lease
        error_has 'EMQSTALE'
        emq 5 complete $lease --json
        json_is '.[0].result == "EMQ_ESTALE"'
        json_error_is '.[0].class == "stale"'
        lease=$("$tool" claim q)
        [[ $lease == *' 2' ]] || die 'the token is another'
        emq 0 delay $lease --in 1h
        counts_are 5 0 1 0
        lease=$("$tool" claim q)
        emq 0 fail $lease --error $'b\xffd' --delay 1h
        output_has ' scheduled'
        lease=$("$tool" claim q)
        emq 1 fail $lease --max-failures 1 --error 'no such order'
        output_has ' dead'
    }
    counts_are 3 0 2 1
    emq 0 claim q --max 2 --payload
    grep -qE $'^q JOB[^ ]* 1\tfive$' "$scratch/out" || die 'no payload'
    mv "$scratch/out" "$scratch/in"
    emq 0 complete - <"$scratch/in"
    (($(grep -c ' completed$' "$scratch/out") == 2)) || die 'not two'
    emq 0 claim q --output "$scratch/payload" --json
    json_is '.[0].payload == "seven" and .[0].attempts == 1'
    [[ $(<"$scratch/payload") == seven ]] || die 'the payload was not written'
    # the worst of several counts, and one that is wrong keeps no other one
    { printf 'q JOB0NgWEfAEJfs 1\nnonsense\n' && jq -r '"\(.queue) \(.id) \(.token)"' "$scratch/out"; } >"$scratch/in"
    emq 2 requeue - <"$scratch/in"
    error_has 'line 2 of standard input is no lease'
    counts_are 1 0 2 1
    printf 'q JOB0NgWEfAEJfs 1\n\n' | emq 2 requeue -
    error_has 'line 2 of standard input is no lease'
    printf 'q JOB0NgWEfAEJfs 1\nq JOB0NgWEfAEJfs 1\nq JOB0NgWEfAEJ 1\n' | emq 2 requeue - --json
    error_has 'line 3 of standard input'
    emq 2 complete q JOB0NgWEfAEJfs
    emq 2 complete q JOB0NgWEfAEJfs 0
    emq 2 complete q JOB0NgWEfAEJfs x
    emq 2 complete q JOB 1
    emq 2 claim q --lease 30
    emq 2 claim q --max 1001
    emq 2 claim q --max 2 --output /dev/null
}

case_wait() {
    a_server
    "$tool" claim q --wait 60s >"$scratch/lease" &
    background=("$!")
    wait_for is_waiting
    emq 0 enqueue q x
    wait "${background[0]}"
    background=()
    grep -Eqx "$is_lease" "$scratch/lease" || die 'no lease'
    emq 1 claim q --wait 100ms
}

case_look() {
    local id
    a_server
    emq 1 peek q
    output_has PAYLOAD
    emq 1 dead q
    "$cli" -s "$socket" SET 'emq:{bad}:pending' x >/dev/null
    emq 4 peek bad
    no_output
    "$cli" -s "$socket" ZADD 'emq:{bad}:dead' 0 JOB0NgWEfAEJfs >/dev/null
    "$cli" -s "$socket" SET 'emq:{bad}:job:JOB0NgWEfAEJfs' x >/dev/null
    emq 4 dead bad
    no_output
    emq 0 enqueue q one two $'three\e[2J'
    mapfile -t ids <"$scratch/out"
    emq 0 peek q
    output_has 'three\x1b[2J'
    emq 0 peek q --ids
    output_is "$(printf '%s\n' "${ids[@]}")"
    emq 0 peek q --ids -n 2 --newest
    output_is "${ids[2]}"$'\n'"${ids[1]}"
    emq 0 job q "${ids[2]}"
    output_has 'state       pending'
    output_has 'three\x1b[2J'
    emq 0 job q "${ids[2]}" --payload
    printf 'three\033[2J' | cmp - "$scratch/out"
    emq 0 job q "${ids[2]}" --json
    json_is '.[0] | .state == "pending" and .attempts == 0 and .minted_ms > 0 and (has("last_error") | not)'
    emq 1 job q JOB0NgWEfAEJfs
    # more than a page
    seq 2100 | emq 0 enqueue many -
    cp "$scratch/out" "$scratch/ids"
    emq 0 peek many --ids -n 5000
    cmp "$scratch/ids" "$scratch/out"
    emq 0 peek many --ids -n 2050 --newest
    tac "$scratch/ids" | head -n 2050 | cmp - "$scratch/out"
    # by time: leases and due times
    emq 1 peek q --active
    emq 1 peek q --scheduled
    emq 0 claim q --lease 1h
    emq 0 peek q --active --json
    json_is 'length == 1 and .[0].id == "'"${ids[0]}"'" and .[0].state == "active" and .[0].lease_end_ms > .[0].minted_ms + 3000000'
    emq 0 peek q --active
    output_has 'LEASE ENDS'
    seq 1100 | emq 0 schedule q - --in 1h -q
    emq 0 schedule q due --at 2000-01-01T00:00Z -q
    emq 0 peek q --scheduled -n 1
    output_has '2000-01-01T00:00:00.000Z  due'
    emq 0 peek q --scheduled -n 5000 --json
    json_is 'length == 1101 and (map(.id) | unique | length) == 1101 and .[0].due_ms == 946684800000'
    emq 2 peek q --active --scheduled
    # an id that no client of ours has made
    "$cli" -s "$socket" ZADD 'emq:{q}:pending' 0 $'JOB\033' >/dev/null
    emq 0 peek q
    output_has 'JOB\x1b  (no branded id)'
}

case_dead() {
    local lease id
    a_server
    emq 0 enqueue q one two -q
    for lease in 1 2; do
        read -ra lease < <("$tool" claim q)
        emq 1 fail "${lease[@]}" -m 1 -e "error ${lease[1]}"
    done
    emq 0 dead q
    output_has "error ${lease[1]}"
    emq 0 dead q --ids --oldest
    id=$(head -n 1 "$scratch/out")
    emq 0 dead q --json
    json_is 'length == 2 and .[1].id == "'"$id"'" and .[1].last_error == "error '"$id"'" and .[1].failures == 1'
    emq 0 reprocess q "$id"
    output_is "$id pending"
    emq 4 reprocess q "$id"
    error_has 'EMQSTATE'
    emq 1 reprocess q JOB0NgWEfAEJfs --json
    json_is '.[0].result == "EMQ_GONE"'
    counts_are 1 0 0 1
    emq 2 reprocess q
    emq 2 reprocess q "$id" --all
    # never waits for an answer that can't come
    emq 2 reprocess q --all </dev/null
    error_has '--yes'
    counts_are 1 0 0 1
    emq 0 reprocess q --all --yes
    output_is '1 reprocessed'
    counts_are 2 0 0 0
    emq 1 reprocess q --all --yes
    output_is '0 reprocessed'
    emq 1 reprocess q --all </dev/null # there is nothing to ask
    # one that can't be revived so keeps no other one from it
    for lease in 1 2 3; do
        "$cli" -s "$socket" ZADD 'emq:{odd}:dead' 0 "JOB0000000000$lease" >/dev/null
        "$cli" -s "$socket" HSET "emq:{odd}:job:JOB0000000000$lease" state dead attempts 1 payload x >/dev/null
    done
    "$cli" -s "$socket" ZADD 'emq:{odd}:dead' 0 JOBx >/dev/null
    "$cli" -s "$socket" HSET 'emq:{odd}:job:JOB00000000003' group lane >/dev/null
    emq 4 reprocess odd --all --yes
    output_is '2 reprocessed'
    error_has 'EMQLANE'
    error_has '2 were passed over'
    # more than a page, and not all of them
    for ((lease = 0; lease < 1200; lease++)); do
        printf 'ZADD emq:{q}:dead 0 JOB0000000%04d\nHSET emq:{q}:job:JOB0000000%04d state dead attempts 1 payload x\n' \
            "$lease" "$lease"
    done | "$cli" -s "$socket" >/dev/null
    emq 0 reprocess q --all --max 1100 -y --json
    json_is '. == [{"queue":"q","reprocessed":1100}]'
    counts_are 1102 0 0 100
}

# On a terminal it asks.
case_confirm() {
    command -v script >/dev/null || { echo 'no script(1): skipped' && exit 77; }
    a_server
    "$cli" -s "$socket" ZADD 'emq:{q}:dead' 0 JOB00000000001 >/dev/null
    "$cli" -s "$socket" HSET 'emq:{q}:job:JOB00000000001' state dead attempts 1 payload x >/dev/null
    local answer
    for answer in n '' yess; do
        script -qec "$(printf '%q ' "$tool" reprocess q --all)" /dev/null <<<"$answer" >"$scratch/out" && die 'it went on'
        output_has 'Make 1 dead job of q pending again? [y/N]'
        counts_are 0 0 0 1
    done
    script -qec "$(printf '%q ' "$tool" reprocess q --all)" /dev/null <<<y >"$scratch/out"
    counts_are 1 0 0 0
}

case_sweep() {
    local id
    a_server
    emq 0 enqueue q x
    id=$(<"$scratch/out")
    is_lapsed() { "$tool" sweep q >"$scratch/out" && grep -q "$1" "$scratch/out"; }
    emq 0 claim q --lease 1ms
    wait_for is_lapsed "^$id recovered$"
    output_has '1 recovered, 0 dead'
    emq 0 claim q --lease 1ms
    sleep 0.05
    emq 0 sweep q --max-stalled 2 --json
    json_is '. == [{"queue":"q","recovered":[],"dead":["'"$id"'"]}]'
    counts_are 0 0 0 1
}

case_switch() {
    a_server
    emq 0 enqueue q x -q
    emq 0 pause q r
    output_is $'q paused\nr paused'
    emq 1 claim q
    emq 0 resume q --json
    json_is '. == [{"queue":"q","result":"EMQ_OK"}]'
    emq 0 claim q
    no_error
    emq 2 pause q 'no queue'
    # a name that nobody has used may be a slip
    emq 0 pause q other
    error_has 'other has no jobs and no counts: is that its name?'
    (($(wc -l <"$scratch/err") == 1)) || die 'more was said'
    emq 0 resume other # it is paused: that was its name
    no_error
    emq 0 resume other --json
    json_error_is '.[0].note | startswith("other has no jobs")'
}

# Queues are found by their keys, also when there are many that are none of theirs.
case_queues() {
    local i
    a_server
    emq 1 queues
    emq 1 queues --json
    no_output
    emq 0 enqueue b 1 2 3 -q
    emq 0 enqueue a-much-longer.name 1 -q
    emq 0 schedule b 4 --at @1000000000 -q
    emq 0 claim b
    emq 0 pause c
    for ((i = 0; i < 3000; i++)); do printf 'SET other:%d x\nSET emq:%d x\n' "$i" "$i"; done | "$cli" -s "$socket" >/dev/null
    "$cli" -s "$socket" SET 'emq:{not a queue}:pending' x >/dev/null
    "$cli" -s "$socket" SET 'emq:{x}:no-such-kind' x >/dev/null
    emq 0 queues --json
    no_error
    json_is 'map(.queue) == ["a-much-longer.name", "b", "c"]'
    json_is '.[1] | .pending == 2 and .active == 1 and .scheduled == 1 and .next_ms == 1000000000000 and .oldest_ms > 0'
    json_is '.[2] | .paused and .pending == 0 and (has("oldest_ms") | not)'
    emq 0 queues --sort pending
    grep -Eq '^b  .* 2 .* 1 ' "$scratch/out" || die 'b has other sizes'
    [[ $(cut -d ' ' -f 1 "$scratch/out" | tr '\n' ' ') == 'QUEUE b a-much-longer.name c ' ]] || die 'the order is another'
    output_has '  paused'
    emq 0 queues --match '[bc]' --json
    json_is 'map(.queue) == ["b", "c"]'
    emq 1 queues --match nothing
    emq 2 queues --sort size
    # more queues than one pipeline holds
    for ((i = 0; i < 1200; i++)); do printf 'ZADD emq:{many%d}:dead 0 x\n' "$i"; done | "$cli" -s "$socket" >/dev/null
    emq 0 queues --match 'many*' --json
    json_is 'length == 1200 and all(.dead == 1)'
    # a damaged one hides no other one
    "$cli" -s "$socket" SET 'emq:{bad}:active' x >/dev/null
    emq 4 queues --match '[bc]*' --json
    json_is 'map(.queue) == ["b", "bad", "c"] and .[1].result == "EMQ_EWRONGTYPE"'
    emq 4 queues
    grep -q '^bad  .*WRONGTYPE' "$scratch/out" || die 'the words of the server are not told'
    # whoever may read some of them alone is told so, in the words of the server
    "$cli" -s "$socket" ACL SETUSER half on '>x' +emq.version +get +scan +zcard +zrange +hgetall \
        '%R~{emq}:version' '~emq:{b}:*' >/dev/null
    emq 4 queues --match '[bc]' --json --url "unix://half:x@$socket"
    json_is '(.[0] | .pending == 2 and (has("result") | not)) and (.[1] | .result == "EMQ_ENOPERM" and (.detail | startswith("NOPERM")))'
    emq 4 queues --match '[bc]' --url "unix://half:x@$socket"
    grep -Eq '^b  .* 2 .* 1 ' "$scratch/out" || die 'b has other sizes'
    grep -q '^c  .*NOPERM' "$scratch/out" || die 'the words of the server are not told'
}

case_stats() {
    a_server
    emq 1 stats nothing
    error_has 'is that its name?'
    emq 0 enqueue q 1 2 -q
    emq 0 claim q
    mv "$scratch/out" "$scratch/in"
    emq 0 complete - <"$scratch/in"
    emq 0 pause q
    emq 0 stats q
    output_has 'queue       q (paused)'
    output_has 'pending     1'
    output_has 'completed   1'
    emq 1 stats q nothing --json
    json_is '.[0].completed == 1 and .[1].pending == 0'
    emq 2 stats 'not a queue'
    "$cli" -s "$socket" SET 'emq:{bad}:dead' x >/dev/null
    emq 4 stats bad q
    error_has 'bad: a key of the queue has another type (WRONGTYPE'
    emq 4 stats bad --json
    json_error_is '.[0].error == "EMQ_EWRONGTYPE" and (.[0].detail | startswith("WRONGTYPE"))'
    emq 4 stats bad q
    output_has 'queue       q'
}

# Messages arrive one by one, and what was missed is seen, also behind a lost connection.
case_events() {
    local base='emq:{q}:' result=0
    a_server
    publish() { "$cli" -s "$socket" EMQ.PUBLISH 1 "$base" "$@" >/dev/null; }
    is_subscribed() { [[ $("$cli" -s "$socket" PUBSUB NUMSUB "${base}events" | tail -n 1) == 1 ]]; }
    has_line() { grep -q -- "$1" "$scratch/out"; }
    "$tool" events q --count 6 >"$scratch/out" 2>"$scratch/err" &
    background=("$!")
    wait_for is_subscribed
    publish completed JOB1 by me
    wait_for has_line '^1  completed  JOB1  by=me$'
    publish $'fail\e[1m\n' JOB2 error $'\377'
    wait_for has_line '^2  fail\\x1b\[1m\\n  JOB2  error=\\xff$'
    "$cli" -s "$socket" SET "${base}events:seq" 5 >/dev/null
    publish a b
    wait_for has_line '^--- 3 messages are missing here ---$'
    has_line '^6  a  b$' || die 'the message is missing'
    "$cli" -s "$socket" SET "${base}events:seq" 0 >/dev/null
    publish again ''
    wait_for has_line '^--- messages may be missing here ---$'
    "$source_dir/tools/server.sh" stop "$scratch/server" --keep
    "$source_dir/tools/server.sh" start --dir "$scratch/server" >/dev/null
    wait_for is_subscribed
    publish back x
    wait_for has_line '^2  back  x$'
    publish last x
    wait "${background[0]}" || result=$?
    background=()
    ((result == 0)) || die "exit status $result"
    error_has 'subscribed again'
    # for machines
    "$tool" events q --count 2 --json >"$scratch/out" &
    background=("$!")
    wait_for is_subscribed
    publish e j name $'v\n' raw $'\377'
    publish e2 j2
    wait "${background[0]}"
    background=()
    json_is '.[0] | .event == "e" and .job == "j" and .gap == 0 and .fields == {"name": "v\n", "raw_b64": "/w=="}'
    json_is '.[1].seq == .[0].seq + 1 and (.[1].resumed | not)'
    emq 1 events q --for 1ms
    # a signal ends it
    "$tool" events q &
    background=("$!")
    wait_for is_subscribed
    kill -TERM "${background[0]}"
    wait "${background[0]}" || result=$?
    background=()
    ((result == 143)) || die "exit status $result"
    emq 3 events q --url "unix://$scratch/nothing"
    "$cli" -s "$socket" ACL SETUSER deaf on '>x' +emq.version +get '%R~{emq}:version' >/dev/null
    emq 4 events q --url "unix://deaf:x@$socket"
}

# A command per job: what it is given, and what becomes of the job.
case_work() {
    local id
    a_server
    emq 2 work q
    error_has 'takes QUEUE [--] COMMAND'
    emq 2 work q -- no-such-command
    emq 2 work q -- /
    emq 2 work q --lease 999ms -- true
    emq 2 work q --jobs 0 -- true
    emq 2 work 'no queue' -- true
    EMQ_URL="unix://nobody:x@$socket" emq 4 work q -- true
    seq 1 40 | emq 0 enqueue q - -q
    emq 0 work q -j 4 --until-empty -- sh -c 'cat >"$0/$EMQ_JOB_ID.$EMQ_JOB_QUEUE.$EMQ_JOB_ATTEMPTS"' "$scratch"
    error_has '40 completed, 0 failed'
    counts_are 0 0 0 0
    cat "$scratch"/JOB*.q.1 | tr -d '\n' >"$scratch/all"
    [[ $(<"$scratch/all") == "$(seq 1 40 | tr -d '\n')" ]] || die 'the payloads are others'
    # every byte, and one that nobody reads
    printf 'a\n\377\0' >"$scratch/payload"
    head -c 3000000 /dev/zero >"$scratch/big"
    printf 'EMQ.ENQUEUE 2 emq:{q}:job:%s emq:{q}:pending %s "a\\n\\xff\\x00"\n' JOB00000000001 JOB00000000001 |
        "$cli" -s "$socket" >/dev/null
    emq 0 work q -e cp /dev/stdin "$scratch/copy"
    cmp "$scratch/payload" "$scratch/copy"
    tr '\0' x <"$scratch/big" | emq 0 enqueue q - -0 -q
    emq 0 work q -e -v -- true
    error_has ': success'
    counts_are 0 0 0 0
    # failures
    emq 0 enqueue q x
    id=$(<"$scratch/out")
    emq 0 work q -e -m 1 -- sh -c 'echo first >&2; printf "\\n a \\377 b \\n" >&2; exit 3'
    error_has 'first'
    error_has '1 failed (1 of them dead)'
    "$tool" job q "$id" --json | jq -e '.last_error_b64 == "ZXhpdCBzdGF0dXMgMzogZmlyc3QKCiBhIP8gYg=="' >/dev/null ||
        die "another error: $("$tool" job q "$id")"
    emq 0 enqueue r x
    id=$(<"$scratch/out")
    emq 0 work r -e -m 1 -- sh -c 'kill -9 $$'
    emq 0 job r "$id"
    output_has 'last error  killed by signal 9'
    # the tail of much
    emq 0 enqueue s x
    id=$(<"$scratch/out")
    emq 0 work s -e -m 1 -- sh -c 'yes | head -c 100000 >&2; printf "the end" >&2; exit 1'
    "$tool" job s "$id" --json | jq -e '(.last_error | length) > 4000 and (.last_error | length) < 9000 and (.last_error | endswith("the end"))' >/dev/null ||
        die 'the tail is another'
    # for machines: the command's output is in nobody's way
    emq 0 enqueue t x -q
    emq 0 work t -e --json -- echo hello
    json_is 'map(select(.event == "success"))[0] | .queue == "t" and .result == "EMQ_OK" and .attempts == 1'
    error_has 'hello'
}

# Whoever reads what the commands say may have stopped to, as a terminal does at Ctrl-S: they are
# ended in time all the same. One that never stops to speak is no other case.
case_work_unread() {
    a_server
    emq 0 enqueue q x -q
    mkfifo "$scratch/unread"
    exec 9<>"$scratch/unread" # nobody takes anything out
    "$tool" work q -m 1 --timeout 300ms --grace 100ms -- \
        sh -c 'echo $$ >$0/pid.1; mv $0/pid.1 $0/pid; trap "" TERM; while :; do echo unread >&2; done' "$scratch" 2>"$scratch/unread" &
    background=("$!")
    wait_for test -s "$scratch/pid"
    wait_for is_over "$(<"$scratch/pid")"
    cat <&9 >/dev/null & # somebody reads on
    background+=("$!")
    is_dead() { [[ $("$cli" -s "$socket" ZCARD 'emq:{q}:dead') == 1 ]]; }
    wait_for is_dead
    kill -TERM "${background[0]}"
    wait "${background[0]}"
    emq 0 dead q
    output_has 'timed out: '
    kill "${background[1]}"
    background=()
    exec 9>&-
}

# It is tried again behind a pause, until it works.
case_work_again() {
    a_server
    emq 0 enqueue q x -q
    "$tool" work q -b 1ms -- sh -c '[ "$EMQ_JOB_ATTEMPTS" -ge 3 ]' 2>"$scratch/err" &
    background=("$!")
    is_completed() { [[ $("$cli" -s "$socket" HGET 'emq:{q}:metrics:completed' count) == 1 ]]; }
    wait_for is_completed
    kill -TERM "${background[0]}"
    wait "${background[0]}"
    background=()
    error_has '1 completed, 2 failed'
}

# What it was given comes back in messages; a terminal must not obey it.
case_escapes() {
    local escape=$'\e[31m'
    has_no_escape() { ! grep -q $'\e' "$scratch/out" "$scratch/err" || die 'an escape came through'; }
    a_server
    emq 2 "no${escape}verb"
    error_has 'no verb no\x1b[31mverb'
    has_no_escape
    emq 2 stats "q$escape"
    error_has ': q\x1b[31m'
    has_no_escape
    emq 2 stats q "--no${escape}option=secret"
    error_has 'no option --no\x1b[31moption'
    has_no_escape
    ! grep -q secret "$scratch/err" || die 'a value was printed'
    emq 2 stats q $'-\e'
    error_has 'no option -\x1b'
    has_no_escape
    emq 2 stats q "--json=$escape"
    error_has '--json takes no value'
    has_no_escape
    emq 2 claim q -n
    error_has '-n takes a value'
    emq 2 claim q --max
    error_has '--max takes a value'
    emq 2 work q --j
    error_has 'several options begin with --j'
    emq 2 job q "JOB$escape"
    has_no_escape
    emq 2 claim q --max "1$escape"
    has_no_escape
    emq 2 complete - <<<"q$escape JOB0NgWEfAEJfs 1"
    error_has ': q\x1b[31m'
    has_no_escape
    emq 0 enqueue q "$escape" -q
    emq 0 peek q
    has_no_escape
    emq 0 work q -e -m 1 -- sh -c 'cat >&2; exit 1'
    emq 0 dead q
    has_no_escape
}

is_there() { [[ -e $1 ]]; }
is_over() { ! kill -0 "$1"; }
start_work() { # start_work ARGUMENT...: in the background
    "$tool" work "$@" >"$scratch/out" 2>"$scratch/err" &
    background=("$!")
}
end_work() { # end_work SIGNAL
    local result=0
    kill "-$1" "${background[0]}"
    wait "${background[0]}" || result=$?
    background=()
    ((result == 0)) || die "exit status $result"
}

# SIGTERM reaches the commands, and all that they have started ends.
case_work_stop() {
    a_server
    emq 0 enqueue q willing -q
    start_work q -- sh -c 'trap "touch $0/told; exit 0" TERM; touch $0/started; while :; do sleep 0.02; done' "$scratch"
    wait_for is_there "$scratch/started"
    end_work TERM
    is_there "$scratch/told" || die 'the command was not told'
    error_has '1 completed'
    counts_are 0 0 0 0
    # one that obeys and has not finished: its job goes back, without a failure
    emq 0 enqueue q unfinished
    local id
    id=$(<"$scratch/out")
    start_work q -j 3 -- sh -c 'echo $$ >$0/pid; mv $0/pid $0/pid.1; exec sleep 600' "$scratch"
    wait_for is_there "$scratch/pid.1"
    end_work INT
    error_has '1 given back'
    counts_are 1 0 0 0
    emq 0 job q "$id" --json
    json_is '.[0] | .failures == 0 and .stalled == 0 and .attempts == 1'
    is_over "$(<"$scratch/pid.1")" 2>/dev/null || die 'the command still runs'
    # one that does not listen, and neither does its child
    start_work q --grace 100ms -- sh -c 'trap "" TERM
        sh -c "trap \"\" TERM; echo \$\$ >$0/inner; while :; do sleep 0.02; done" & echo $$ >$0/outer
        while :; do sleep 0.02; done' "$scratch"
    wait_for test -s "$scratch/inner"
    wait_for test -s "$scratch/outer"
    end_work TERM
    wait_for is_over "$(<"$scratch/inner")"
    wait_for is_over "$(<"$scratch/outer")"
    counts_are 1 0 0 0
    # a second signal does not wait for the grace period
    rm "$scratch/outer" "$scratch/told"
    start_work q --grace 1h -- sh -c 'trap "touch $0/told" TERM; echo $$ >$0/outer; while :; do sleep 0.02; done' "$scratch"
    wait_for test -s "$scratch/outer"
    kill -TERM "${background[0]}"
    wait_for is_there "$scratch/told"
    end_work TERM
    is_over "$(<"$scratch/outer")" 2>/dev/null || die 'the command still runs'
    counts_are 1 0 0 0
}

case_work_time() {
    local id
    a_server
    # longer than its lease
    emq 0 enqueue q x -q
    emq 0 work q -e --lease 3s -- sh -c 'sleep 7; echo "attempt $EMQ_JOB_ATTEMPTS"'
    output_is 'attempt 1'
    error_has '1 completed'
    # longer than it may
    emq 0 enqueue q x
    id=$(<"$scratch/out")
    emq 0 work q -e -m 1 --timeout 3s --grace 100ms -- sh -c 'trap "" TERM; echo late >&2; while :; do sleep 0.02; done'
    emq 0 job q "$id"
    output_has 'last error  timed out: late'
    # its lease is lost: the command is told to end, and nothing is settled
    emq 0 enqueue r x
    id=$(<"$scratch/out")
    start_work r --lease 1s -- sh -c 'echo $$ >$0/pid; exec sleep 600' "$scratch"
    wait_for test -s "$scratch/pid"
    "$tool" requeue r "$id" 1 >/dev/null
    "$tool" pause r >/dev/null
    wait_for is_over "$(<"$scratch/pid")"
    end_work TERM
    emq 0 job r "$id" --json
    json_is '.[0] | .failures == 0'
}

# Pending jobs that nobody can claim are no reason to wait without a word.
case_work_paused() {
    a_server
    emq 0 enqueue q x -q
    emq 0 pause q r
    emq 0 work r -e -- true
    emq 1 work q -e -- true
    error_has 'q is paused'
    emq 1 work q -e --json -- true
    json_error_is 'map(select(.note // "" | contains("q is paused"))) | length == 1'
    counts_are 1 0 0 0
    # paused while the last job runs: that one is finished
    emq 0 resume q
    emq 0 enqueue q y -q
    EMQ_TOOL=$tool emq 1 work q -e -- sh -c '"$EMQ_TOOL" pause q'
    error_has '1 completed'
    counts_are 1 0 0 0
}

# Claims that are refused until somebody acts end it, at the start and later on.
case_work_refused() {
    local as
    a_server
    "$cli" -s "$socket" ACL SETUSER idler reset on '>x' '+@all' -emq.claim -emq.claims '~*' '&*' >/dev/null
    as="unix://idler:x@$socket"
    emq 0 enqueue q x -q
    emq 4 work q --url "$as" -- true
    error_has 'cannot claim'
    error_has "'EMQ.CLAIMS'"
    emq 4 work q -e --url "$as" -- true
    emq 4 work q -e --json --url "$as" -- true
    json_error_is 'map(select(.error == "EMQ_ENOPERM" and .status == 4 and .what == "cannot claim" and (.detail | contains("EMQ.CLAIMS")))) | length == 1'
    json_is 'any(.event == "trouble" and .result == "EMQ_ENOPERM")'
    # each trouble has its own words, also when two come at once
    "$cli" -s "$socket" ACL SETUSER idler -time >/dev/null
    for _ in 1 2 3 4 5 6 7 8; do
        emq 4 work q --json --url "$as" -- true
        json_is 'map(select(.event == "trouble" and .queue == "q")) | length == 1 and (.[0].text | contains("EMQ.CLAIMS"))'
        json_is 'all(.event != "trouble" or has("queue") or (.text | contains("time")))'
    done
    # no right to look for the end
    "$cli" -s "$socket" ACL SETUSER idler reset on '>x' '+@all' -zrange '~*' '&*' >/dev/null
    emq 4 work q -e --url "$as" -- true
    error_has 'cannot look for jobs'
}

# What is in hand is finished first.
case_work_lost_right() {
    a_server
    local result=0
    "$cli" -s "$socket" ACL SETUSER worker reset on '>x' '+@all' '~*' '&*' >/dev/null
    emq 0 enqueue q one two -q
    start_work q --url "unix://worker:x@$socket" -- sh -c 'touch "$0/started"; until [ -e "$0/go" ]; do sleep 0.02; done' "$scratch"
    wait_for is_there "$scratch/started"
    "$cli" -s "$socket" ACL SETUSER worker -emq.claims >/dev/null
    touch "$scratch/go"
    wait "${background[0]}" || result=$?
    background=()
    ((result == 4)) || die "exit status $result"
    error_has '1 completed'
    counts_are 1 0 0 0
    # the server comes back without its fence, while a worker waits
    "$cli" -s "$socket" ACL SETUSER worker +emq.claims >/dev/null
    result=0
    start_work other -- true
    wait_for is_waiting
    "$cli" -s "$socket" SET '{emq}:version' 'another wire' >/dev/null
    "$cli" -s "$socket" CLIENT KILL SKIPME yes >/dev/null
    wait "${background[0]}" || result=$?
    background=()
    ((result == 4)) || die "exit status $result"
    error_has '{emq}:version'
}

# Every kind of key is known, with its queue and what its id tells.
case_key() {
    local tail
    emq 2 key 'emq:{orders}:job:USR0NgWEfAEJfs'
    emq 0 key 'emq:{orders}:job:JOB0NgWEfAEJfs'
    output_has 'kind      job (hash)'
    output_has 'queue     orders'
    output_has 'minted    2026-06-03T18:56:10.164Z'
    emq 0 key 'emq:{123456789}:pending' JOBAzL8n0Y58m7 --json
    json_is '.[0] | .kind == "pending" and .type == "zset" and .queue == "123456789" and .slot == 12739'
    json_is '.[1] | .kind == "id" and .node == 1023 and .sequence == 4095'
    for tail in '' pending active schedule dead held ring paused glimit gactive gweight wake meta metrics:completed \
        metrics:failed flow:outbox flow:outbox:bad events:seq events job:JOB0NgWEfAEJfs{,:logs,:dependencies} \
        job:JOB0NgWEfAEJfs:{processed,failed,unsuccessful} g:lane:pending de:x stream:x stream:x:failures; do
        emq 0 key "emq:{q}:$tail" --json
        json_is '.[0] | .queue == "q" and (.kind | length) > 0 and (.type | length) > 0 and (.kind | contains("null") | not)'
    done
    emq 0 key '{emq}:version' --json
    json_is '.[0] | .kind == "fence" and (has("queue") | not)'
    emq 2 key 'emq:{q}:no-such-kind'
    emq 2 key ''
    emq 2 key 'emq:{q}:job:JOB0NgWEfAEJfs' nonsense
}

# What each role may do with this tool, with no right beyond the printed ones.
case_acl() {
    local role rules
    a_server
    for role in producer worker operator; do
        emq 0 acl "$role" q
        grep -q "^ACL SETUSER q-$role reset on >change-me " "$scratch/out" || die 'it is another line'
        rules=$(sed "s/^ACL SETUSER //" "$scratch/out")
        # shellcheck disable=SC2086 # words
        "$cli" -s "$socket" ACL SETUSER $rules >/dev/null
        emq 0 acl "$role" q --rules
        [[ $rules == *" $(<"$scratch/out")" ]] || die 'the rules are others'
        emq 0 acl "$role" q --file --user somebody
        grep -q "^user somebody on >change-me " "$scratch/out" || die 'it is no line of a file'
        emq 0 acl "$role" q --json
        json_is '.[0].role == "'"$role"'" and .[0].user == "q-'"$role"'" and (.[0].rules | test("emq.version"))'
    done
    emq 0 acl installer
    output_has ' +emq.install '
    emq 2 acl installer q
    emq 2 acl worker
    emq 2 acl nobody q
    emq 2 acl worker '*'
    as() { export EMQ_URL="unix://q-$1:change-me@$socket"; }
    as producer
    emq 0 enqueue q one two -q
    emq 0 schedule q three --at @1 -q
    printf '4\n5\n' | emq 0 enqueue q - -q
    emq 4 claim q
    emq 4 dead q
    as worker
    emq 0 promote q
    emq 0 claim q -n 2
    mv "$scratch/out" "$scratch/in"
    emq 0 extend - <"$scratch/in"
    emq 1 fail - -m 1 <"$scratch/in"
    emq 0 sweep q
    emq 4 enqueue q x
    emq 4 stats q
    "$cli" -s "$socket" ACL LOG RESET >/dev/null
    emq 0 work q --until-empty -- true
    error_has '3 completed, 0 failed'
    [[ -z $("$cli" -s "$socket" ACL LOG) ]] || die "a worker lacks a right: $("$cli" -s "$socket" ACL LOG)"
    as producer
    emq 0 enqueue q six -q
    as operator
    "$cli" -s "$socket" ACL LOG RESET >/dev/null
    emq 0 ping
    emq 0 stats q
    output_has 'dead        2'
    emq 0 peek q
    emq 0 peek q --newest
    emq 0 dead q
    emq 0 reprocess q --all --yes
    output_is '2 reprocessed'
    emq 0 pause q
    emq 0 resume q
    emq 0 sweep q
    emq 0 promote q
    emq 0 queues
    output_has 'q '
    emq 0 top -n 2 --delay 100ms --json
    json_is 'all(.queues | map(.queue) == ["q"])'
    [[ -z $("$cli" -s "$socket" ACL LOG) ]] || die "an operator lacks a right: $("$cli" -s "$socket" ACL LOG)"
    emq 4 claim q
    # another queue is there, and that is all he learns of it
    EMQ_URL="unix://$socket" emq 0 enqueue r x -q
    emq 0 queues --match q
    emq 4 queues --json
    json_is '(.[0].result | not) and .[1].queue == "r" and .[1].result == "EMQ_ENOPERM"'
}

# The line of every native verb is there, and does on the server what the verb does.
case_line() {
    local verb
    a_server
    emq 0 line
    sed 's/ .*//' "$scratch/out" | sort >"$scratch/lines"
    sed -n 's/^EMQ_VERB([^"]*"\([^"]*\)".*/\1/p' "$source_dir/src/verbs.def" | sort | diff - "$scratch/lines" ||
        die 'emq line has other verbs than the protocol'
    emq 0 line --json
    json_is 'length > 20 and (map(select(.verb == "EMQ.CLAIM"))[0].arguments == "QUEUE LEASE")'
    sends() { # sends ANSWER WORD...: the line of these words, sent by a client of the server's
        local answer=$1
        shift
        emq 0 line "$@"
        [[ $(eval "\"\$cli\" -s \"\$socket\" $(<"$scratch/out")") == "$answer" ]] || die "not answered with $answer: $*"
    }
    local id=JOB0NgWEfAEJfs other=JOB0NgWEfAEJft bytes=$'it\'s \\ "x"\n\t\377\e*'
    sends 0 install
    sends 1 enqueue q "$id" "$bytes"
    emq 0 job q "$id" --payload
    printf '%s' "$bytes" | cmp - "$scratch/out"
    sends 0 EMQ.ENQUEUE q "$id" ''
    sends $'1\n1' enqueues q "$other" a new b
    sends "$(printf '%s\n%s\n1' "$id" "$bytes")" emq.claim q 30s
    sends 1 extend q "$id" 1 1h
    sends "$other" extends q 1h "$id" 1 "$other" 1
    sends 1 delay q "$id" 1 in 1h
    sends 1 reschedule q "$id" at @1
    sends 1 promote q 10
    emq 0 claim q --max 3
    sends scheduled fail q "$id" 2 1h 2 "$bytes"
    sends dead fail q "$other" 1 0 1 ''
    sends 1 reprocess q "$other"
    sends $'-1\n0' completes q "$id" 7 new 1
    sends 1 schedule q JOB0NgWEfAEJfu x at 2000-01-01T00:00Z
    sends 1 pause q
    sends '' claims q 30s 10
    sends 1 resume q
    sends '' stalled.check q 3 10
    sends 0 complete q JOB0NgWEfAEJfv 1
    sends -1 requeue q JOB0NgWEfAEJfv 1
    sends 0 publish q e j name value
    emq 0 line append q s new name value
    emq 0 line failures.incr q s g 1-1
    sends 2 tra.bitset bits 1 5
    sends 1 tra.bitclear bits 1
    sends $'0\n1' tra.bitget bits 1 5
    sends 5 tra.bitscan bits 0 10 5
    sends "$(printf '%s' "$("$cli" -s "$socket" TRA.INFO)")" tra.info
    emq 0 line version
    output_is EMQ.VERSION
    emq 0 line tra.commands
    emq 0 line enqueue q "$id" $'\377' --json
    json_is '.[0][0] == "EMQ.ENQUEUE" and .[0][-1] == {"argument_b64": "/w=="}'
    emq 2 line no.such.verb
    emq 2 line claim q
    emq 2 line claim q 30s 1
    emq 2 line claims q 30s 1 1s 1
    emq 2 line claim 'no queue' 30s
    emq 2 line claim q 30
    emq 2 line complete 'no queue' "$id" 1
    emq 2 line completes q "$id"
    emq 2 line delay q "$id" 1 on 1s
    emq 2 line tra.bitset k x
}

# Output that can't be written is no success.
case_full_disk() {
    a_server
    [[ -e /dev/full ]] || exit 77
    local result=0
    "$tool" ping >/dev/full 2>"$scratch/err" || result=$?
    ((result == 7)) || die "exit status $result"
    error_has 'standard output'
    result=0
    seq 5000 | "$tool" enqueue q - >/dev/full 2>"$scratch/err" || result=$?
    ((result == 7)) || die "exit status $result"
    error_has 'admitted; 0 unknown'
}

# What is printed must never go to the server, whatever is closed: a payload would be a command.
case_closed() {
    local result=0
    a_server
    emq 0 enqueue q $'x\nSET broken 1\n' 'SET broken 1' -q
    printf 'SET broken 1\r\n' | "$tool" enqueue q - -q
    "$tool" peek q >&- 2>"$scratch/err" || result=$?
    ((result == 7)) || die "exit status $result"
    error_has 'standard output'
    result=0
    "$tool" enqueue q - <&- 2>"$scratch/err" || result=$?
    ((result == 7)) || die "exit status $result"
    error_has 'standard input'
    "$tool" stats 'SET broken 1' 2>&- || result=$?
    ((result == 2)) || die "exit status $result"
    "$tool" work q -e -- sh -c 'cat; echo SET broken 1 >&2' <&- >&- 2>&-
    counts_are 0 0 0 0
    [[ $("$cli" -s "$socket" EXISTS broken) == 0 ]] || die 'the output was taken for a command'
}

"case_$case"
printf 'passed: %s\n' "$case"
