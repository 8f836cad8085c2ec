#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves the README's two commands on a Debian 12 machine with nothing installed: makes a new root,
# clones the committed tree into it, and runs both there.
set -euo pipefail

usage() {
    cat <<'TEXT'
Usage: tools/fresh-root.sh [--dir DIR] [--keep] [--quickstart-only | --check-only] [--help]

Makes a minimal Debian 12 root with debootstrap from the mirror that this machine uses, clones HEAD into
it, and runs ./quickstart.sh and ./check.sh inside. Needs root. Prints the last lines and the exit
status of both, and removes the root at the end, also when it is interrupted.

  --dir DIR          make the root in this folder, which must not exist (default: a temporary one)
  --keep             leave the root for looking around
  --quickstart-only  run ./quickstart.sh alone
  --check-only       run ./check.sh alone

Exit status: 0 both passed; 1 one failed, or the root could not be made; 2 wrong use or not root.
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(dirname "$here")
# shellcheck source=tools/lib/apt-source.sh
. "$here/lib/apt-source.sh"
dir=
keep=
commands=(./quickstart.sh ./check.sh)

while (($# > 0)); do
    case $1 in
    --help | -h)
        usage
        exit 0
        ;;
    --dir)
        (($# > 1)) || emq_fail '--dir needs a folder' 2
        dir=$2
        shift
        ;;
    --keep) keep=yes ;;
    --quickstart-only) commands=(./quickstart.sh) ;;
    --check-only) commands=(./check.sh) ;;
    *)
        usage >&2
        exit 2
        ;;
    esac
    shift
done
((EUID == 0)) || emq_fail 'only root can make a root: run it as root' 2
if [[ -n $dir ]]; then
    [[ ! -e $dir ]] || emq_fail "$dir exists already" 2
    mkdir -p -- "$dir"
    dir=$(realpath -e -- "$dir")
else
    dir=$(mktemp -d "${TMPDIR:-/tmp}/emq-root.XXXXXX")
fi

# Runs a command in mount and process namespaces of its own: whatever it leaves running or mounted goes
# with them. In the background, since a trap waits for a command in the foreground.
running=
apart() { # apart COMMAND...
    local status=0
    unshare --mount --pid --fork --kill-child -- "$@" </dev/null &
    running=$!
    wait "$running" || status=$?
    running=
    return "$status"
}

leave() {
    if [[ -n $running ]]; then
        kill -KILL "$running" 2>/dev/null || true
        wait "$running" 2>/dev/null || true
    fi
    if [[ -n $keep ]]; then
        emq_say "the root is left in $dir/root"
    else
        rm -rf --one-file-system -- "$dir"
    fi
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

"$here/deps.sh" fresh-root
IFS=$'\t' read -r mirror keyring < <(emq_mirror) || emq_fail "found no Debian mirror in this machine's apt configuration"
emq_say "making a Debian 12 root in $dir (half a minute)"
apart debootstrap --variant=minbase ${keyring:+--keyring="$keyring"} bookworm "$dir/root" "$mirror" \
    >"$dir/debootstrap.log" 2>&1 || {
    tail -n 15 "$dir/debootstrap.log" >&2
    emq_fail 'debootstrap failed'
}

# Its apt takes packages from where this machine's does, in the same way.
rm -rf "$dir/root/etc/apt/sources.list" "$dir/root/etc/apt/sources.list.d"
mkdir -p "$dir/root/etc/apt/sources.list.d"
printf 'deb %s%s bookworm main\n' "${keyring:+[signed-by=$keyring] }" "$mirror" \
    >"$dir/root/etc/apt/sources.list"
if [[ -n $keyring && -f $keyring ]]; then
    install -D -m 644 "$keyring" "$dir/root$keyring"
fi
apt-config dump 2>/dev/null | grep -E '^Acquire::(https?|Check-[A-Za-z-]+)(::[^ ]*)? "' \
    >"$dir/root/etc/apt/apt.conf.d/90acquire" || true
cp -L /etc/resolv.conf "$dir/root/etc/resolv.conf" 2>/dev/null || true
cp -L /etc/hosts "$dir/root/etc/hosts" 2>/dev/null || true
git clone -q --no-hardlinks "$repository" "$dir/root/src"

# The shell stays as the first process of its namespace: it takes in the orphans that end, as init does on
# a whole machine. Without that, a process that was killed would seem to live on.
inside() { # inside COMMAND
    # shellcheck disable=SC2016
    apart bash -ec '
        mount -t proc proc "$1/proc"
        mount --rbind /dev "$1/dev"
        mount -t tmpfs tmpfs "$1/dev/shm" 2>/dev/null || true
        status=0
        chroot "$1" env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            LANG=C.UTF-8 TMPDIR=/tmp bash -c "cd /src && exec \"\$0\"" "$2" || status=$?
        exit "$status"' bash "$dir/root" "$1"
}

failed=0
for command in "${commands[@]}"; do
    log=$dir/$(basename "$command" .sh).log
    emq_say "running $command in the new root"
    started=$SECONDS
    status=0
    inside "$command" >"$log" 2>&1 || status=$?
    printf -- '--- %s: exit status %s, %s seconds; its last lines:\n' \
        "$command" "$status" "$((SECONDS - started))"
    tail -n 15 "$log"
    ((status == 0)) || failed=1
done
exit "$failed"
