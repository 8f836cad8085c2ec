# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What is measured: the cells of the plan, in the order in which a round runs them. Sourced by run.sh.

names=() servers=() runner=() arguments=() most_rounds=()

# cell ROUNDS NAME SERVER RUNNER ARGUMENT...: a cell that is run in so many rounds at most.
cell() {
    # shellcheck disable=SC2053
    [[ $2 == $only ]] || return 0
    most_rounds+=("$1")
    names+=("$2")
    servers+=("$3")
    runner+=("$4")
    shift 4
    arguments+=("$*")
}

# The number of jobs, a multiple of 32; the quick run takes few.
jobs() { # jobs NUMBER
    local count=$1
    [[ $mode != quick ]] || count=$((count / 50))
    echo $((count < 640 ? 640 : count / 32 * 32))
}

verbs() { # verbs CELL ROUND SERVER CONTENDER [NAME=VALUE]...: a cell that goes over the Unix socket, 20 connections
    drive "$1" "$2" "$3" verbs "$4" path="${server_socket[$3]}" connections=20 "${@:5}"
}

# The way of a job, of all contenders, at one number of jobs in flight. With PENDING there are servers
# for that alone, since the jobs that wait stay in them.
plan_lifecycle() { # plan_lifecycle AOF IN_FLIGHT JOBS [PENDING]
    local side aof=$1 count end=$2/$1 server=$1 options
    count=$(jobs "$3")
    options=("in_flight=$2" "jobs=$count")
    if [[ -n ${4:-} ]]; then
        end+=/$4
        server+=-$4
        options+=("pending=$4")
    fi
    for side in pipeline batches async worker worker-prefetch native script bare; do
        cell 999 "lifecycle/$side/$end" "valkey-$server" drive lifecycle "$side" "${options[@]}"
    done
    cell 999 "lifecycle/beanstalkd/$end" "beanstalkd-$server" drive lifecycle beanstalkd "${options[@]}"
    if [[ $aof == off ]]; then
        cell 999 "lifecycle/gearmand/$end" "gearmand-$server" drive lifecycle gearmand "${options[@]}"
    else
        cell 1 "lifecycle/gearmand/$end" none nothing 'it keeps background jobs in memory alone'
    fi
    if [[ -z ${4:-} ]]; then
        cell 5 "lifecycle/bullmq/$end" "valkey-$server" run_bullmq "in_flight=$2" "jobs=$((count / 4))"
    else
        cell 1 "lifecycle/bullmq/$end" none nothing 'its jobs would come behind those that wait'
    fi
}

nothing() { # nothing CELL ROUND SERVER REASON...
    unmeasured "$1" "${*:4}"
}

# What a job takes of memory, by its payload. The servers are for that alone.
plan_memory() {
    local state size server end count sizes=(0 100 1000 10000)
    [[ $mode != quick ]] || sizes=(100)
    for size in "${sizes[@]}"; do
        count=$(jobs 20000)
        ((size < 10000)) || count=$(jobs 5000)
        for state in pending active scheduled bare; do
            for end in recommended default; do
                server=valkey-off-memory
                [[ $end == recommended ]] || server+=-default
                cell 1 "memory/$state/$size/$end" "$server" drive memory "$state" "jobs=$count" "payload=$size"
            done
        done
    done
}

plan_latency() {
    local side aside=valkey-off-latency scheduled=300
    [[ $mode != quick ]] || scheduled=20
    cell 5 latency/blocked/1 $aside drive latency blocked waiters=1 "jobs=$(jobs 4000)"
    cell 5 latency/blocked/100 $aside drive latency blocked waiters=100 "jobs=$(jobs 2000)"
    # no queue lets more than 512 wait
    cell 5 latency/blocked/1000 $aside drive latency blocked waiters=1000 queues=2 "jobs=$(jobs 2000)"
    cell 5 latency/worker $aside drive latency worker "jobs=$(jobs 2000)"
    for side in scheduled worker-scheduled; do
        cell 5 "latency/$side" $aside drive latency "$side" "jobs=$scheduled"
    done
}

# Cost against the number of jobs that wait, of jobs in the set of a sweep, and of queues.
plan_growth() {
    local many=1000000 depth verb queues_max count
    count=$(jobs 32000)
    queues_max=$((count / 2))
    [[ $mode != quick ]] || many=20000
    for depth in 1000 $many; do
        cell 5 "depth/$depth" "valkey-off-$depth" verbs native in_flight=32 "jobs=$count" "pending=$depth"
    done
    for verb in promote stalled; do
        cell 5 "sweep/$verb/20000" valkey-off-sweep drive sweep "$verb" jobs=20000
        [[ $mode == quick ]] ||
            cell 2 "sweep/$verb/$many" valkey-off-sweep drive sweep "$verb" "jobs=$many"
    done
    for depth in 1 32 $queues_max; do
        cell 5 "queues/$depth" valkey-off verbs native in_flight=32 "jobs=$count" "queues=$depth"
    done
}

plan_cells() {
    local side aof
    for side in bare pipeline async; do
        cell 999 "client/$side" valkey-off drive client "$side" "jobs=$(jobs 100000)" in_flight=64
    done
    for side in native script bare; do
        cell 999 "verbs/$side" valkey-off verbs "$side" "jobs=$(jobs 64000)" in_flight=32
    done
    cell 999 verbs/batch valkey-off verbs batch "jobs=$(jobs 64000)" in_flight=1
    plan_growth
    plan_latency
    plan_lifecycle off 1 3200
    plan_lifecycle off 16 16000
    plan_lifecycle off 256 32000
    plan_lifecycle everysec 256 32000
    if [[ $mode == quick ]]; then
        plan_lifecycle off 16 16000 1000 # as the matrix has it with a million
    elif [[ $mode == full ]]; then
        plan_lifecycle everysec 1 3200
        plan_lifecycle everysec 16 16000
        for aof in off everysec; do
            plan_lifecycle "$aof" 1 3200 1000000
            plan_lifecycle "$aof" 16 16000 1000000
            plan_lifecycle "$aof" 256 32000 1000000
        done
    fi
    plan_memory
}
