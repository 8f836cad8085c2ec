# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# The cases of `emq bench`; tool_test.sh sources it.

# No key of any of its queues is left.
nothing_is_left() { [[ -z $("$cli" -s "$socket" --scan --pattern 'emq:{emq-bench-*') ]]; }
# A queue of it is there.
is_benched() { ! nothing_is_left; }

case_bench() {
    a_server
    emq 2 bench </dev/null
    error_has '--yes'
    emq 2 bench -y --payload 7
    emq 2 bench -y --depth 0
    emq 2 bench -y --payload 1000000 --depth 1000
    error_has '--payload'
    emq 3 bench -y --url "unix://$scratch/nothing"
    emq 0 bench -y --jobs 1001 --depth 10 --connections 3 --for 5m --json
    no_error
    json_is 'length == 1 and (.[0] | .jobs == 1001 and .depth == 10 and .connections == 3 and .payload == 100 and
        .seconds > 0 and .rate > 0 and (.queue | startswith("emq-bench-")))'
    json_is '[.[0] | .enqueue, .claim, .complete] | all(.rate > 0 and .p50_ms > 0 and .p99_ms >= .p50_ms)'
    nothing_is_left || die 'keys are left'
    emq 0 bench -y -n 7 -d 1000 -p 8
    output_has '7 jobs of 8 bytes'
    output_has 'each of them was delivered once'
    nothing_is_left || die 'keys are left'
    # whoever has no right to remove it writes nothing
    "$cli" -s "$socket" ACL SETUSER worker on '>x' +@all -del '~*' '&*' >/dev/null
    emq 4 bench -y --url "unix://worker:x@$socket"
    error_has 'cannot remove a queue'
    # a server that refuses
    "$cli" -s "$socket" CONFIG SET maxmemory 1 >/dev/null
    emq 3 bench -y -c 2 --json
    json_error_is '.[0].error == "EMQ_EOOM" and .[0].what == "cannot enqueue"'
    "$cli" -s "$socket" CONFIG SET maxmemory 0 >/dev/null
    nothing_is_left || die 'keys are left'
}

# However it ends, the queue is gone.
case_bench_ends() {
    local result queue
    a_server
    start_bench() {
        result=0
        "$tool" bench -y --jobs 10000000 --for 4m "$@" >"$scratch/out" 2>"$scratch/err" &
        background=("$!")
        wait_for is_benched
    }
    end_bench() { # end_bench STATUS
        wait "${background[0]}" || result=$?
        background=()
        ((result == $1)) || die "exit status $result instead of $1"
        nothing_is_left || die 'keys are left'
    }
    start_bench -c 2
    kill -INT "${background[0]}"
    end_bench 130
    output_has 'each of them was delivered once'
    error_has 'it ended before all of the 10000000 jobs'
    # the signal comes to the thread of a connection
    start_bench
    kill -INT "$(find "/proc/${background[0]}/task" -mindepth 1 -printf '%f\n' -prune | sort -n | tail -n 1)"
    end_bench 130
    # its connections are cut
    start_bench
    "$cli" -s "$socket" CLIENT KILL TYPE normal SKIPME yes >/dev/null
    wait "${background[0]}" || result=$?
    ((result == 3 || result == 6)) || die "exit status $result"
    background=()
    nothing_is_left || die 'keys are left'
    # somebody else takes of its jobs
    start_bench -d 1000
    queue=$("$cli" -s "$socket" --scan --pattern 'emq:{emq-bench-*' | sed -n '1s/.*{\(.*\)}.*/\1/p')
    wait_for "$tool" claim "$queue" >/dev/null
    end_bench 7
}
