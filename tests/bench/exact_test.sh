#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The benchmark's driver must fail when the server holds, counts or hands out what it should not.
set -euo pipefail

driver=$1
root=${EMQ_SOURCE_DIR:?}
dir=
trap '[[ -z $dir ]] || "$root/tools/server.sh" stop "$dir"' EXIT

while IFS='=' read -r name value; do
    case $name in dir | socket | cli) declare "$name=$value" ;; esac
done < <("$root/tools/server.sh" start --module "${EMQ_MODULE:?}" --flavour "${EMQ_SERVER_FLAVOUR:-plain}")
[[ -n $dir ]]

ask() { "$cli" -e -s "$socket" "$@" >/dev/null; } # -e: an error is a failure

passes() { # passes CONTENDER
    "$driver" verbs "$1" cell="$1" path="$socket" scripts="$root/tests/diff/reference" jobs=640 in_flight=8 \
        connections=4 >/dev/null
}

fails() { # fails TEXT CONTENDER
    local said
    if said=$(passes "$2" 2>&1); then
        printf 'the driver does not notice: %s\n' "$1" >&2
        exit 1
    fi
    [[ $said == *"$1"* ]] || {
        printf 'the driver says: %s\ninstead of: %s\n' "$said" "$1" >&2
        exit 1
    }
}

clean() {
    ask FLUSHALL
    ask EMQ.INSTALL 1 '{emq}:version'
}

for contender in native script bare; do passes "$contender"; done

# somebody else's job would be handed out in place of one of the run's
ask EMQ.ENQUEUE 2 'emq:{bench}:job:JOB00000000001' 'emq:{bench}:pending' JOB00000000001 x
fails 'there are jobs in the queue' native
clean
# a job that is completed twice, or by somebody else
ask HSET 'emq:{bench}:metrics:completed' count 1
fails '641 of 640 jobs are completed' native
clean
# what is left behind
ask SET stray x
fails 'keys that nobody needs' native
clean
# claims that find nothing
ask EMQ.PAUSE 2 'emq:{bench}:meta' 'emq:{bench}:'
fails 'a claim found nothing' native
clean
passes native
