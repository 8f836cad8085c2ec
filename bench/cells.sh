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

verbs() { # verbs NAME.. : drives a cell that goes over the Unix socket, 20 connections
    drive "$1" "$2" "$3" verbs "$4" path="${server_socket[$3]}" connections=20 "${@:5}"
}

# The way of a job, of all contenders, at one number of jobs in flight.
plan_lifecycle() { # plan_lifecycle AOF IN_FLIGHT JOBS
    local side aof=$1 count
    count=$(jobs "$3")
    for side in pipeline batches async native script bare; do
        cell 999 "lifecycle/$side/$2/$1" "valkey-$aof" drive lifecycle "$side" "in_flight=$2" "jobs=$count"
    done
    cell 999 "lifecycle/beanstalkd/$2/$1" "beanstalkd-$aof" drive lifecycle beanstalkd "in_flight=$2" "jobs=$count"
    [[ $aof != off ]] ||
        cell 999 "lifecycle/gearmand/$2/$1" gearmand-off drive lifecycle gearmand "in_flight=$2" "jobs=$count"
}

plan_cells() {
    local side aof
    for side in bare pipeline async; do
        cell 999 "client/$side" valkey-off drive client "$side" "jobs=$(jobs 100000)" in_flight=64
    done
    for side in native script bare; do
        cell 999 "verbs/$side" valkey-off verbs "$side" "jobs=$(jobs 64000)" in_flight=32
    done
    for aof in off everysec; do
        plan_lifecycle "$aof" 1 3200
        plan_lifecycle "$aof" 16 16000
        plan_lifecycle "$aof" 256 32000
    done
    cell 999 verbs/batch valkey-off verbs batch "jobs=$(jobs 64000)" in_flight=1
}
