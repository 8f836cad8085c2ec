# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Gets the other queues, into the cache and not into the system: Debian packages are unpacked there, with
# the libraries that they need and the system lacks, so that no service is installed or started; npm
# packages get a folder of their own. Sourced by run.sh.

peer_cache=${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/emq
peer_reason=
declare -A peer_version=()

# peer_package NAME: sets peer_root to the folder that it is unpacked in; empty for the system's own.
peer_package() {
    local name=$1
    peer_root=
    ! command -v "$2" >/dev/null || return 0
    peer_root=$peer_cache/bench-$name
    [[ ! -f $peer_root/stamp ]] || return 0
    peer_reason="$name is not installed"
    [[ $mode != quick ]] || return 1
    peer_reason="$name: apt-get can't get it (log: $peer_cache/bench-$name.log)"
    command -v apt-get >/dev/null || return 1
    say "getting $name"
    _peer_unpack "$name" >"$peer_cache/bench-$name.log" 2>&1
}

_peer_unpack() {
    local name=$1 work packages package apt=(apt-get -q -o APT::Sandbox::User=root)
    mkdir -p "$peer_cache"
    work=$(mktemp -d "$peer_cache/work.XXXXXX")
    packages=$("${apt[@]}" -s --no-install-recommends install "$name") || {
        "${apt[@]}" update || true # a machine whose lists are still empty
        packages=$("${apt[@]}" -s --no-install-recommends install "$name") || return 1
    }
    mapfile -t packages < <(sed -n 's/^Inst \([^ ]*\).*/\1/p' <<<"$packages")
    (cd "$work" && "${apt[@]}" download "${packages[@]}" &&
        for package in ./*.deb; do dpkg-deb -x "$package" root || exit 1; done) || return 1
    rm -rf "$peer_root"
    mv "$work/root" "$peer_root" && rm -rf "$work" && touch "$peer_root/stamp"
}

# The folders of the libraries that were unpacked.
_peer_libraries() {
    find "$peer_root" -name '*.so*' -printf '%h\n' 2>/dev/null | sort -u | paste -sd:
}

# peer_run NAME COMMAND VERSION ARGUMENT...: starts a server from its package in a folder of its own, on a free port of
# 127.0.0.1, which takes the place of PORT among the arguments. VERSION is the option that prints its version.
peer_run() {
    local name=$1 command=$2 version=$3 try port argument arguments=() path libraries=
    shift 3
    path=$(command -v "$command" || find "$peer_root" -path "*bin/$command" -print -quit)
    [[ -z $peer_root ]] || libraries=$(_peer_libraries)
    server_dir[$name]=$(mktemp -d "${TMPDIR:-/tmp}/emq-bench-XXXXXX")
    for ((try = 0; try < 20; try++)); do
        port=$((10000 + (RANDOM * 32768 + RANDOM) % 20000))
        arguments=()
        for argument in "$@"; do
            argument=${argument//PORT/$port}
            arguments+=("${argument//DIR/${server_dir[$name]}}")
        done
        (cd "${server_dir[$name]}" && exec env ${libraries:+LD_LIBRARY_PATH="$libraries"} \
            "$path" "${arguments[@]}" </dev/null >out 2>&1) &
        server_pid[$name]=$!
        server_port[$name]=$port
        if _peer_answers "$name"; then
            peer_version[$command]=$(LD_LIBRARY_PATH=$libraries "$path" "$version" 2>&1 | sed -n '/./{s, - http.*,,;p;q}') || true
            return 0
        fi
        wait "${server_pid[$name]}" 2>/dev/null || true
        unset "server_pid[$name]"
    done
    peer_reason="$name does not start: $(tail -n 1 "${server_dir[$name]}/out")"
    rm -rf "${server_dir[$name]}"
    return 1
}

# Waits until the process listens or has ended. (The port may be somebody else's: then it has ended.)
_peer_answers() {
    local try
    for ((try = 0; try < 200; try++)); do
        kill -0 "${server_pid[$1]}" 2>/dev/null || return 1
        if (exec 3<>"/dev/tcp/127.0.0.1/${server_port[$1]}") 2>/dev/null; then
            sleep 0.1
            kill -0 "${server_pid[$1]}" 2>/dev/null
            return
        fi
        sleep 0.05
    done
    kill "${server_pid[$1]}" 2>/dev/null || true
    return 1
}

start_beanstalkd() { # beanstalkd-off or beanstalkd-everysec
    local options=(-l 127.0.0.1 -p PORT)
    peer_package beanstalkd beanstalkd || return 1
    [[ $1 != *-everysec* ]] || options+=(-b DIR -f 1000)
    peer_run "$1" beanstalkd -v "${options[@]}"
}

start_gearmand() {
    local options=(--listen=127.0.0.1 --port=PORT --log-file=stderr)
    peer_package gearman-job-server gearmand || return 1
    ((EUID != 0)) || options+=(--user=root)
    peer_run "$1" gearmand --version "${options[@]}"
}

# The versions of those that were run.
peer_facts() {
    local name
    for name in "${!peer_version[@]}"; do
        printf 'peer %s=%s\n' "$name" "${peer_version[$name]}"
    done | sort
}

# get_bullmq: sets bullmq_packages to the folder that npm has put it in.
get_bullmq() {
    bullmq_packages=$peer_cache/bench-bullmq
    peer_reason='there is no npm'
    command -v npm >/dev/null && command -v node >/dev/null || return 1
    [[ ! -f $bullmq_packages/stamp ]] || return 0
    peer_reason='bullmq is not there'
    [[ $mode != quick ]] || return 1
    peer_reason="npm can't get bullmq (log: $bullmq_packages.log)"
    say 'getting bullmq'
    mkdir -p "$bullmq_packages"
    npm install --prefix "$bullmq_packages" --no-audit --no-fund bullmq ioredis@5 >"$bullmq_packages.log" 2>&1 || return 1
    touch "$bullmq_packages/stamp"
}

run_bullmq() { # run_bullmq CELL ROUND SERVER [NAME=VALUE]...
    if ! get_bullmq; then
        unmeasured "$1" "$peer_reason"
        return 0
    fi
    peer_version[bullmq]=$(cd "$bullmq_packages/node_modules" && for name in bullmq ioredis; do
        printf '%s %s, ' "$name" "$(sed -n 's/^ *"version": "\(.*\)",*$/\1/p' "$name/package.json")"
    done)"node $(node --version)"
    node "$root/bench/bullmq.js" packages="$bullmq_packages" \
        cell="$1" round="$2" port="${server_port[$3]}" pid="${server_pid[$3]}" "${@:4}"
}
