#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that the scripts need, and only those that are missing. "Missing" means
# that the command, the pkg-config module or the file is not found, however it came to the system.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: tools/deps.sh [--help] GROUP...

Installs what is missing, quietly, through apt. Prints nothing when nothing is missing.

Groups:
  build       compilers, CMake, hiredis, libuv, jansson, OpenSSL, ncurses, git: to build both halves and the examples
  server      what fetching and building Valkey from Debian's source package needs
  test        cmocka, jansson, libsystemd, libcurl and libmicrohttpd for the webhook example, clang with its tools, valgrind, and
              what the tests call
  plot        gnuplot, for the plots of bench/run.sh
  profile     valgrind, for bench/instructions.sh
  fresh-root  debootstrap, for tools/fresh-root.sh

As root it installs; otherwise through `sudo -n`. Where neither works it prints the one line to run and
exits with 2.
TEXT
}

# group | probe | Debian package. Probes: command:NAME, module:NAME (pkg-config), file:GLOB.
table='
build|command:gcc|gcc
build|command:g++|g++
build|file:/usr/include/stdio.h|libc6-dev
build|command:make|make
build|command:cmake|cmake
build|command:pkg-config|pkg-config
build|command:git|git
build|module:hiredis|libhiredis-dev
build|module:libuv|libuv1-dev
build|module:jansson|libjansson-dev
build|module:libcrypto|libssl-dev
build|module:ncursesw|libncurses-dev
server|command:dpkg-source|dpkg-dev
server|command:make|make
server|command:gcc|gcc
server|command:g++|g++
server|command:pkg-config|pkg-config
server|command:xz|xz-utils
server|command:patch|patch
server|command:flock|util-linux
server|module:openssl|libssl-dev
test|module:cmocka|libcmocka-dev
test|module:jansson|libjansson-dev
test|module:libcurl|libcurl4-openssl-dev
test|module:libmicrohttpd|libmicrohttpd-dev
test|module:libsystemd|libsystemd-dev
test|command:clang|clang
test|file:/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a|libclang-rt-dev
test|command:clang-format|clang-format
test|command:clang-tidy|clang-tidy
test|command:openssl|openssl
test|command:ps|procps
test|command:jq|jq
test|command:tmux|tmux
test|command:setpriv|util-linux
test|command:valgrind|valgrind
plot|command:gnuplot|gnuplot-nox
profile|command:valgrind|valgrind
fresh-root|command:debootstrap|debootstrap
fresh-root|command:unshare|util-linux
fresh-root|command:git|git
'

found() { # found PROBE
    local kind=${1%%:*} what=${1#*:}
    case $kind in
    command) command -v "$what" >/dev/null 2>&1 ;;
    module) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "$what" ;;
    file) compgen -G "$what" >/dev/null ;;
    esac
}

groups=()
while (($# > 0)); do
    case $1 in
    --help | -h)
        usage
        exit 0
        ;;
    build | server | test | plot | profile | fresh-root) groups+=("$1") ;;
    *)
        printf 'deps: unknown group: %s\n' "$1" >&2
        usage >&2
        exit 2
        ;;
    esac
    shift
done
if ((${#groups[@]} == 0)); then
    usage >&2
    exit 2
fi

missing=()
while IFS='|' read -r group probe package; do
    [[ -n $group && " ${groups[*]} " == *" $group "* ]] || continue
    found "$probe" || [[ " ${missing[*]:-} " == *" $package "* ]] || missing+=("$package")
done <<<"$table"
((${#missing[@]} > 0)) || exit 0

by_hand() {
    printf 'deps: these packages are missing; please run:\n' >&2
    printf '  apt-get update && apt-get install -y --no-install-recommends %s\n' "${missing[*]}" >&2
    exit 2
}

command -v apt-get >/dev/null 2>&1 || by_hand
as_root=()
if ((EUID != 0)); then
    command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null || by_hand
    as_root=(sudo -n)
fi

printf 'deps: installing %s\n' "${missing[*]}" >&2
log=$(mktemp "${TMPDIR:-/tmp}/emq-deps.XXXXXX")
apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" \
        </dev/null >>"$log" 2>&1
}
# an index that can't be refreshed may still be good enough to install from
apt update || true
if ! apt install -y --no-install-recommends "${missing[@]}"; then
    tail -n 15 "$log" >&2
    printf 'deps: apt-get could not install %s; the whole log: %s\n' "${missing[*]}" "$log" >&2
    exit 1
fi
rm -f "$log"
