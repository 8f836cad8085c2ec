# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The servers of the benchmark: started when the first cell needs them, and ended at the end. Sourced by
# run.sh.

declare -A server_dir=() server_port=() server_pid=() server_socket=()

start_server() { # start_server NAME: 1, with peer_reason, when it can't be had
    [[ -z ${server_pid[$1]:-} ]] || return 0
    local result=0
    case $1 in
    none) ;;
    valkey-*) start_valkey "$1" ;;
    beanstalkd-*) start_beanstalkd "$1" || result=1 ;;
    gearmand-*) start_gearmand "$1" || result=1 ;;
    esac
    return "$result"
}

# valkey-AOF[-WHAT]: off or everysec; WHAT tells servers apart that must not share their data.
start_valkey() {
    local name=$1 aof=${1#valkey-} line value conf=(--conf 'appendonly no')
    # no rewrite begins in the middle of a measurement
    [[ ${aof%%-*} != everysec ]] || conf=(--conf 'auto-aof-rewrite-percentage 0')
    [[ $name != *-default ]] || conf+=(--conf 'hash-max-listpack-value 64')
    while IFS='=' read -r line value; do
        case $line in
        dir) server_dir[$name]=$value ;;
        socket) server_socket[$name]=$value ;;
        port) server_port[$name]=$value ;;
        pid) server_pid[$name]=$value ;;
        esac
    done < <("$root/tools/server.sh" start --module "$module" \
        --flavour "${EMQ_SERVER_FLAVOUR:-plain}" "${conf[@]}")
    [[ -n ${server_pid[$name]:-} ]] || fail "the server $name did not start"
}

stop_servers() {
    local name
    for name in "${!server_pid[@]}"; do
        case $name in
        valkey-*) "$root/tools/server.sh" stop "${server_dir[$name]}" >/dev/null || true ;;
        *)
            kill "${server_pid[$name]}" 2>/dev/null || true
            wait "${server_pid[$name]}" 2>/dev/null || true
            rm -rf "${server_dir[$name]}"
            ;;
        esac
        unset "server_pid[$name]"
    done
}
