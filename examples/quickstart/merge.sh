#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Merges what several workers wrote into one manifest and one list of failures, each path once.
set -euo pipefail
export LC_ALL=C # paths are bytes

usage() {
    cat <<'TEXT'
Usage: examples/quickstart/merge.sh FOLDER [--help]

Merges FOLDER/*.part into FOLDER/manifest and FOLDER/*.failed into FOLDER/failures, sorted by path. A
job that was worked twice has its line twice, which counts once. A path with a failure, or with two
digests, has no line in the manifest. A last line that was cut short (its worker was killed) is left
out: its job was not completed.
TEXT
}

case ${1:-} in
--help | -h)
    usage
    exit 0
    ;;
esac
if (($# != 1)) || [[ ! -d $1 ]]; then
    usage >&2
    exit 2
fi
folder=$1

whole_lines() { # whole_lines SUFFIX PREFIX: all whole lines of these files, with a prefix
    local file
    for file in "$folder"/*."$1"; do
        [[ -s $file ]] || continue
        if [[ -z $(tail -c 1 -- "$file") ]]; then
            cat -- "$file"
        else
            sed '$d' <"$file"
        fi
    done | sed "s/^/$2/"
}

{
    whole_lines failed F
    whole_lines part M
} | awk '
    /^F/ {
        tab = index($0, "\t")
        path = substr($0, tab + 1)
        if (!(path in reason)) reason[path] = substr($0, 2, tab - 2)
        next
    }
    {
        line = substr($0, 2)
        path = line
        sub(/^[^ ]*  /, "", path)
        if (path in reason) next
        if (path in lines && lines[path] != line) {
            reason[path] = "changed between two tries"
            delete lines[path]
        } else
            lines[path] = line
    }
    END {
        for (path in lines) print "M" lines[path]
        for (path in reason) print "F" reason[path] "\t" path
    }' >"$folder/merged"
# the path is all that follows the first blank, or the first tab
sed -n 's/^M//p' <"$folder/merged" | sort -t ' ' -k 2 >"$folder/manifest"
sed -n 's/^F//p' <"$folder/merged" | sort -t "$(printf '\t')" -k 2 >"$folder/failures"
rm -f -- "$folder/merged"
