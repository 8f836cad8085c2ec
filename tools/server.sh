#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Starts and stops a private Valkey server: own folder, Unix socket and loopback port, AOF on, the
# module loaded and the fence installed. Tests, benchmark and quickstart all use this one.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: tools/server.sh start [--module FILE] [--dir DIR] [--flavour plain|asan] [--no-fence] [--test]
                             [--replica-of PORT] [--sentinel] [--conf 'LINE']...
       tools/server.sh stop DIR [--keep]
       tools/server.sh status DIR
       tools/server.sh --help

start   runs a server with the recommended configuration (tools/valkey.conf) and prints dir=, socket=,
        port=, pid=, log= and cli=. It listens on 127.0.0.1 and the socket only.
  --module FILE      load this emq.so, and install the fence
  --dir DIR          use this folder, new or empty; one that a `stop --keep` left starts again on its data, port and
                     configuration (other options are not needed then)
  --flavour F        plain (default) or asan; see tools/get-valkey.sh
  --no-fence         do not run EMQ.INSTALL
  --test             allow the DEBUG command
  --replica-of PORT  replicate from 127.0.0.1:PORT
  --sentinel         run a sentinel instead; what it watches is told by lines of configuration
  --conf 'LINE'      one more line of configuration; may be repeated, the last word counts
stop    ends the server and removes its folder; --keep leaves the folder. Exit status 3, with the
        report printed and the folder left, when a sanitizer or the server itself reported an error.
status  prints the same lines as start for a running server; exit status 1 when none runs there.

Exit status: 0 done; 1 it failed, with the reason; 2 wrong use; 3 a report of an error.
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
start_seconds=60 # a sanitizer build on a busy machine, loading a file
stop_seconds=60

fail() {
    printf 'server: %s\n' "$1" >&2
    exit "${2:-1}"
}

# For a start that is interrupted: the process it has started and the folder it has made.
launched=
own_dir=

# Values that start wrote down: server, cli, port, flavour, fence, sentinel.
recall() { sed -n "s/^$2=//p" "$1/facts"; }

print_facts() { # print_facts DIR PID
    printf 'dir=%s\nsocket=%s\nport=%s\npid=%s\nlog=%s\ncli=%s\n' \
        "$1" "$1/s" "$(recall "$1" port)" "$2" "$1/log" "$(recall "$1" cli)"
}

# The pid in the folder, when that process is still the server of this folder: one that works in it. A
# number alone may have gone to another process meanwhile.
running_pid() {
    local pid
    [[ -f $1/pid ]] || return 1
    pid=$(<"$1/pid")
    [[ $pid =~ ^[0-9]+$ && "/proc/$pid/cwd" -ef $1 ]] || return 1
    printf '%s\n' "$pid"
}

# What the sanitizers wrote, into files of their own or (the undefined-behaviour one beside the address
# one) on standard error, and the server's own report of a crash.
reports() { # reports DIR
    local file
    for file in "$1"/sanitizer.*; do
        [[ ! -s $file ]] || cat "$file"
    done
    ! grep -qE 'runtime error: |Sanitizer' "$1/out" 2>/dev/null || cat "$1/out"
    for file in "$1/log.old" "$1/log"; do
        ! grep -q 'BUG REPORT START' "$file" 2>/dev/null || sed -n '/BUG REPORT START/,$p' "$file"
    done
}

write_configuration() { # write_configuration DIR: all but the port; uses start's variables
    local line
    {
        [[ -n $sentinel ]] || printf 'include %s\n' "$(quote "$here/valkey.conf")"
        printf 'bind 127.0.0.1\nprotected-mode yes\ndaemonize no\nunixsocket %s\n' "$(quote "$1/s")"
        printf 'dir %s\nlogfile %s\n' "$(quote "$1")" "$(quote "$1/log")"
        [[ -z $module ]] || printf 'loadmodule %s\n' "$(quote "$module")"
        [[ -z $test ]] || printf 'enable-debug-command local\n'
        [[ -z $replica_of ]] || printf 'replicaof 127.0.0.1 %s\n' "$replica_of"
        for line in "${conf[@]:-}"; do
            printf '%s\n' "$line"
        done
    } >"$1/valkey.conf"
}

quote() { # a configuration value in double quotes
    local value=${1//\\/\\\\}
    printf '"%s"' "${value//\"/\\\"}"
}

# Starts the process and waits until it answers. 0 it answers; 1 it ended; 2 its port was taken.
launch() { # launch DIR PORT
    local dir=$1 port=$2 server cli sentinel pid deadline answer
    server=$(recall "$dir" server)
    sentinel=$(recall "$dir" sentinel)
    cli=$(recall "$dir" cli)
    rm -f "$dir/s"
    # the last word counts, and a path with a colon or a space must be quoted
    ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=1:log_path='$dir/sanitizer'" \
        UBSAN_OPTIONS="${UBSAN_OPTIONS:-}:print_stacktrace=1:log_path='$dir/sanitizer'" \
        setsid "$server" "$dir/valkey.conf" ${sentinel:+--sentinel} --port "$port" </dev/null >>"$dir/out" 2>&1 9>&- &
    pid=$!
    disown "$pid"
    launched=$pid
    printf '%s\n' "$pid" >"$dir/pid"
    deadline=$((SECONDS + start_seconds))
    while ((SECONDS < deadline)); do
        if ! kill -0 "$pid" 2>/dev/null; then
            grep -q 'Address already in use' "$dir/log" 2>/dev/null && return 2
            return 1
        fi
        answer=$("$cli" -s "$dir/s" PING 2>&1) || true
        case $answer in
        PONG | LOADING* | MASTERDOWN* | NOAUTH* | NOPERM*) return 0 ;;
        esac
        sleep 0.05
    done
    kill -KILL "$pid" 2>/dev/null || true
    launched=
    printf 'server: no answer within %s seconds\n' "$start_seconds" >&2
    return 1
}

start() {
    module='' dir='' flavour=plain fence=yes test='' replica_of='' sentinel=''
    conf=()
    while (($# > 0)); do
        case $1 in
        --no-fence) fence= ;;
        --test) test=yes ;;
        --sentinel) sentinel=yes ;;
        --module | --dir | --flavour | --conf | --replica-of)
            (($# > 1)) || fail "$1 needs a value" 2
            case $1 in
            --module) module=$(realpath -e -- "$2" 2>/dev/null) || fail "no module at $2" ;;
            --dir) dir=$2 ;;
            --flavour) flavour=$2 ;;
            --conf) conf+=("$2") ;;
            --replica-of) replica_of=$2 ;;
            esac
            shift
            ;;
        *) fail "unknown option: $1 (see --help)" 2 ;;
        esac
        shift
    done
    [[ $flavour == plain || $flavour == asan ]] || fail "the flavour is plain or asan, not $flavour" 2
    if [[ -n $dir ]]; then
        mkdir -p -- "$dir"
        dir=$(realpath -e -- "$dir")
        # stop removes the folder: it must not hold anything of somebody else's
        [[ -f $dir/facts || -z $(ls -A -- "$dir") ]] || fail "$dir is not empty, and no server's folder" 2
    else
        dir=$(mktemp -d "${TMPDIR:-/tmp}/emq-XXXXXX")
        own_dir=$dir
    fi
    # sun_path holds 107 bytes and a NUL
    (($(printf '%s/s' "$dir" | wc -c) <= 107)) || fail "the folder's path is too long for a Unix socket: $dir"
    running_pid "$dir" >/dev/null && fail "a server runs in $dir already"
    if [[ ! -f $dir/facts ]]; then
        [[ -n $module && -z $replica_of ]] || fence= # a replica gets its primary's
        local valkey
        valkey=$("$here/get-valkey.sh" --flavour "$flavour")
        write_configuration "$dir"
        printf '%s\nfence=%s\nsentinel=%s\n' "$(grep -E '^(server|cli|flavour)=' <<<"$valkey")" "$fence" \
            "$sentinel" >"$dir/facts"
    fi
    # who gives up waiting must not leave a server behind that nobody knows of
    trap 'interrupted 130' INT
    trap 'interrupted 143' TERM HUP
    start_on_a_port "$dir"
    local pid cli
    pid=$(<"$dir/pid")
    cli=$(recall "$dir" cli)
    if [[ -n $(recall "$dir" fence) ]]; then
        install_fence "$dir" "$cli"
    fi
    print_facts "$dir" "$pid"
}

interrupted() { # interrupted STATUS
    if [[ -n $launched ]]; then
        kill -KILL "$launched" 2>/dev/null || true
        while [[ -d /proc/$launched ]]; do sleep 0.02; done # it may still write
    fi
    [[ -z $own_dir ]] || rm -rf -- "$own_dir"
    exit "$1"
}

# A restart keeps its port; a first start tries ports until one is free, which only the server's own
# bind can tell.
start_on_a_port() { # start_on_a_port DIR
    local dir=$1 port result try
    port=$(recall "$dir" port)
    for ((try = 0; try < 50; try++)); do
        local candidate=${port:-$((10000 + (RANDOM * 32768 + RANDOM) % 20000))}
        if [[ -f $dir/log ]]; then
            cat "$dir/log" >>"$dir/log.old"
            rm -f "$dir/log"
        fi
        result=0
        launch "$dir" "$candidate" || result=$?
        if ((result == 0)); then
            [[ -n $port ]] || printf 'port=%s\n' "$candidate" >>"$dir/facts"
            return 0
        fi
        if ((result == 1)); then
            { cat "$dir/out" "$dir/log" 2>/dev/null || true; } | tail -n 15 >&2
            fail "the server did not start; its folder: $dir"
        fi
        [[ -z $port ]] || sleep 0.2
    done
    fail "found no free port"
}

install_fence() { # install_fence DIR CLI
    local answer deadline=$((SECONDS + start_seconds))
    while ((SECONDS < deadline)); do
        answer=$("$2" -s "$1/s" EMQ.INSTALL 1 '{emq}:version' 2>&1) || true
        case $answer in
        0 | 1) return 0 ;;
        LOADING*) sleep 0.1 ;;
        *) fail "the fence was not installed: $answer (the server runs on, in $1)" ;;
        esac
    done
    fail "the fence was not installed: still loading after $start_seconds seconds"
}

stop() {
    local dir='' keep='' pid deadline report
    while (($# > 0)); do
        case $1 in
        --keep) keep=yes ;;
        -*) fail "unknown option: $1 (see --help)" 2 ;;
        *) dir=$1 ;;
        esac
        shift
    done
    [[ -n $dir && -f $dir/facts ]] || fail "no server's folder: '$dir'" 2
    dir=$(realpath -e -- "$dir")
    if pid=$(running_pid "$dir"); then
        kill -TERM "$pid" 2>/dev/null || true
        kill -CONT "$pid" 2>/dev/null || true # one that a test has stopped must hear it too
        deadline=$((SECONDS + stop_seconds))
        while running_pid "$dir" >/dev/null; do
            if ((SECONDS >= deadline)); then
                printf 'server: %s did not end within %s seconds: killed\n' "$pid" "$stop_seconds" >&2
                kill -KILL "$pid" 2>/dev/null || true
                sleep 0.2
                break
            fi
            sleep 0.02
        done
    fi
    rm -f "$dir/pid"
    report=$(reports "$dir")
    if [[ -n $report ]]; then
        printf '%s\n' "$report" >&2
        printf 'server: the server reported an error; the folder stays: %s\n' "$dir" >&2
        exit 3
    fi
    [[ -n $keep ]] || rm -rf -- "$dir"
}

status() {
    local dir=${1:-} pid
    [[ $# == 1 && -n $dir ]] || fail 'status takes a DIR (see --help)' 2
    [[ -f $dir/facts ]] || fail "no server runs in $dir" # removed, or never one's folder
    dir=$(realpath -e -- "$dir")
    pid=$(running_pid "$dir") || fail "no server runs in $dir"
    print_facts "$dir" "$pid"
}

case ${1:-} in
start | stop | status) "$@" ;;
--help | -h) usage ;;
*)
    usage >&2
    exit 2
    ;;
esac
