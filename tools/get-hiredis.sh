#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches and builds hiredis 1.x once into the user's cache: Debian 12 has 0.14.1, most other systems
# have 1.x, and libemq is tested against both.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: tools/get-hiredis.sh [--help]

Builds hiredis 1.x (with TLS) from Debian's source package into ${XDG_CACHE_HOME:-~/.cache}/emq and
prints the folder for PKG_CONFIG_PATH. Progress goes to standard error.
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/lib/apt-source.sh
. "$here/lib/apt-source.sh"

case ${1:-} in
'') ;;
--help | -h)
    usage
    exit 0
    ;;
*)
    usage >&2
    exit 2
    ;;
esac

build() { # build WORK: from WORK/source to the folder that it has in the cache
    local version target
    version=$(sed -n 's/^#define HIREDIS_\(MAJOR\|MINOR\|PATCH\) //p' "$1/source/hiredis.h" | paste -sd.)
    target=$emq_cache_dir/hiredis-$version
    # the prefix is where it will be after the rename: hiredis.pc names it
    make -C "$1/source" -j"$(nproc)" PREFIX="$target" USE_SSL=1 >>"$1/build.log" 2>&1 &&
        make -C "$1/source" PREFIX="$target" DESTDIR="$1/result" USE_SSL=1 install \
            >>"$1/build.log" 2>&1 || return 1
    touch "$1/result$target/stamp"
    rm -rf "$target"
    mv -T "$1/result$target" "$target"
}

emq_find_built() { emq_newest_built 'hiredis-1.*'; }

emq_make_once hiredis 1. emq_find_built build forky trixie sid
printf '%s/lib/pkgconfig\n' "$emq_built"
