#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job, end to end on real files: a producer admits one job per file, workers claim, hash, write
# and complete, and sha256sum verifies what they wrote. On a private server that is gone afterwards.
# shellcheck disable=SC2317 # functions that only the trap calls
set -euo pipefail
umask 077
export LC_ALL=C # names are bytes
unset CDPATH

usage() {
    cat <<'TEXT'
Usage: ./quickstart.sh [OPTION]... [DIR]

Makes a SHA-256 manifest of every regular file below DIR, with one job per file on a private Valkey
server: installs what is missing, builds, starts the server, runs a producer and several workers,
reports, and verifies the manifest with `sha256sum -c`. Nothing is written below DIR.

DIR is by default this repository, of which only the files that git tracks are taken (in a copy without
.git: all of its files but those in build/).

  --workers N      worker processes, 1 to 64 (default: one for each core, at least 2)
  --manifest FILE  save the manifest, as sha256sum would write it in DIR; FILE is not below DIR
  --kill-one       kill a worker with SIGKILL half way; the others do what it had in hand
  --keep           leave the server running and the manifest where it is, and print where
  --help           print this

Symbolic links are not followed; fifos, sockets and devices are not opened. A file that can't be read,
changes while it is hashed, or vanishes is listed with its reason.

Exit status: 0 every file is in the verified manifest, and no worker was lost (but for the one that
--kill-one kills); 1 some files are not, and are listed, or the counts don't agree, or a worker was lost,
or a part of the run failed: the last line tells what it was; 2 wrong use, or packages are missing and
can't be installed; 129, 130, 143 after a hangup, an interrupt (Ctrl-C), a SIGTERM, which leave nothing
behind.

Environment: EMQ_BUILD_DIR (where to build; default build/), TMPDIR, XDG_CACHE_HOME, VALKEY_SERVER;
EMQ_BIN_DIR and EMQ_MODULE (folder of the example programs, and emq.so: use these and build nothing).
TEXT
}

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
queue=quickstart
folder=     # DIR, an absolute path
tracked=    # yes: the files that git tracks, no others
excluded=() # options for the producer
workers=
manifest_file=
keep=
kill_one=
work=                # our temporary folder
server=              # the server's folder, once there may be one
declare -A facts=()  # how to reach it, and what the programs report
step_pid=            # a command that is waited for
step_kind=           # what a signal does to it: kill, install (interrupt and wait), wait
victim=              # pid of the worker that --kill-one is to kill, once it works
victim_killed=       # yes
declare -A role=()   # what each running child is: pid -> producer, or a worker's number
open_line=           # yes: the terminal's cursor is behind a progress line
finished_well=
status=0
reasons=() # why it is not 0, for the last line

say() { printf 'quickstart: %s\n' "$1" >&2; }
fail() { # fail SENTENCE [STATUS]
    say "$1"
    exit "${2:-1}"
}
flaw() { # flaw SENTENCE: the run goes on, and will have failed
    status=1
    reasons+=("$1")
}

# ---- the command line ----

check_workers() {
    workers=0
    [[ ! $1 =~ ^[0-9]{1,4}$ ]] || workers=$((10#$1))
    ((workers >= 1 && workers <= 64)) ||
        fail "--workers takes a number from 1 to 64, not '$1'" 2
}

read_arguments() {
    local given=() value
    while (($# > 0)); do
        case $1 in
        --help | -h)
            usage
            exit 0
            ;;
        --keep) keep=yes ;;
        --kill-one) kill_one=yes ;;
        --workers=* | --manifest=*)
            value=${1#*=}
            set -- "${1%%=*}" "$value" "${@:2}"
            continue
            ;;
        --workers | --manifest)
            (($# > 1)) || fail "$1 needs a value (see --help)" 2
            if [[ $1 == --workers ]]; then check_workers "$2"; else manifest_file=$2; fi
            shift
            ;;
        --)
            given+=("${@:2}")
            break
            ;;
        -?*) fail "unknown option: $1 (see --help)" 2 ;;
        *) given+=("$1") ;;
        esac
        shift
    done
    ((${#given[@]} <= 1)) || fail "one DIR only (see --help)" 2
    if ((${#given[@]} == 0)); then
        choose_repository
    else
        choose_folder "${given[0]}"
    fi
    if [[ -z $workers ]]; then
        workers=$(nproc)
        workers=$((workers < 2 ? 2 : workers > 64 ? 64 : workers))
    fi
    [[ -z $kill_one ]] || ((workers > 1)) || fail '--kill-one needs a second worker' 2
}

choose_folder() {
    local name=$1
    [[ -n $name ]] || fail "DIR is an empty string (see --help)" 2
    [[ $name == /* ]] || name=./$name
    [[ -e $name ]] || fail "no such folder: $1" 2
    [[ -d $name ]] || fail "not a folder: $1" 2
    [[ -r $name && -x $name ]] || fail "the folder can't be read: $1" 2
    folder=$(cd -- "$name" && pwd -P && printf .) # a name may end in a line break
    folder=${folder%$'\n'.}
}

git_here() { env -u GIT_DIR -u GIT_WORK_TREE -u GIT_INDEX_FILE git -C "$repository" "$@"; }

choose_repository() {
    folder=$repository
    if [[ -e $repository/.git ]]; then
        tracked=yes
    else
        say "this copy has no .git: taking all of its files but those in build/"
        exclude_build
    fi
}

exclude_build() {
    local build=${EMQ_BUILD_DIR:-}
    excluded=(--exclude build --exclude .git)
    build=${build:+$(realpath -m -- "$build")}
    [[ -z $build || $build == "$folder" ]] || ! is_below "$build" ||
        excluded+=(--exclude "${build#"$folder"/}")
}

is_below() { [[ $1/ == "${folder%/}"/* ]]; }

check_manifest_file() {
    local real
    [[ -n $manifest_file ]] || return 0
    [[ ! -d $manifest_file ]] || fail "--manifest: $manifest_file is a folder" 2
    real=$(realpath -m -- "$manifest_file" && printf .)
    real=${real%$'\n'.}
    ! is_below "$real" || fail "--manifest: $manifest_file lies below DIR, where nothing is written" 2
    [[ -d ${real%/*}/ ]] || fail "--manifest: no folder ${real%/*}" 2
    [[ -w $real || (! -e $real && -w ${real%/*}/) ]] ||
        fail "--manifest: $manifest_file can't be written" 2
    manifest_file=$real
}

# ---- places outside of DIR ----

# A folder of our own. TMPDIR may lie below DIR; the server's socket wants a short path.
choose_temporary() {
    local place real
    for place in "${TMPDIR:-/tmp}" /tmp /var/tmp /dev/shm "${XDG_RUNTIME_DIR:-/run}"; do
        [[ -d $place && -w $place && -x $place ]] || continue
        real=$(realpath -e -- "$place")
        if is_below "$real" || ((${#real} > 64)); then
            continue
        fi
        [[ $place == "${TMPDIR:-/tmp}" ]] ||
            say "${TMPDIR:-/tmp} can't be used (below DIR, or too long a path): using $real"
        work=$(mktemp -d "$real/emq-quickstart.XXXXXX")
        mkdir "$work/tmp" "$work/out"
        export TMPDIR=$work/tmp
        return 0
    done
    fail "nothing is written below DIR, and no folder for temporary files lies outside of it: \
choose another DIR, or set TMPDIR" 2
}

# A cache below DIR is used, but nothing is added to it.
choose_cache() {
    local cache=${XDG_CACHE_HOME:-${HOME:-$work}/.cache}/emq built
    [[ -z $tracked ]] && is_below "$(realpath -m -- "$cache")" || return 0
    mkdir -p "$work/cache/emq"
    for built in "$cache"/valkey-*; do
        [[ ! -d $built ]] || ln -s -- "$(realpath -- "$built")" "$work/cache/emq/"
    done
    export XDG_CACHE_HOME=$work/cache
}

# The build folder, or a temporary one where that lies below a DIR that was asked for.
choose_build() {
    build=$(realpath -m -- "${EMQ_BUILD_DIR:-$repository/build}")/quickstart
    if is_below "$build" && [[ -z $tracked ]] && ((${#excluded[@]} == 0)); then
        say "$build lies below DIR: building in a temporary folder"
    elif mkdir -p -- "$build" 2>/dev/null && [[ -w $build ]]; then
        return 0
    else
        say "$build can't be written: building in a temporary folder"
    fi
    build=$work/build
    mkdir "$build"
}

# ---- steps: commands that take long, and that a signal ends at once ----

# Runs a command in a process group of its own and waits for it: bash handles a signal while it waits,
# but not before a foreground command has ended.
step() { # step kill|install|wait COMMAND...
    local result=0
    step_kind=$1
    shift
    env --default-signal=INT,QUIT setsid -- "$@" </dev/null &
    step_pid=$!
    wait "$step_pid" || result=$?
    step_pid=
    step_kind=
    return "$result"
}

# An installation is left to end by itself (apt heeds the interrupt where it can), and so is the start
# of the server, whose stop then finds it whole.
end_step() {
    local tenths
    [[ -n $step_kind ]] || return 0
    step_pid=${step_pid:-$!} # the signal may have come right between
    for ((tenths = 0; ; tenths++)); do
        kill -0 "$step_pid" 2>/dev/null || kill -0 -- "-$step_pid" 2>/dev/null || return 0
        if ((tenths % 10 == 0)) && [[ $step_kind == kill ]]; then
            local signal=INT
            ((tenths < 50)) || signal=TERM
            ((tenths < 100)) || signal=KILL
            kill "-$signal" -- "-$step_pid" 2>/dev/null || true
        elif ((tenths == 0)) && [[ $step_kind == install ]]; then
            kill -INT -- "-$step_pid" 2>/dev/null || true
        elif ((tenths == 20)); then
            say "waiting for a command that must not be cut short"
        fi
        sleep 0.1
    done
}

read_facts() { # read_facts FILE: name=value lines
    local name value
    while IFS='=' read -r name value; do
        facts[$name]=$value
    done <"$1"
}

# ---- preparing ----

flavour() { printf '%s\n' "${EMQ_SERVER_FLAVOUR:-plain}"; }

prepare() {
    local result=0
    if [[ -n ${EMQ_BIN_DIR:-} && -n ${EMQ_MODULE:-} ]]; then
        bin=$EMQ_BIN_DIR
        module=$EMQ_MODULE
        return 0
    fi
    step install "$repository/tools/deps.sh" build server || result=$?
    ((result == 0)) || fail "the packages above are needed" "$result"
    step kill "$repository/tools/get-valkey.sh" >"$work/valkey" || exit "$?"
    read_facts "$work/valkey"
    choose_build
    say "building"
    build_all || {
        tail -n 30 "$work/build.log" >&2
        fail "the build failed"
    }
    bin=$build/examples/quickstart
    module=$build/module/emq.so
}

build_all() {
    local fresh=()
    # a build folder that came with a copied tree belongs to another one
    [[ ! -f $build/CMakeCache.txt ]] ||
        grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$repository" "$build/CMakeCache.txt" ||
        fresh=(--fresh)
    step kill flock "$build/.lock" cmake "${fresh[@]}" -S "$repository" -B "$build" \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo -DEMQ_BUILD_TESTS=OFF \
        -DVALKEYMODULE_INCLUDE_DIR="${facts[include]}" >"$work/build.log" 2>&1 &&
        step kill flock "$build/.lock" cmake --build "$build" -j "$(nproc)" \
            --target emq_module quickstart_producer quickstart_worker quickstart_counts \
            >>"$work/build.log" 2>&1
}

start_server() {
    server=$work/server
    step wait "$repository/tools/server.sh" start --module "$module" --dir "$server" \
        --flavour "$(flavour)" >"$work/server.facts" || exit "$?"
    read_facts "$work/server.facts"
    say "a private server listens on ${facts[socket]}"
}

# ---- the run ----

now_us() { printf '%s\n' "${EPOCHREALTIME//[^0-9]/}"; }

start_producer() {
    local options=(--socket "${facts[socket]}" --queue "$queue" --failures "$work/out/producer.list")
    local input=/dev/null
    if [[ -n $tracked ]]; then
        # an unmerged path is listed once for each side
        git_here ls-files -z 2>"$work/git.log" | sort -zu >"$work/list" || {
            cat "$work/git.log" >&2
            fail "git does not list the files of $repository"
        }
        options+=(--list)
        input=$work/list
    fi
    "$bin/quickstart_producer" "${options[@]}" "${excluded[@]}" -- "$folder" \
        <"$input" >"$work/out/producer.report" 2>"$work/out/producer.log" &
    role[$!]=producer
}

start_worker() { # start_worker NUMBER [OPTION...]
    "$bin/quickstart_worker" --socket "${facts[socket]}" --queue "$queue" \
        --part "$work/out/$1.part" --failures "$work/out/$1.failed" \
        --finished "$work/out/finished" "${@:2}" -- "$folder" \
        </dev/null >"$work/out/$1.report" 2>"$work/out/$1.log" &
    role[$!]=$1
}

start_workers() { # start_workers FIRST: that one, and all behind it
    local number
    for ((number = $1; number <= workers; number++)); do
        start_worker "$number"
    done
}

# For --kill-one: behind half of its share the first worker stops with jobs in its hands. Then it is
# killed, and the others start.
start_victim() {
    start_worker 1 --hang-after $((${facts[files]:-0} / 2 / workers))
    victim=$!
}

kill_victim() {
    local state
    state=$(sed 's/^.*) //; s/ .*//' "/proc/$victim/stat" 2>/dev/null) || return 0
    [[ $state == T ]] || return 0
    kill -KILL "$victim"
    wait "$victim" 2>/dev/null || true # bash would tell of its end in its own words, and forget it
    unset "role[$victim]"
    victim=
    victim_killed=yes
    read_counts || true
    end_line
    say "worker 1 was killed, with ${facts[active]:-?} jobs in its hands: the others will do them"
    start_workers 2
}

# pending=, active=, dead= and completed= into facts
read_counts() {
    "$bin/quickstart_counts" --socket "${facts[socket]}" --queue "$queue" --patience 0 \
        >"$work/counts" 2>"$work/counts.log" &
    wait "$!" 2>/dev/null || return 1
    read_facts "$work/counts"
    # a file that a full disk has cut short is no answer
    [[ -n ${facts[pending]:-} && -n ${facts[active]:-} && -n ${facts[dead]:-} && -n ${facts[completed]:-} ]]
}

progress() {
    local now hashed text
    now=$(($(now_us) - started))
    [[ -t 2 ]] || ((now >= next_line)) || return 0
    next_line=$((now + 5000000))
    read_counts || return 0
    hashed=${facts[completed]}
    if [[ -n ${facts[files]:-} ]]; then
        text="$hashed of ${facts[files]} files hashed"
    else
        text="$hashed files hashed, $((facts[pending] + facts[active])) more found so far"
    fi
    text+=", $(per_second "$hashed" "$now") per second"
    if [[ -t 2 ]]; then
        printf '\r\033[Kquickstart: %s' "$text" >&2
        open_line=yes
    else
        say "$text"
    fi
}

end_line() {
    [[ -z $open_line ]] || printf '\r\033[K' >&2
    open_line=
}

# A child has ended: the producer lets the workers end; without a worker the producer's work is for
# nobody.
note_end() { # note_end PID STATUS
    local who=${role[$1]} other
    unset "role[$1]"
    if [[ $who == producer ]]; then
        read_facts "$work/out/producer.report"
        : >"$work/out/finished"
        [[ -z $kill_one ]] || start_victim
        who='the producer'
    else
        if [[ $who == 1 && -n $victim ]]; then # it has ended by itself
            victim=
            (($2 > 1)) || {
                flaw 'no worker was killed: there was no job for it'
                say "${reasons[-1]}"
            }
            start_workers 2
        elif [[ ${role[*]} == producer ]]; then
            for other in "${!role[@]}"; do
                kill -TERM "$other" 2>/dev/null || true
            done
        fi
        who="worker $who"
    fi
    (($2 > 1)) || return 0
    end_line
    if (($2 > 128)); then
        flaw "$who was ended by signal $(($2 - 128))"
    else
        flaw "$who gave up (exit status $2)"
    fi
    say "${reasons[-1]}"
}

# bash forgets a child that ended while it waited for another one: `wait -n` passes it over then, while
# a wait for it alone still has its status.
note_forgotten() {
    local pid result
    [[ -d /proc/$tick ]] || tick=
    for pid in "${!role[@]}"; do
        [[ ! -d /proc/$pid ]] || continue
        result=0
        wait "$pid" 2>/dev/null || result=$?
        note_end "$pid" "$result"
    done
}

run() {
    local tick='' ended result pause
    started=$(now_us)
    next_line=5000000
    start_producer
    [[ -n $kill_one ]] || start_workers 1
    while ((${#role[@]} > 0)); do
        if [[ -z $tick ]]; then
            pause=0.5
            [[ -z $victim ]] || pause=0.05
            sleep "$pause" &
            tick=$!
        fi
        ended=
        result=0
        # bash would tell of a child that was killed in its own words
        wait -n -p ended "$tick" "${!role[@]}" 2>/dev/null || result=$?
        if [[ ${ended:-} == "$tick" ]]; then
            tick=
            [[ -z $victim ]] || kill_victim
            note_forgotten
            progress
        elif [[ -n ${ended:-} ]]; then
            note_end "$ended" "$result"
        else
            note_forgotten
        fi
    done
    elapsed=$(($(now_us) - started))
    [[ -z $tick ]] || kill "$tick" 2>/dev/null || true
    end_line
}

# ---- the report ----

# Names may hold anything: a terminal gets no control bytes.
printable() { tr '\000-\010\013-\037\177' '?'; }

per_second() { # per_second COUNT MICROSECONDS
    printf '%s\n' "$(($1 * 1000000 / ($2 < 1 ? 1 : $2)))"
}

seconds_of() { # seconds_of MICROSECONDS
    printf '%d.%02d\n' "$(($1 / 1000000))" "$(($1 % 1000000 / 10000))"
}

report_workers() {
    local number us total=0
    for ((number = 1; number <= workers; number++)); do
        facts[jobs]=
        read_facts "$work/out/$number.report"
        if [[ -z ${facts[jobs]} && -n $victim_killed && $number == 1 ]]; then
            printf '  worker %-3s      killed\n' "$number"
            continue
        fi
        if [[ -z ${facts[jobs]} ]]; then
            printf '  worker %-3s      ended without a report\n' "$number"
            continue
        fi
        us=${facts[microseconds]}
        total=$((total + facts[bytes]))
        printf '  worker %-3s %10s jobs  %9s seconds  %8s jobs/s\n' "$number" "${facts[jobs]}" \
            "$(seconds_of "$us")" "$(per_second "${facts[jobs]}" "$us")"
    done
    printf '  hashed     %10s MB\n' $((total / 1000000))
}

# Three counts that are kept by three parties: the producer's, the server's, and the files'.
report_counts() { # report_counts FOUND LINES FAILURES
    printf '  files found      %10s\n' "$1"
    printf '  jobs completed   %10s\n' "${facts[completed]}"
    printf '  manifest lines   %10s\n' "$2"
    printf '  failures listed  %10s\n' "$3"
    if (($1 == facts[completed] && $1 == $2 + $3)); then
        printf '  the counts agree: found = completed = lines + failures\n'
    else
        printf '  THE COUNTS DO NOT AGREE: found, completed, and lines + failures should be equal\n'
        flaw 'the counts do not agree'
    fi
    if ((facts[active] > 0)); then
        printf '  %s still leased: claimed by a worker that ended before it completed them\n' \
            "${facts[active]}"
        flaw "jobs are still leased"
    fi
    if ((facts[dead] > 0)); then
        printf '  %s dead: three workers died with them in hand\n' "${facts[dead]}"
        flaw "jobs are dead"
    fi
    if ((facts[pending] > 0)); then
        printf '  %s still pending: no worker was left to claim them\n' "${facts[pending]}"
        flaw "jobs are still pending"
    fi
}

list_failures() { # list_failures FILE TITLE
    [[ -s $1 ]] || return 0
    flaw "some $2"
    printf '%s:\n' "$2"
    awk '{ tab = index($0, "\t"); print "  " substr($0, tab + 1) ": " substr($0, 1, tab - 1) }' \
        <"$1" | printable
}

# What processes had to say, after the progress line is out of the way.
show_logs() {
    local file name
    for file in "$work"/out/*.log; do
        name=${file##*/}
        name=${name%.log}
        [[ $name == producer ]] || name="worker $name"
        sed "s/^/quickstart: $name: /" <"$file" | printable >&2
    done
}

verify() {
    local result=0
    if [[ ! -s $work/out/manifest ]]; then
        printf 'manifest: it has no lines, so there is nothing to verify\n'
        return 0
    fi
    step kill env --chdir="$folder" sha256sum -c --quiet --strict -- "$work/out/manifest" \
        >"$work/verified" 2>&1 || result=$?
    if ((result == 0)); then
        printf 'manifest: verified with sha256sum -c\n'
    else
        printf 'manifest: sha256sum -c does not confirm it; changed after they were hashed:\n'
        printable <"$work/verified" | sed 's/^/  /'
        flaw 'the manifest is not confirmed'
    fi
}

report() {
    read_counts || {
        show_logs
        tail -n 5 "${facts[log]}" >&2 || true
        fail "the server no longer answers, or the disk of $work is full"
    }
    step kill "$repository/examples/quickstart/merge.sh" "$work/out"
    local found=${facts[files]:-0} lines failures
    lines=$(wc -l <"$work/out/manifest")
    failures=$(wc -l <"$work/out/failures")
    show_logs
    printf '  jobs       %10s\n  seconds    %10s\n  jobs/s     %10s\n' "${facts[completed]}" \
        "$(seconds_of "$elapsed")" "$(per_second "${facts[completed]}" "$elapsed")"
    report_workers
    report_counts "$found" "$lines" "$failures"
    list_failures "$work/out/failures" 'could not be hashed'
    list_failures "$work/out/producer.list" 'could not be looked at'
    verify
}

save_manifest() {
    if [[ -n $manifest_file ]]; then
        if cat -- "$work/out/manifest" >"$manifest_file"; then
            printf 'manifest: saved as %s\n' "$manifest_file"
        else
            flaw 'the manifest was not saved'
        fi
    fi
    if [[ -n $keep ]]; then
        printf 'manifest: %s\n' "$work/out/manifest"
    elif [[ -z $manifest_file ]]; then
        printf 'manifest: not kept (--manifest FILE saves it)\n'
    fi
}

tell_kept() {
    printf 'the server is still running:\n'
    printf '  %q -s %q HGETALL %q\n' "${facts[cli]}" "${facts[socket]}" "emq:{$queue}:metrics:completed"
    printf '  %q -p %q EMQ.VERSION\n' "${facts[cli]}" "${facts[port]}"
    printf 'stop it, and remove what is left:\n'
    printf '  %q stop %q && rm -r %q\n' "$repository/tools/server.sh" "$server" "$work"
}

tell_flaws() {
    local text
    ((status != 0)) || return 0
    text=$(printf '; %s' "${reasons[@]}")
    printf 'exit status %s: %s\n' "$status" "${text#; }"
}

# ---- the end, whichever way it comes ----

end_children() {
    local tenths
    # bash's own list, which has a child before our notes have it; the pids are numbers
    # shellcheck disable=SC2046
    kill -TERM $(jobs -p) 2>/dev/null
    # shellcheck disable=SC2046
    kill -CONT $(jobs -p) 2>/dev/null
    for ((tenths = 0; tenths < 20; tenths++)); do
        [[ -n $(jobs -pr) ]] || return
        sleep 0.1
    done
    # one that is in the middle of a large file
    # shellcheck disable=SC2046
    kill -KILL $(jobs -pr) 2>/dev/null
    wait 2>/dev/null
}

clean_up() {
    local result=$?
    trap '' INT TERM HUP PIPE
    set +e
    [[ -z $open_line ]] || printf '\n' >&2
    end_step
    end_children
    if [[ -n $keep && -n $finished_well ]]; then
        exit "$result"
    fi
    if [[ -n $server && -f $server/facts ]]; then
        "$repository/tools/server.sh" stop "$server" >&2
        if (($? == 3)); then # it has kept its folder, with a sanitizer's report
            exit 1
        fi
    fi
    [[ -z $work ]] || rm -rf -- "$work"
    exit "$result"
}

trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

read_arguments "$@"
check_manifest_file
choose_temporary
choose_cache
prepare
start_server
say "hashing with $workers workers: ${tracked:+the files that git tracks in }$(printf '%s' "$folder" | printable)"
run
report
save_manifest
finished_well=yes
[[ -z $keep ]] || tell_kept
tell_flaws
exit "$status"
