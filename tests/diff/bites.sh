#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows that the harness bites: breaks a copy of the module in one place at a time, as mutations.txt
# tells, and expects that a test then fails.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: tests/diff/bites.sh [--all | --sample N] [--only TEXT] [--list] [--help]

Copies src/, module/ and include/, applies one mutation of tests/diff/mutations.txt at a time, builds
the copy's module and runs the differential tests against it, the random run first. First of all the
unchanged copy must pass. A mutation that no test notices is a survivor.

  --sample N    N mutations, evenly spread over the list (default 10)
  --all         all of them
  --only TEXT   those whose title contains TEXT
  --list        print the titles

Environment: EMQ_BUILD_DIR, a build tree with the test programs (default build/gcc). Exit status: 0 each
mutation made a test fail; 1 some survived, or did not apply or build; 2 wrong use.
TEXT
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
programs=${EMQ_BUILD_DIR:-$root/build/gcc}/tests/diff
list=$root/tests/diff/mutations.txt
suite=(diff_random diff_specification diff_batches diff_cases)
seconds=300 # for one test program; one that hangs is noticed, too
sample=10
only=
print_list=

fail() {
    printf 'bites: %s\n' "$1" >&2
    exit "${2:-1}"
}

while (($# > 0)); do
    case $1 in
    --help | -h)
        usage
        exit 0
        ;;
    --all) sample=all ;;
    --list) print_list=yes ;;
    --sample | --only)
        (($# > 1)) || fail "$1 needs a value" 2
        case $1 in
        --sample)
            [[ $2 =~ ^[1-9][0-9]{0,3}$ ]] || fail "--sample takes a number from 1 to 9999" 2
            sample=$2
            ;;
        --only)
            only=$2
            sample=all
            ;;
        esac
        shift
        ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
    shift
done

# The list: titles, files, and the texts that go and come, each line with its end.
titles=() files=() olds=() news=()
while IFS= read -r line || [[ -n $line ]]; do
    last=$((${#titles[@]} - 1))
    case $line in
    '== '*) titles+=("${line#== }") files+=('') olds+=('') news+=('') ;;
    'file '*) files[last]=${line#file } ;;
    -*) olds[last]+=${line#-}$'\n' ;;
    +*) news[last]+=${line#+}$'\n' ;;
    '' | '#'*) ;;
    *) fail "cannot read this line of $list: $line" ;;
    esac
done <"$list"

chosen=()
if [[ $sample == all ]] || ((sample >= ${#titles[@]})); then
    for ((i = 0; i < ${#titles[@]}; i++)); do
        [[ ${titles[i]} != *"$only"* ]] || chosen+=("$i")
    done
else
    for ((i = 0; i < sample; i++)); do
        chosen+=($((i * ${#titles[@]} / sample + ${#titles[@]} / (2 * sample))))
    done
fi
((${#chosen[@]} > 0)) || fail "no title contains '$only'" 2
if [[ -n $print_list ]]; then
    for i in "${chosen[@]}"; do
        printf '%s\n' "${titles[i]}"
    done
    exit 0
fi

# Reads a file into $content, its last line end included.
slurp() {
    content=$(
        cat "$1"
        printf x
    )
    content=${content%x}
}

# The text of a mutation stands in its file once; $content is that file's.
applies() {
    slurp "$root/${files[$1]}"
    [[ -n ${olds[$1]} && $content == *"${olds[$1]}"* &&
        ${content#*"${olds[$1]}"} != *"${olds[$1]}"* ]]
}

# All of them, whatever the sample: a list that has stayed behind the code is told of at once.
bad=()
for i in "${!titles[@]}"; do
    applies "$i" || bad+=("${titles[i]}")
done
((${#bad[@]} == 0)) || {
    printf 'bites: DOES NOT APPLY  %s\n' "${bad[@]}" >&2
    fail "the list of mutations has not moved with the code"
}

for program in "${suite[@]}"; do
    [[ -x $programs/$program ]] || fail "no $programs/$program: build the tests first"
done

work=$(mktemp -d "${TMPDIR:-/tmp}/emq-bites-XXXXXX")
trap 'rm -rf -- "$work"' EXIT
trap 'exit 130' INT TERM
mkdir "$work/copy" "$work/t"
for part in CMakeLists.txt cmake include src module; do
    [[ ! -e $root/$part ]] || cp -R "$root/$part" "$work/copy/"
done

build() { cmake --build "$work/build" --target emq_module >"$work/log" 2>&1; }

# 0 when all tests pass with the copy's module; a server's folder stays in $work after a crash.
passes() {
    local program
    for program in "${suite[@]}"; do
        EMQ_MODULE=$work/build/module/emq.so EMQ_SOURCE_DIR=$root EMQ_SERVER_FLAVOUR=plain \
            EMQ_DIFF_NO_SHRINK=yes TMPDIR=$work/t timeout "$seconds" "$programs/$program" \
            >"$work/log" 2>&1 || {
            noticed_by=$program
            return 1
        }
    done
}

include=$("$root/tools/get-valkey.sh" --print include)
configure() {
    cmake -S "$work/copy" -B "$work/build" -DEMQ_BUILD_CLIENT=OFF -DEMQ_BUILD_EXAMPLES=OFF \
        -DEMQ_BUILD_TESTS=OFF -DVALKEYMODULE_INCLUDE_DIR="$include" >"$work/log" 2>&1
}
if ! configure || ! build; then
    cat "$work/log" >&2
    fail "the unchanged copy does not build"
fi
passes || {
    tail -n 40 "$work/log" >&2
    fail "the tests do not pass with the unchanged copy"
}

noticed=0
bad=()
for i in "${chosen[@]}"; do
    file=$work/copy/${files[i]}
    slurp "$root/${files[i]}"
    old=${olds[i]}
    printf '%s' "${content%%"$old"*}${news[i]}${content#*"$old"}" >"$file"
    if ! build; then
        printf 'bites: DOES NOT BUILD  %s\n' "${titles[i]}"
        grep -m 3 error "$work/log" || true
        bad+=("${titles[i]} (does not build)")
    elif passes; then
        printf 'bites: SURVIVES        %s\n' "${titles[i]}"
        bad+=("${titles[i]}")
    else
        printf 'bites: noticed         %s (%s)\n' "${titles[i]}" "$noticed_by"
        noticed=$((noticed + 1))
    fi
    printf '%s' "$content" >"$file"
done
printf 'bites: %d of %d mutations were noticed\n' "$noticed" "${#chosen[@]}"
((${#bad[@]} == 0)) || {
    printf 'bites: not noticed: %s\n' "${bad[@]}" >&2
    exit 1
}
