#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the client alone, installs it into a folder with a space in its name, moves that, and uses it
# as a program outside of this tree would: through pkg-config as C and as C++, shared and static, and
# through the CMake package. Each program runs a job on a private server. Last, the example that the
# README shows.
#
#     outside_test.sh C-COMPILER FOLDER-OF-HIREDIS.PC
set -euo pipefail

cc=$1
hiredis=$2
cxx=$(command -v g++ || command -v clang++) || { echo 'no C++ compiler found' >&2; exit 1; }
source_dir=${EMQ_SOURCE_DIR:?run the tests through ctest}
here=$source_dir/tests/install
version=$(sed -n 's/^#define EMQ_VERSION_STRING "\(.*\)"/\1/p' "$source_dir/include/emq/version.h")
scratch=$(mktemp -d "${TMPDIR:-/tmp}/emq-install.XXXXXX")
trap 'end_of_test $?' EXIT

end_of_test() { # end_of_test STATUS
    trap - EXIT
    [[ ! -f $scratch/server/facts ]] || "$source_dir/tools/server.sh" stop "$scratch/server" || set -- 1
    rm -rf -- "$scratch"
    exit "$1"
}

fail() {
    printf 'install test: %s\n' "$1" >&2
    exit 1
}

quietly() { # quietly COMMAND...: shows what it said only when it fails
    "$@" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "failed: $*"; }
}

# The client alone, from the sources: no server header is asked for.
export PKG_CONFIG_PATH=$hiredis${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
quietly cmake -S "$source_dir" -B "$scratch/build" -DCMAKE_C_COMPILER="$cc" -DEMQ_BUILD_MODULE=OFF \
    -DEMQ_BUILD_EXAMPLES=OFF -DCMAKE_INSTALL_LIBDIR=lib
quietly cmake --build "$scratch/build" -j 2
quietly cmake --install "$scratch/build" --prefix "$scratch/first"
rm -rf -- "$scratch/build"
prefix="$scratch/a prefix"
mv "$scratch/first" "$prefix"

for file in include/emq/emq.h lib/libemq.a lib/libemq.so lib/libemq.so.0 "lib/libemq.so.$version" \
    lib/pkgconfig/emq.pc lib/cmake/emq/emq-config.cmake lib/cmake/emq/emq-config-version.cmake \
    bin/emq share/man/man1/emq.1 share/bash-completion/completions/emq; do
    [[ -f $prefix/$file ]] || fail "not installed: $file"
done
for header in "$source_dir"/include/emq/*.h; do
    cmp -s "$header" "$prefix/include/emq/${header##*/}" || fail "not installed: $header"
done

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig:$PKG_CONFIG_PATH
libraries=$(pkg-config --variable=libdir hiredis)
export LD_LIBRARY_PATH=$prefix/lib:$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# The tool finds the library of its tree by itself.
said=$(LD_LIBRARY_PATH=$libraries "$prefix/bin/emq" version) || fail 'the installed emq does not run'
[[ $said == "emq $version (libemq $version, with"*' TLS)' ]] || fail "emq said: $said"

# The module as it is installed, where this build tree has one.
module=${EMQ_MODULE:?run the tests through ctest}
if [[ $module == "${EMQ_BUILD_DIR:?run the tests through ctest}"/* ]]; then
    quietly cmake --install "$EMQ_BUILD_DIR" --prefix "$scratch/whole"
    module=$(find "$scratch/whole" -path '*/valkey/modules/emq.so')
    [[ -n $module ]] || fail 'not installed: valkey/modules/emq.so'
fi
facts=$("$source_dir/tools/server.sh" start --dir "$scratch/server" \
    --flavour "${EMQ_SERVER_FLAVOUR:-plain}" --module "$module")
EMQ_PORT=$(sed -n 's/^port=//p' <<<"$facts")
export EMQ_PORT

words() { # words OPTION...: what pkg-config prints, one word a line
    # it escapes spaces; xargs undoes that as a shell would, and runs nothing
    pkg-config "$@" | xargs -n 1 printf '%s\n'
}

needs() { readelf -d "$1" 2>/dev/null | grep -F "[$2]" >/dev/null; }

strict=(-Wall -Wextra -pedantic -Werror)
pkg-config --exists emq || fail 'pkg-config does not find emq'
mapfile -t cflags < <(words --cflags emq)
mapfile -t libs < <(words --libs emq)
mapfile -t static_libs < <(words --static --libs emq)

"$cc" -std=c11 "${strict[@]}" "${cflags[@]}" "$here/job.c" -o "$scratch/c" "${libs[@]}"
"$cxx" -std=c++11 "${strict[@]}" "${cflags[@]}" -x c++ "$here/job.c" -x none -o "$scratch/cxx" \
    "${libs[@]}"
# a static program warns of getaddrinfo, which is the linker's, not the compiler's
"$cc" -std=c11 "${strict[@]}" "${cflags[@]}" "$here/job.c" -o "$scratch/c-static" -static \
    "${static_libs[@]}" 2>"$scratch/log" || { cat "$scratch/log" >&2; fail 'the static link failed'; }
"$cxx" -std=c++11 "${strict[@]}" "${cflags[@]}" -x c++ "$here/job.c" -x none -o \
    "$scratch/cxx-static" -static "${static_libs[@]}" 2>"$scratch/log" ||
    { cat "$scratch/log" >&2; fail 'the static link failed'; }
for program in c cxx; do
    needs "$scratch/$program" libemq.so.0 || fail "$program does not use libemq.so.0"
done
for program in c-static cxx-static; do
    ! needs "$scratch/$program" libemq.so.0 || fail "$program is not static"
done

# The package: both targets, at the version asked for, and not at another.
quietly cmake -S "$here/consumer" -B "$scratch/consumer" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_PREFIX_PATH="$prefix"
quietly cmake --build "$scratch/consumer"
needs "$scratch/consumer/job_shared" libemq.so.0 || fail 'emq::emq is not the shared library'
! needs "$scratch/consumer/job_static" libemq.so.0 || fail 'emq::emq-static is not static'
if cmake -S "$here/consumer" -B "$scratch/newer" -DCMAKE_PREFIX_PATH="$prefix" \
    -DEMQ_WANTED=99.0 >/dev/null 2>&1; then
    fail 'the package claims to be version 99'
fi

for program in c cxx c-static cxx-static consumer/job_shared consumer/job_static; do
    said=$("$scratch/$program") || fail "$program failed"
    [[ $said == "$version: enqueued, claimed, completed" ]] || fail "$program said: $said"
done

# The README's example is examples/hello.c, and runs.
readme=$source_dir/README.md
if [[ -f $readme ]]; then
    [[ $(grep -c '^```c$' "$readme") == 1 ]] || fail 'the README must show one example'
    # shellcheck disable=SC2016
    sed -n '/^```c$/,/^```$/p' "$readme" | sed '1d;$d' >"$scratch/hello.c"
    diff <(sed 1d "$source_dir/examples/hello.c") "$scratch/hello.c" ||
        fail 'README.md and examples/hello.c differ'
else
    cp "$source_dir/examples/hello.c" "$scratch/hello.c"
fi
"$cc" -std=c11 "${strict[@]}" "${cflags[@]}" "$scratch/hello.c" -o "$scratch/hello" "${libs[@]}"
said=$("$scratch/hello") || fail "hello failed: $said"
[[ $said =~ ^JOB[0-9A-Za-z]{11}:\ hello$ ]] || fail "hello said: $said"
! EMQ_PORT=1 "$scratch/hello" 2>"$scratch/log" || fail 'hello found a server on port 1'
grep -q '^EMQ_ECONNECT: ' "$scratch/log" || fail 'hello does not say what failed'
echo 'an outside program works in all six ways, and so does the example'
