# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# What the tests that are scripts share: checks of what a program has said, conditions that may take
# their time, a private server. It is sourced, and uses source_dir, scratch, flavour and module.

deadline=120 # seconds that a condition may take on a busy machine

die() {
    printf 'FAILED: %s\n' "$1"
    exit 1
}

output_has() { grep -qF -- "$1" "$scratch/out" || die "not on standard output: $1"; }
output_lacks() { ! grep -qF -- "$1" "$scratch/out" || die "on standard output: $1"; }
error_has() { grep -qF -- "$1" "$scratch/err" || die "not on standard error: $1"; }

wait_for() { # wait_for COMMAND...: until it succeeds
    local end=$((SECONDS + deadline))
    until "$@" 2>/dev/null; do
        ((SECONDS < end)) || die "never came true: $*"
        sleep 0.02
    done
}

exists() { compgen -G "$1" >/dev/null; }

server_cli() { "$source_dir/tools/get-valkey.sh" --flavour "$flavour" --print cli; }

private_server() { # private_server OPTION...: sets socket and cli
    "$source_dir/tools/server.sh" start --module "$module" --dir "$scratch/server" \
        --flavour "$flavour" "$@" >/dev/null
    # shellcheck disable=SC2034 # of the tests
    socket=$scratch/server/s
    # shellcheck disable=SC2034
    cli=$(server_cli)
}
