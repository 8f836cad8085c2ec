#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds everything in several configurations, with warnings as errors, and runs every test.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: ./check.sh [--quick] [--only NAME]... [--list] [-R PATTERN] [--help]

Installs what is missing, gets a Valkey 9 server, builds, and runs every test through ctest, whose
summary comes last.

Configurations:
  gcc       gcc: all tests, formatting, static analysis
  clang     clang: unit and client tests
  asan      address and undefined-behaviour sanitizers, client and module, in a server that is built
            with both: all tests
  tsan      thread sanitizer: unit, client, fault and tool tests
  hiredis1  the client with hiredis 1.x, with TLS: client and install tests

  --quick       gcc alone, without formatting and static analysis
  --only NAME   this configuration (may be repeated); clang, tsan and hiredis1 need gcc's module
  --list        build, list the tests and run none
  -R PATTERN    run the tests whose names match (a ctest pattern)

The random tests take longer runs from EMQ_DIFF_STEPS, EMQ_FUZZ_CALLS and EMQ_FUZZ_SECONDS (docs/testing.md).

Build trees are below ${EMQ_BUILD_DIR:-build}. Exit status: 0 all passed; 1 something could not be
built; 2 wrong use, or packages are missing and can't be installed; 8 a test failed (ctest's own).
TEXT
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${EMQ_BUILD_DIR:-$root/build}
all=(gcc clang asan tsan hiredis1)
chosen=()
quick=
ctest_options=(--output-on-failure --no-tests=error --parallel "$(nproc)")

while (($# > 0)); do
    case $1 in
    --help | -h)
        usage
        exit 0
        ;;
    --quick)
        quick=yes
        chosen=(gcc)
        ;;
    --only)
        [[ " ${all[*]} " == *" ${2:-} "* && -n ${2:-} ]] || {
            printf 'check: --only takes one of: %s\n' "${all[*]}" >&2
            exit 2
        }
        chosen+=("$2")
        shift
        ;;
    --list) ctest_options+=(-N) ;;
    -R)
        (($# > 1)) || {
            printf 'check: -R needs a pattern\n' >&2
            exit 2
        }
        ctest_options+=(-R "$2")
        shift
        ;;
    *)
        printf 'check: unknown option: %s (see --help)\n' "$1" >&2
        exit 2
        ;;
    esac
    shift
done
((${#chosen[@]} > 0)) || chosen=("${all[@]}")

say() { printf 'check: %s\n' "$1" >&2; }

"$root/tools/deps.sh" build server test
include=$("$root/tools/get-valkey.sh" --print include)
mkdir -p "$build"
build=$(cd "$build" && pwd)

configure_and_build() { # configure_and_build NAME OPTION...
    local name=$1
    shift
    say "building: $name"
    if ! cmake -S "$root" -B "$build/$name" -DEMQ_WERROR=ON -DEMQ_BUILD_TESTS=ON \
        -DEMQ_TEST_PREFIX="$name." -DVALKEYMODULE_INCLUDE_DIR="$include" "$@" \
        >"$build/$name.log" 2>&1 ||
        ! cmake --build "$build/$name" -j "$(nproc)" >>"$build/$name.log" 2>&1; then
        tail -n 40 "$build/$name.log" >&2
        say "the build failed: $name (the whole log: $build/$name.log)"
        exit 1
    fi
}

for name in "${chosen[@]}"; do
    case $name in
    gcc)
        configure_and_build gcc -DCMAKE_C_COMPILER=gcc \
            -DEMQ_TEST_SOURCES="$([[ -n $quick ]] && echo OFF || echo ON)"
        ;;
    clang)
        configure_and_build clang -DCMAKE_C_COMPILER=clang -DEMQ_TEST_PARTS="unit;client"
        ;;
    asan)
        "$root/tools/get-valkey.sh" --flavour asan >/dev/null
        configure_and_build asan -DCMAKE_C_COMPILER=gcc -DEMQ_SANITIZE=address \
            -DEMQ_SERVER_FLAVOUR=asan
        ;;
    tsan)
        configure_and_build tsan -DCMAKE_C_COMPILER=gcc -DEMQ_SANITIZE=thread \
            -DEMQ_BUILD_MODULE=OFF -DEMQ_TEST_MODULE="$build/gcc/module/emq.so" \
            -DEMQ_TEST_PARTS="unit;client;fault;tool"
        ;;
    hiredis1)
        pkgconfig=$("$root/tools/get-hiredis.sh")
        PKG_CONFIG_PATH="$pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}" configure_and_build \
            hiredis1 -DCMAKE_C_COMPILER=gcc -DEMQ_BUILD_MODULE=OFF -DEMQ_WITH_TLS=ON \
            -DEMQ_TEST_MODULE="$build/gcc/module/emq.so" -DEMQ_TEST_PARTS="client;install" \
            -DCMAKE_BUILD_RPATH="$(dirname "$pkgconfig")"
        ;;
    esac
done

# One ctest over all build trees: one run, one summary.
printf 'subdirs("%s")\n' "${chosen[@]}" >"$build/CTestTestfile.cmake"
cd "$build"
exec ctest "${ctest_options[@]}"
