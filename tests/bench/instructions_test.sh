#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No verb costs the server more than it did when the limits of bench/instructions.sh were written: beside the
# reference scripts, and beside the same effects as bare commands. Skipped (77) without valgrind, and on a
# server of another minor version, whose bare commands cost something else.
set -euo pipefail

root=${EMQ_SOURCE_DIR:?}
counted_on=9.1

command -v valgrind >/dev/null || { echo 'no valgrind: skipped' && exit 77; }
version=$("$root/tools/get-valkey.sh" --print version)
[[ $version == "$counted_on".* ]] || { echo "Valkey $version, and not $counted_on: skipped" && exit 77; }

exec "$root/bench/instructions.sh" --check --jobs 1600 --module "${EMQ_MODULE:?}"
