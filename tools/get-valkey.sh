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
    local -A values=([server]=$1 [cli]=$bin/valkey-cli [sentinel]=$bin/valkey-sentinel
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

server_version() { "$1" --version 2>/dev/null | sed -n 's/.*[ =]v=\([0-9.]*\).*/\1/p'; }

find_header() {
    local dir
    for dir in "${VALKEYMODULE_INCLUDE_DIR:-}" /usr/local/include /usr/include /usr/include/valkey \
        /usr/local/include/valkey; do
        if [[ -n $dir && -f $dir/valkeymodule.h ]]; then
            printf '%s\n' "$dir"
            return 0
        fi
    done
    return 1
}

find_cached() { emq_newest_built "valkey-9.*-$flavour"; }

build() { # build WORK: from WORK/source to the folder that it has in the cache
    local options=(BUILD_TLS=yes) environment=() version target name
    if [[ $flavour == asan ]]; then
        # the server's makefile takes one sanitizer; the second one comes in through the environment
        options=(SANITIZER=address OPTIMIZATION=-O1)
        environment=(CFLAGS=-fsanitize=undefined LDFLAGS=-fsanitize=undefined)
    fi
    env "${environment[@]}" make -C "$1/source/src" -j"$(nproc)" "${options[@]}" \
        valkey-server valkey-cli valkey-benchmark >>"$1/build.log" 2>&1 || return 1
    version=$(server_version "$1/source/src/valkey-server")
    [[ $version == 9.* ]] || emq_fail "the build gives version '$version', not 9"
    target=$emq_cache_dir/valkey-$version-$flavour
    mkdir "$1/result"
    for name in valkey-server valkey-cli valkey-benchmark valkeymodule.h; do
        cp "$1/source/src/$name" "$1/result/$name"
    done
    ln -s valkey-server "$1/result/valkey-sentinel"
    touch "$1/result/stamp"
    rm -rf "$target"
    mv -T "$1/result" "$target"
    emq_say "built Valkey $version ($flavour) in $target"
}

if [[ $flavour == plain ]]; then
    system=${VALKEY_SERVER:-$(command -v valkey-server || true)}
    if [[ -n $system ]]; then
        version=$(server_version "$system") || true
        if [[ $version == 9.* ]]; then
            if include=$(find_header); then
                emq_say "using the system's $system ($version), header in $include"
                answer "$system" "$include" system
            fi
            emq_say "$system ($version) has no valkeymodule.h beside it: taking one from source"
        elif [[ -n ${VALKEY_SERVER:-} ]]; then
            emq_fail "VALKEY_SERVER=$system is version '$version', not 9" 2
        fi
    fi
fi

emq_make_once valkey 9. find_cached build forky testing sid
if [[ ${version:-} == 9.* ]]; then
    answer "$system" "$emq_built" system
fi
from=cache
((emq_built_now == 0)) || from=built
answer "$emq_built/valkey-server" "${VALKEYMODULE_INCLUDE_DIR:-$emq_built}" "$from"
