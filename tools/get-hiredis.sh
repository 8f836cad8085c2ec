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
    local version
    version=$(sed -n 's/^#define HIREDIS_\(MAJOR\|MINOR\|PATCH\) //p' "$1/source/hiredis.h" | paste -sd.)
    # The .pc files name the prefix: theirs is wherever they are, since the cache's path may have spaces.
    # shellcheck disable=SC2016
    {
        emq_make -C "$1/source" PREFIX=/hiredis USE_SSL=1 &&
            emq_make -C "$1/source" PREFIX=/hiredis DESTDIR="$1/result" USE_SSL=1 install &&
            sed -i 's|=/hiredis|=${pcfiledir}/../..|' "$1"/result/hiredis/lib/pkgconfig/*.pc &&
            emq_publish "$1/result/hiredis" "hiredis-$version"
    } >>"$1/build.log" 2>&1
}

emq_find_built() { emq_newest_built 'hiredis-1.*'; }

emq_make_once hiredis 1. emq_find_built build forky trixie sid
printf '%s/lib/pkgconfig\n' "$emq_built"
