# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Fetching a Debian source package from the mirror that this machine already uses, with apt's lists and
# cache in a folder of its own: the system's apt state stays as it is. Sourced by get-*.sh.

# The folder that keeps what was built.
emq_cache_dir=${XDG_CACHE_HOME:-${HOME:?HOME is not set}/.cache}/emq

# What emq_make_once answers.
emq_built=
emq_built_now=0

emq_say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$1" >&2; }

emq_fail() { # emq_fail TEXT [STATUS]
    emq_say "$1"
    exit "${2:-1}"
}

mkdir -p "$emq_cache_dir" 2>/dev/null ||
    emq_fail "cannot make the folder $emq_cache_dir: set XDG_CACHE_HOME to one that can be written"

# emq_newest_built GLOB: the newest finished build; a folder without its stamp is not finished.
emq_newest_built() {
    local dir newest=
    while IFS= read -r dir; do
        [[ ! -f $emq_cache_dir/$dir/stamp ]] || newest=$emq_cache_dir/$dir
    done < <(cd "$emq_cache_dir" && compgen -G "$1" | sort -V)
    [[ -n $newest ]] && printf '%s\n' "$newest"
}

# emq_mirror: "URI<tab>keyring" of the entry for the running release's own suite; the keyring may be
# empty. Knows deb822 (.sources) and one-line (.list) entries.
emq_mirror() {
    local codename
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    # not in a pipeline: awk may end before it has read all
    awk -v suite="$codename" '
        function flush() {
            if (enabled != "no" && types ~ /deb/ && (" " suites " ") ~ (" " suite " ") && (" " parts " ") ~ / main /) {
                split(uris, u, " "); print u[1] "\t" key; exit
            }
            types = uris = suites = parts = key = enabled = ""
        }
        /^#/ { next }
        /^[ \t]*$/ { flush(); next }
        { name = tolower($1); $1 = ""; sub(/^ /, "") }
        name == "types:" { types = $0 }
        name == "uris:" { uris = $0 }
        name == "suites:" { suites = $0 }
        name == "components:" { parts = $0 }
        name == "signed-by:" { key = $0 }
        name == "enabled:" { enabled = tolower($0) }
        END { flush() }' < <(cat /etc/apt/sources.list.d/*.sources 2>/dev/null) | sed -n 1p | grep . && return
    awk -v suite="$codename" '
        $1 == "deb" {
            key = ""
            line = $0
            if (match(line, /\[[^]]*\]/)) {
                options = substr(line, RSTART + 1, RLENGTH - 2)
                line = substr(line, 1, RSTART - 1) substr(line, RSTART + RLENGTH)
                n = split(options, o, " ")
                for (i = 1; i <= n; i++)
                    if (o[i] ~ /^signed-by=/) key = substr(o[i], 11)
            }
            n = split(line, f, " ")
            if (f[3] != suite) next
            for (i = 4; i <= n; i++)
                if (f[i] == "main") { print f[2] "\t" key; exit }
        }' < <(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null)
}

# emq_fetch_source PACKAGE PREFIX DIR SUITE...: unpacks the newest version of the package that starts
# with PREFIX into DIR/source, from the first suite that has one. Answers 1 with nothing printed but
# the log in DIR/fetch.log when none can be had.
emq_fetch_source() {
    local package=$1 prefix=$2 dir=$3 uri key signed='' suite version
    shift 3
    IFS=$'\t' read -r uri key < <(emq_mirror) || return 1
    [[ -n $uri ]] || return 1
    [[ -z $key ]] || signed="[signed-by=$key] "
    mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/download"
    local options=(-o "Dir::State::Lists=$dir/lists" -o "Dir::Etc::sourcelist=$dir/sources.list"
        -o Dir::Etc::sourceparts=/dev/null -o "Dir::Cache=$dir/cache" -o Acquire::Languages=none
        -o Acquire::Retries=2 -o Acquire::http::Timeout=30)
    # a mirror that lags behind is good enough: what it serves is signed all the same
    options+=(-o Acquire::Check-Valid-Until=false)
    ((EUID != 0)) || options+=(-o APT::Sandbox::User=root)
    for suite in "$@"; do
        printf 'deb-src %s%s %s main\n' "$signed" "$uri" "$suite" >"$dir/sources.list"
        apt-get "${options[@]}" update >>"$dir/fetch.log" 2>&1 || continue
        version=$(apt-cache "${options[@]}" showsrc "$package" 2>>"$dir/fetch.log" |
            sed -n 's/^Version: //p' | grep "^$prefix" | sort -V | tail -n 1) || true
        [[ -n $version ]] || continue
        (cd "$dir/download" &&
            apt-get "${options[@]}" source --download-only "$package=$version" >>"$dir/fetch.log" 2>&1 &&
            dpkg-source --no-check -x ./*.dsc "$dir/source" >>"$dir/fetch.log" 2>&1) || continue
        return 0
    done
    return 1
}

# The folder to build in: the cache itself, unless its path has characters that the makefiles of others
# do not bear, such as a space.
_emq_build_root() {
    local dir
    for dir in "$emq_cache_dir" "${TMPDIR:-/tmp}" /tmp /var/tmp; do
        if [[ $dir =~ ^[A-Za-z0-9/._+-]+$ && -w $dir ]]; then
            printf '%s\n' "$dir"
            return 0
        fi
    done
    emq_fail 'found no folder to build in: set TMPDIR to one without special characters in its path'
}

# emq_make ARGUMENT...: make with all processors and a clean environment: the makefiles of others take
# CFLAGS, LIBRARY_PATH and more from it, and what is cached must not depend on who built it.
emq_make() { env -i PATH="$PATH" HOME="$HOME" LC_ALL=C make -j"$(nproc)" "$@"; }

# emq_publish RESULT NAME: gives a finished folder its name in the cache, in a single rename, so that a
# killed build leaves nothing that looks done. Called with the lock held. Every step is joined by &&,
# since a caller's `if` switches `set -e` off.
emq_publish() {
    local staged=$emq_cache_dir/work.publish target=$emq_cache_dir/$2
    rm -rf -- "$staged" &&
        cp -a -- "$1" "$staged" &&
        touch -- "$staged/stamp" &&
        rm -rf -- "$target" &&
        mv -T -- "$staged" "$target"
}

# Fetches and builds in a folder of its own, which goes away whatever happens.
_emq_make() { # _emq_make PACKAGE PREFIX BUILD SUITE...
    local package=$1 prefix=$2 build=$3 build_root work
    shift 3
    build_root=$(_emq_build_root) || exit 1
    work=$(mktemp -d "$build_root/work.XXXXXX")
    _emq_work=$work # for the trap, which runs when this function's own names are gone
    trap 'rm -rf -- "$_emq_work"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    emq_say "fetching Debian's source package $package"
    if ! emq_fetch_source "$package" "$prefix" "$work" "$@"; then
        cp "$work/fetch.log" "$emq_cache_dir/fetch.log" 2>/dev/null || true
        emq_fail "cannot fetch $package ${prefix}x: install it, or run this once with the Debian mirror \
in reach (log: $emq_cache_dir/fetch.log)"
    fi
    emq_say "building $package (two minutes at most, on two cores)"
    if ! "$build" "$work"; then
        cp "$work/build.log" "$emq_cache_dir/build.log" || true
        tail -n 15 "$work/build.log" >&2 || true
        emq_fail "the build of $package failed; the whole log: $emq_cache_dir/build.log"
    fi
}

# emq_make_once PACKAGE PREFIX FIND BUILD SUITE...: sets emq_built to the folder of the finished build and
# emq_built_now to 1 when it was built by this call. FIND prints that folder when it is there; BUILD WORK
# makes it from WORK/source, with its log in WORK/build.log, and publishes it. Two calls at once build once.
emq_make_once() {
    local package=$1 prefix=$2 find=$3 build=$4
    shift 4
    emq_built_now=0
    if emq_built=$("$find"); then
        return 0
    fi
    "$(dirname "${BASH_SOURCE[0]}")/../deps.sh" server
    exec 9>"$emq_cache_dir/lock"
    flock -n 9 || { emq_say 'another build is running: waiting for it' && flock 9; }
    # the one that was waited for may have built it
    if ! emq_built=$("$find"); then
        find "$emq_cache_dir" -maxdepth 1 -name 'work.*' -exec rm -rf {} + # what killed builds left
        (_emq_make "$package" "$prefix" "$build" "$@")
        emq_built=$("$find")
        emq_built_now=1
    fi
    exec 9>&-
}
