#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Finds a Valkey 9 server and valkeymodule.h, or fetches and builds them once into the user's cache.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: tools/get-valkey.sh [--flavour plain|asan] [--print NAME] [--help]

Finds a Valkey 9 server: $VALKEY_SERVER, or valkey-server in PATH with its header, or one in the cache;
otherwise fetches Debian's source package from the mirror that this machine uses and builds it (plain
with TLS: about two minutes) into ${XDG_CACHE_HOME:-~/.cache}/emq.

  --flavour plain  the ordinary server (default)
  --flavour asan   built with the address and undefined-behaviour sanitizers; never the system's
  --print NAME     print one value only: server, cli, sentinel, include, version, flavour or source

Prints name=value lines: server, cli, sentinel (paths), include (the folder of valkeymodule.h), version,
flavour, source (system, cache or built). Progress goes to standard error.

Environment: VALKEY_SERVER (path of a server to use), VALKEYMODULE_INCLUDE_DIR (folder of the header).
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/lib/apt-source.sh
. "$here/lib/apt-source.sh"
flavour=plain
print=

while (($# > 0)); do
    case $1 in
    --help | -h)
        usage
        exit 0
        ;;
    --flavour | --print)
        (($# > 1)) || emq_fail "$1 needs a value" 2
        if [[ $1 == --print ]]; then print=$2; else flavour=$2; fi
        shift 2
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
done
[[ $flavour == plain || $flavour == asan ]] || emq_fail "the flavour is plain or asan, not $flavour" 2
case $print in
'' | server | cli | sentinel | include | version | flavour | source) ;;
*) emq_fail "--print takes server, cli, sentinel, include, version, flavour or source" 2 ;;
esac

answer() { # answer SERVER INCLUDE SOURCE
    local bin version name
    bin=$(dirname "$1")
    version=$(server_version "$1")
    local -A values=([server]=$1 [cli]=$(beside "$bin" valkey-cli)
        [sentinel]=$(beside "$bin" valkey-sentinel)
        [include]=$2 [version]=$version [flavour]=$flavour [source]=$3)
    if [[ -n $print ]]; then
        printf '%s\n' "${values[$print]}"
    else
        for name in server cli sentinel include version flavour source; do
            printf '%s=%s\n' "$name" "${values[$name]}"
        done
    fi
    exit 0
}

# beside FOLDER NAME: the program in that folder, else the one in PATH, else the built one; or nothing.
beside() {
    if [[ -x $1/$2 ]]; then
        printf '%s\n' "$1/$2"
    elif ! command -v "$2" && [[ -n $emq_built ]]; then
        printf '%s\n' "$emq_built/$2"
    fi
}

server_version() { "$1" --version 2>/dev/null | sed -n 's/.*[ =]v=\([0-9.]*\).*/\1/p'; }

find_header() {
    local dir
    for dir in ${VALKEYMODULE_INCLUDE_DIR:+"$VALKEYMODULE_INCLUDE_DIR"} /usr/local/include /usr/include /usr/include/valkey \
        /usr/local/include/valkey; do
        if [[ -f $dir/valkeymodule.h ]]; then
            printf '%s\n' "$dir"
            return 0
        fi
    done
    return 1
}

find_cached() { emq_newest_built "valkey-9.*-$flavour"; }

build() { # build WORK: from WORK/source to the folder that it has in the cache
    local options=(BUILD_TLS=yes) version name
    if [[ $flavour == asan ]]; then
        # The server's makefile takes one sanitizer. The second one is for the server's own code alone:
        # the Lua that it bundles reads unaligned words on purpose.
        options+=(SANITIZER=address OPTIMIZATION=-O1 SERVER_CFLAGS=-fsanitize=undefined
            SERVER_LDFLAGS=-fsanitize=undefined)
    fi
    emq_make -C "$1/source/src" "${options[@]}" \
        valkey-server valkey-cli valkey-benchmark >>"$1/build.log" 2>&1 || return 1
    version=$(server_version "$1/source/src/valkey-server")
    [[ $version == 9.* ]] || emq_fail "the build gives version '$version', not 9"
    mkdir "$1/result" || return 1
    for name in valkey-server valkey-cli valkey-benchmark valkeymodule.h; do
        cp "$1/source/src/$name" "$1/result/$name" || return 1
    done
    ln -s valkey-server "$1/result/valkey-sentinel" &&
        emq_publish "$1/result" "valkey-$version-$flavour" >>"$1/build.log" 2>&1 || return 1
    emq_say "built Valkey $version ($flavour) in $emq_cache_dir"
}

if [[ -n ${VALKEYMODULE_INCLUDE_DIR:-} && ! -f $VALKEYMODULE_INCLUDE_DIR/valkeymodule.h ]]; then
    emq_fail "VALKEYMODULE_INCLUDE_DIR=$VALKEYMODULE_INCLUDE_DIR has no valkeymodule.h" 2
fi
if [[ $flavour == plain ]]; then
    system=${VALKEY_SERVER:-$(command -v valkey-server || true)}
    if [[ -n $system ]]; then
        version=$(server_version "$system") || true
        if [[ $version == 9.* ]]; then
            if include=$(find_header) && [[ -n $(beside "$(dirname "$system")" valkey-cli) ]]; then
                emq_say "using the system's $system ($version), header in $include"
                answer "$system" "$include" system
            fi
            emq_say "$system ($version) lacks valkeymodule.h or valkey-cli: taking them from source"
        elif [[ -n ${VALKEY_SERVER:-} ]]; then
            emq_fail "VALKEY_SERVER=$system is no Valkey 9 server (version '$version')" 2
        fi
    fi
fi

emq_make_once valkey 9. find_cached build forky testing sid
if [[ ${version:-} == 9.* ]]; then
    answer "$system" "$(find_header || printf '%s\n' "$emq_built")" system
fi
from=cache
((emq_built_now == 0)) || from=built
answer "$emq_built/valkey-server" "${VALKEYMODULE_INCLUDE_DIR:-$emq_built}" "$from"
