#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the real quickstart on folders made for each case, and checks what it prints, how it ends, and
# that it leaves nothing behind.
#
#     quickstart_test.sh FOLDER-OF-THE-EXAMPLES CASE
#
# EMQ_TEST_FILES sets the number of files of the case `many` (default 2000), EMQ_TEST_SECONDS the time
# that a case may take (default 240).
set -euo pipefail
export LC_ALL=C

# Ends a hanging case, and all that it runs, while it still can clean up: before ctest's own limit.
if [[ -z ${EMQ_TEST_LIMITED:-} ]]; then
    EMQ_TEST_LIMITED=yes exec timeout --kill-after=30 "${EMQ_TEST_SECONDS:-240}" "$0" "$@"
fi
unset EMQ_TEST_LIMITED

source_dir=${EMQ_SOURCE_DIR:?run the tests through ctest}
module=${EMQ_MODULE:?run the tests through ctest}
examples=$1
case=$2
flavour=${EMQ_SERVER_FLAVOUR:-plain}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/emq-test.XXXXXX")
tree=$scratch/tree
mkdir "$tree" "$scratch/tmp" "$scratch/bin"
unset EMQ_BUILD_DIR
background=() # what a case has started
export TMPDIR=$scratch/tmp EMQ_BIN_DIR=$examples EMQ_MODULE=$module

end_of_test() {
    local result=$? dir
    trap - EXIT
    set +e
    ((${#background[@]} == 0)) || kill -KILL "${background[@]}" 2>/dev/null
    for dir in "$scratch"/tmp/*/server "$scratch"/server; do
        [[ ! -f $dir/facts ]] || "$source_dir/tools/server.sh" stop "$dir"
    done
    if ((result != 0)); then
        printf -- '--- standard output\n' && cat "$scratch/out" 2>/dev/null
        printf -- '--- standard error\n' && cat "$scratch/err" 2>/dev/null
    fi
    chmod -R u+rwX "$scratch" 2>/dev/null
    rm -rf -- "$scratch"
    exit "$result"
}
trap end_of_test EXIT
trap 'exit 143' TERM

# shellcheck source=tests/support/script.sh
. "$source_dir/tests/support/script.sh"

# ---- running and checking ----

quickstart() { # quickstart STATUS ARGUMENT...: runs to the end and checks the exit status
    local expected=$1 result=0
    shift
    "${through[@]}" "$source_dir/quickstart.sh" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null ||
        result=$?
    ((result == expected)) || die "exit status $result instead of $expected: quickstart.sh $*"
}
through=() # a command that runs it

last_line_is() { # last_line_is TEXT
    [[ $(tail -n 1 "$scratch/out") == "$1" ]] || die "the last line is: $(tail -n 1 "$scratch/out")"
}

counts_are() { # counts_are FOUND COMPLETED LINES FAILURES
    local name value
    for name in 'files found' 'jobs completed' 'manifest lines' 'failures listed'; do
        value=$(sed -n "s/^  $name  *//p" "$scratch/out")
        [[ $value == "$1" ]] || die "$name: $value instead of $1"
        shift
    done
}

# Processes that have the scratch folder in their command line or work in it.
leftover_processes() {
    local dir cwd
    for dir in /proc/[0-9]*; do
        [[ ${dir#/proc/} != "$$" && ${dir#/proc/} != "$BASHPID" ]] || continue
        { tr '\0' ' ' <"$dir/cmdline"; } 2>/dev/null | grep -F -- "$scratch" || true
        cwd=$(readlink "$dir/cwd") || continue
        [[ $cwd/ != "$scratch"/* ]] || printf 'pid %s in %s\n' "${dir#/proc/}" "$cwd"
    done
}

nothing_left() {
    local processes
    processes=$(leftover_processes)
    [[ -z $processes ]] || die "processes are left: $processes"
    [[ -z $(ls -A "$scratch/tmp") ]] || die "files are left: $(ls -A "$scratch/tmp")"
}

listing() { find "$tree" -printf '%p %y %s %T@ %C@ %m %i\n' | sort; }
remember_tree() { listing >"$scratch/before"; }
tree_is_as_before() {
    listing >"$scratch/after"
    cmp "$scratch/before" "$scratch/after" || die "something was written below DIR"
}

# Puts a program of the case in the place of the worker; $real is the true one.
worker_is() { # worker_is < body
    local name
    for name in producer counts; do
        ln -s "$examples/quickstart_$name" "$scratch/bin/quickstart_$name"
    done
    {
        printf '#!/usr/bin/env bash\nset -euo pipefail\nreal=%q\ntree=%q\nscratch=%q\n' \
            "$examples/quickstart_worker" "$tree" "$scratch"
        cat <<'TEXT'
option() { # the value of an option of ours
    local name=$1
    set -- "${arguments[@]}"
    while [[ $1 != "$name" ]]; do shift; done
    printf '%s\n' "$2"
}
arguments=("$@")
part=$(option --part)
TEXT
        cat
    } >"$scratch/bin/quickstart_worker"
    chmod +x "$scratch/bin/quickstart_worker"
    export EMQ_BIN_DIR=$scratch/bin
}

# Without the capabilities that let root read everything. An ordinary user has none.
without_privileges() {
    if ((EUID == 0)); then
        through=(setpriv --bounding-set='-dac_override,-dac_read_search')
    fi
}

make_files() { # make_files COUNT
    local number folder
    for ((number = 0; number < $1; number++)); do
        folder=$tree/$((number / 500))
        ((number % 500 != 0)) || mkdir -p "$folder"
        printf '%s\n' "$number" >"$folder/file $number"
    done
}

# ---- the cases ----

# shellcheck disable=SC1003,SC2016 # names as hostile as they get
case_names() {
    local name names=('-' '-n' '--help' 'a b' ' leading' 'trailing ' $'line\nbreak' $'\n' 'back\slash' '\'
        $'return\r' $'tab\t' '*star' '#hash' '\n' "it's" '"quoted"' '$(date)' $'\001\033[2J' $'\377\376'
        $'caf\303\251' '~' "$(printf 'n%.0s' {1..255})")
    mkdir "$tree/-d" "$tree/"$'folder\nwith\\' "$tree/empty folder"
    for name in "${names[@]}"; do
        printf '%s' "$name" >"$tree/$name"
        printf 'x%s' "$name" >"$tree/"$'folder\nwith\\'"/$name"
    done
    : >"$tree/-d/empty"
    longest_path
    remember_tree
    cd "$tree"
    quickstart 0 . --manifest "$scratch/manifest" --workers 3
    tree_is_as_before
    output_has 'the counts agree'
    output_has 'manifest: verified with sha256sum -c'
    local files=$((2 * ${#names[@]} + 2))
    counts_are "$files" "$files" "$files" 0
    # what sha256sum itself writes; the name - it takes for its standard input
    { find . -type f -not -path ./- -printf '%P\0' | sort -z | xargs -0 sha256sum -- && sha256sum ./-; } |
        sort >"$scratch/expected"
    sort "$scratch/manifest" | diff "$scratch/expected" - || die "sha256sum writes other lines"
    sha256sum -c --quiet --strict "$scratch/manifest"
    nothing_left
}

# A file whose path from DIR has 4095 bytes, the most that a program can open.
longest_path() {
    local component
    component=$(printf 'd%.0s' {1..254})
    (
        cd "$tree"
        for _ in {1..15}; do
            mkdir "$component"
            cd "$component"
        done
        component=$(printf 'e%.0s' {1..13})
        mkdir "$component" && cd "$component"
        printf deep >"$(printf 'f%.0s' {1..255})"
    )
}

case_special() {
    mkfifo "$tree/fifo"
    private_server
    ln "$socket" "$tree/socket"
    "$source_dir/tools/server.sh" stop "$scratch/server"
    [[ -S $tree/socket ]] || die "no socket was made"
    if ((EUID == 0)); then mknod "$tree/device" c 1 5 2>/dev/null || true; fi # one that never ends
    mkdir "$tree/folder"
    printf inside >"$tree/folder/file"
    ln -s folder/file "$tree/to-file"
    ln -s folder "$tree/to-folder"
    ln -s . "$tree/loop"
    ln -s .. "$tree/folder/up"
    ln -s nowhere "$tree/dangling"
    # a writer waits in the fifo for as long as nobody opens it
    (printf opened >"$tree/fifo") &
    background+=("$!")
    remember_tree
    quickstart 0 "$tree" --manifest "$scratch/manifest"
    tree_is_as_before
    kill -0 "${background[0]}" || die "the fifo was opened"
    counts_are 1 1 1 0
    (cd "$tree" && sha256sum folder/file) | cmp - "$scratch/manifest"
    # DIR itself may be given through a link
    ln -s "$tree/folder" "$scratch/link"
    quickstart 0 "$scratch/link"
    counts_are 1 1 1 0
    nothing_left
}

case_empty() {
    quickstart 0 "$tree"
    counts_are 0 0 0 0
    output_has 'nothing to verify'
    : >"$tree/one"
    quickstart 0 "$tree" --workers 64
    counts_are 1 1 1 0
    output_has 'worker 64'
    output_has 'not kept (--manifest FILE saves it)'
    nothing_left
}

case_unreadable() {
    local component
    without_privileges
    mkdir "$tree/closed" "$tree/open"
    printf secret >"$tree/closed/file"
    printf secret >"$tree/open/secret"
    printf public >"$tree/open/public"
    chmod 000 "$tree/closed" "$tree/open/secret"
    # longer than PATH_MAX
    component=$(printf 'd%.0s' {1..255})
    (
        cd "$tree"
        for _ in {1..17}; do
            mkdir "$component"
            cd "$component"
        done
        printf deep >too-deep
    )
    quickstart 1 "$tree" --manifest "$scratch/manifest"
    counts_are 3 3 1 2
    output_has '  open/secret: Permission denied'
    output_has '  closed: Permission denied'
    output_has '/too-deep: its path is longer than programs can open'
    output_has 'the counts agree'
    output_has 'manifest: verified with sha256sum -c'
    (cd "$tree" && sha256sum open/public) | cmp - "$scratch/manifest"
    nothing_left
}

case_changing() {
    truncate -s 400M "$tree/growing"
    printf still >"$tree/still"
    (while :; do printf x >>"$tree/growing"; done) &
    background+=("$!")
    quickstart 1 "$tree"
    output_has '  growing: changed while it was hashed'
    counts_are 2 2 1 1
    output_has 'manifest: verified with sha256sum -c'
    nothing_left
}

case_vanishing() {
    local name
    for name in gone folder link fifo late stays; do
        printf '%s' "$name" >"$tree/$name"
    done
    mkdir "$tree/sub" "$tree/swapped"
    printf x >"$tree/sub/file"
    printf x >"$tree/swapped/file"
    worker_is <<'TEXT'
while [[ ! -e $(option --finished) ]]; do sleep 0.02; done
rm -r "$tree/gone" "$tree/folder" "$tree/link" "$tree/fifo" "$tree/sub"
mv "$tree/swapped" "$scratch/elsewhere"
ln -s "$scratch/elsewhere" "$tree/swapped"
mkdir "$tree/folder"
ln -s stays "$tree/link"
mkfifo "$tree/fifo"
status=0
"$real" "$@" || status=$?
printf more >>"$tree/late"
exit "$status"
TEXT
    quickstart 1 "$tree" --workers 1
    counts_are 8 8 2 6
    output_has 'the counts agree'
    output_has '  gone: vanished'
    output_has '  sub/file: vanished'
    output_has '  folder: became a folder'
    output_has '  link: became a symbolic link'
    output_has '  fifo: became a special file'
    output_has '  swapped/file: a folder on its path became something else'
    output_has 'sha256sum -c does not confirm it'
    output_has '  late: FAILED'
    last_line_is 'exit status 1: some could not be hashed; the manifest is not confirmed'
    output_lacks 'stays:'
    nothing_left
}

case_repeated() {
    make_files 20
    ln "$tree/0/file 1" "$tree/hard link"
    worker_is <<'TEXT'
status=0
"$real" "$@" || status=$?
cp "$part" "$part.copy"
cat "$part.copy" >>"$part"
printf '0123456789abcdef' >>"$part"
exit "$status"
TEXT
    quickstart 0 "$tree"
    counts_are 21 21 21 0
    output_has 'the counts agree'
    nothing_left
}

# Workers that claim a job and die of it.
case_killed() {
    make_files 30
    worker_is <<TEXT
cli=$(printf '%q' "$(server_cli)")
TEXT
    cat >>"$scratch/bin/quickstart_worker" <<'TEXT'
if [[ $part == */1.part || -e $scratch/all ]]; then
    while [[ ! -e $(option --finished) ]]; do sleep 0.02; done
    base='emq:{quickstart}:'
    until [[ -n $("$cli" -s "$(option --socket)" EMQ.CLAIM 3 "${base}pending" "${base}active" "$base" 1000) ]]
    do
        sleep 0.02
    done
    : >"$scratch/claimed"
    kill -KILL "$$"
fi
# one job is left for the other
while [[ ! -e $scratch/claimed ]]; do sleep 0.02; done
exec "$real" "$@"
TEXT
    quickstart 1 "$tree" --workers 2
    error_has 'worker 1 was ended by signal 9'
    counts_are 30 30 30 0 # the other one has done its job
    output_has 'the counts agree'
    output_has 'manifest: verified with sha256sum -c'
    last_line_is 'exit status 1: worker 1 was ended by signal 9'
    ! grep -q 'quickstart.sh: line' "$scratch/err" || die "bash tells of the end in its own words"
    nothing_left
    : >"$scratch/all"
    quickstart 1 "$tree" --workers 2
    error_has 'worker 2 was ended by signal 9'
    output_has 'THE COUNTS DO NOT AGREE'
    output_has '2 still leased'
    output_has '28 still pending: no worker was left to claim them'
    grep -qxE 'exit status 1: (worker [12] was ended by signal 9; ){2}the counts do not agree; jobs are still leased; jobs are still pending' \
        "$scratch/out" || die "not every reason is told"
    nothing_left
}

# The quickstart kills one: all is done all the same, and each file has its line once.
case_kill_one() {
    make_files 600
    quickstart 0 "$tree" --workers 3 --kill-one --manifest "$scratch/manifest"
    grep -qE 'worker 1 was killed, with [1-9][0-9]* jobs in its hands' "$scratch/err" ||
        die "it had no job in its hands"
    grep -qE 'worker 1 +killed' "$scratch/out" || die "the report does not tell of it"
    counts_are 600 600 600 0
    output_has 'the counts agree'
    output_has 'manifest: verified with sha256sum -c'
    output_lacks 'exit status'
    [[ $(wc -l <"$scratch/manifest") == 600 ]] || die "not 600 lines"
    (cd "$tree" && find . -type f -printf '%P\0' | sort -z | xargs -0 sha256sum --) |
        sort | diff - <(sort "$scratch/manifest") || die "sha256sum writes other lines"
    nothing_left
    rm -r "$tree/0" "$tree/1"
    quickstart 1 "$tree" --kill-one
    error_has 'there was no job for it'
    counts_are 0 0 0 0 # the report is whole all the same
    last_line_is 'exit status 1: no worker was killed: there was no job for it'
    printf x >"$tree/one"
    quickstart 0 "$tree" --kill-one
    counts_are 1 1 1 0
    quickstart 2 "$tree" --kill-one --workers 1
    error_has 'needs a second worker'
    nothing_left
}

# A server that goes away in the middle: everybody gives up, and says so.
case_lost_server() {
    make_files 30
    worker_is <<'TEXT'
if [[ $part == */1.part ]]; then
    while [[ ! -e $(option --finished) ]]; do sleep 0.02; done
    kill -KILL "$(<"$(dirname "$(option --socket)")/pid")"
fi
while kill -0 "$(<"$(dirname "$(option --socket)")/pid")" 2>/dev/null; do sleep 0.02; done
exec "$real" --patience 1 "$@"
TEXT
    quickstart 1 "$tree"
    error_has 'worker 1 gave up (exit status 3)'
    error_has 'worker 2: worker: cannot connect'
    error_has 'the server no longer answers'
    nothing_left
}

# The producer's connection is cut again and again: each file is still one job, no more, no fewer.
case_reconnecting() {
    make_files 3000
    worker_is <<TEXT
cli=$(printf '%q' "$(server_cli)")
TEXT
    cat >>"$scratch/bin/quickstart_worker" <<'TEXT'
while [[ ! -e $(option --finished) ]]; do
    "$cli" -s "$(option --socket)" CLIENT KILL TYPE normal >>"$scratch/cuts"
    sleep 0.01
done
exec "$real" "$@"
TEXT
    quickstart 0 "$tree" --workers 1
    grep -q '^[1-9]' "$scratch/cuts" || die "no connection was cut"
    counts_are 3000 3000 3000 0
    nothing_left
}

case_many() {
    local count=${EMQ_TEST_FILES:-2000}
    make_files "$count"
    quickstart 0 "$tree"
    counts_are "$count" "$count" "$count" 0
    grep -E 'jobs/s|seconds' "$scratch/out"
    nothing_left
}

# ---- being stopped ----

start_quickstart() { # start_quickstart ARGUMENT...: in the background, with Ctrl-C as a terminal has it
    : >"$scratch/err"
    env --default-signal=INT,QUIT "$source_dir/quickstart.sh" "$@" \
        >"$scratch/out" 2>"$scratch/err" </dev/null &
    running=$!
    background=("$running")
}

stopped_by() { # stopped_by SIGNAL
    local result=0
    local -A expected=([HUP]=129 [INT]=130 [TERM]=143)
    kill "-$1" "$running"
    wait "$running" || result=$?
    background=()
    ((result == expected[$1])) || die "exit status $result after SIG$1"
    nothing_left
    tree_is_as_before
}

case_interrupt() {
    make_files 3000
    remember_tree
    local signal
    # anywhere: while the server starts, while jobs are enqueued and worked
    for signal in INT TERM HUP; do
        start_quickstart "$tree"
        wait_for exists "$scratch/tmp/*/server/facts"
        stopped_by "$signal"
        start_quickstart "$tree" --keep
        wait_for exists "$scratch/tmp/*/out/producer.report"
        stopped_by "$signal"
        start_quickstart "$tree"
        wait_for exists "$scratch/tmp/*/out/finished"
        stopped_by "$signal"
    done
    # workers that would go on for ever, and one that does not listen
    worker_is <<'TEXT'
[[ $part != */1.part ]] || trap '' TERM INT HUP
exec -a "sleep $part" sleep 600
TEXT
    for signal in INT TERM; do
        start_quickstart "$tree"
        wait_for exists "$scratch/tmp/*/out/finished"
        stopped_by "$signal"
    done
}

# The real build, in folders of its own, stopped in the middle.
case_build() {
    unset EMQ_BIN_DIR EMQ_MODULE
    printf x >"$tree/file"
    mkdir "$tree/build"
    remember_tree
    export EMQ_BUILD_DIR=$scratch/build
    start_quickstart "$tree"
    wait_for exists "$scratch/build/quickstart/CMakeCache.txt"
    stopped_by TERM
    start_quickstart "$tree"
    wait_for is_compiling
    stopped_by INT
    # a build folder below DIR stays as it is
    export EMQ_BUILD_DIR=$tree/build
    start_quickstart "$tree"
    wait_for exists "$scratch/tmp/*/build/CMakeCache.txt"
    error_has 'lies below DIR: building in a temporary folder'
    stopped_by INT
}

is_compiling() { [[ -n $(find "$scratch/build" -name '*.o' -print -quit) ]]; }

case_pipe() {
    make_files 10
    "$source_dir/quickstart.sh" "$tree" 2>"$scratch/err" </dev/null | head -n 1 >"$scratch/out" || true
    output_has 'jobs '
    wait_for nothing_running
    nothing_left
}
nothing_running() { [[ -z $(leftover_processes) ]]; }

case_keep() {
    make_files 5
    quickstart 0 "$tree" --keep
    local ask stop answer
    output_has 'the server is still running:'
    ask=$(sed -n 's/^  \(.*HGETALL.*\)/\1/p' "$scratch/out")
    answer=$(bash -c "$ask" </dev/null)
    [[ $answer == $'count\n5' ]] || die "the kept server answers: $answer"
    ask=$(sed -n 's/^  \(.*EMQ.VERSION\)$/\1/p' "$scratch/out")
    bash -c "$ask" </dev/null | grep enqueue >/dev/null || die "the kept server has no module"
    (cd "$tree" && sha256sum -c --quiet "$(sed -n 's/^manifest: \(\/.*\)/\1/p' "$scratch/out")")
    stop=$(sed -n 's/^  \(.*server.sh stop .*\)/\1/p' "$scratch/out")
    bash -c "$stop" </dev/null
    nothing_left
}

# ---- the command line ----

case_arguments() {
    local workers
    printf x >"$tree/file"
    quickstart 0 --help
    output_has 'Usage: ./quickstart.sh'
    for workers in 0 -1 abc 65 1000 99999999999999999999 '' 1.5 0x2; do
        quickstart 2 "$tree" --workers "$workers"
        error_has '--workers takes a number from 1 to 64'
    done
    quickstart 2 "$tree" --workers
    quickstart 2 "$tree" --unknown
    error_has 'unknown option: --unknown'
    quickstart 2 "$scratch/missing"
    error_has "no such folder: $scratch/missing"
    quickstart 2 "$tree/file"
    error_has 'not a folder'
    quickstart 2 ''
    quickstart 2 "$tree" "$tree"
    quickstart 2 /
    error_has 'nothing is written below DIR'
    quickstart 2 "$tree" --manifest "$tree/manifest"
    error_has 'lies below DIR'
    ln -s "$tree" "$scratch/link"
    quickstart 2 "$tree" --manifest "$scratch/link/manifest"
    error_has 'lies below DIR'
    quickstart 2 "$tree" --manifest "$scratch/missing/manifest"
    error_has 'no folder'
    quickstart 2 "$tree" --manifest "$scratch/bin"
    error_has 'is a folder'
    without_privileges
    mkdir -m 000 "$scratch/closed"
    quickstart 2 "$scratch/closed"
    error_has "the folder can't be read"
    through=()
    [[ $(ls -A "$tree") == file ]] || die "something was written below DIR"
    # names that look like options, or end in a line break
    mkdir "$scratch/--keep" "$scratch/-" "$scratch/"$'end\n'
    printf y >"$scratch/--keep/a"
    printf y >"$scratch/-/b"
    printf y >"$scratch/"$'end\n'"/c"
    cd "$scratch"
    quickstart 0 --workers=03 -- --keep
    output_has 'worker 3'
    output_lacks 'still running'
    quickstart 0 -
    counts_are 1 1 1 0
    quickstart 0 $'end\n'
    counts_are 1 1 1 0
    nothing_left
}

# Nothing is written below DIR, whatever lies there.
case_outside() {
    local cache
    cache=$(dirname "$("$source_dir/tools/get-valkey.sh" --flavour "$flavour" --print server)")
    mkdir -p "$tree/tmp" "$tree/cache/emq"
    printf x >"$tree/file"
    [[ ! -f $cache/stamp ]] || ln -s "$cache" "$tree/cache/emq/$(basename "$cache")"
    remember_tree
    TMPDIR=$tree/tmp XDG_CACHE_HOME=$tree/cache quickstart 0 "$tree"
    error_has "$tree/tmp can't be used"
    tree_is_as_before
    counts_are 1 1 1 0
    cd "$tree"
    quickstart 0 ../tree
    counts_are 1 1 1 0
    # a name with = and a space in the way of every path
    mkdir "$scratch/tmp/a = b"
    TMPDIR="$scratch/tmp/a = b" quickstart 0 "$tree"
    rmdir "$scratch/tmp/a = b"
    tree_is_as_before
    nothing_left
}

# Without DIR: this repository, as git tracks it, or as it was copied.
case_tracked() {
    local copy=$scratch/copy
    mkdir -p "$copy/examples/quickstart" "$copy/build/x" "$copy/sub"
    cp -r "$source_dir/quickstart.sh" "$source_dir/tools" "$copy"
    cp "$source_dir/examples/quickstart/merge.sh" "$copy/examples/quickstart"
    printf a >"$copy/build/x/built"
    printf b >"$copy/sub/"$'tracked \\ name\n'
    ln -s quickstart.sh "$copy/sub/link"
    git -C "$copy" init -q
    git -C "$copy" add quickstart.sh sub examples tools
    printf c >"$copy/untracked"
    local count
    count=$(find "$copy/quickstart.sh" "$copy/sub" "$copy/examples" "$copy/tools" -type f -printf x | wc -c)
    source_dir=$copy GIT_DIR=/nowhere quickstart 0 --manifest "$scratch/manifest"
    counts_are "$count" "$count" "$count" 0
    ! grep -q untracked "$scratch/manifest" || die "an untracked file was hashed"
    # from elsewhere, and with a tracked file that is gone
    rm "$copy/sub/"$'tracked \\ name\n'
    source_dir=$copy quickstart 1
    counts_are $((count - 1)) $((count - 1)) $((count - 1)) 0
    output_has 'could not be looked at:'
    output_has '  sub/tracked \\ name\n: vanished'
    # a copy without .git
    rm -rf "$copy/.git"
    source_dir=$copy quickstart 0 --manifest "$scratch/manifest"
    error_has 'this copy has no .git'
    counts_are "$count" "$count" "$count" 0
    grep -q untracked "$scratch/manifest" || die "the copy's own file is missing"
    ! grep -q built "$scratch/manifest" || die "the build folder was hashed"
    nothing_left
}

# ---- the programs by themselves ----

case_merge() {
    local a b
    a=$(printf 'a%.0s' {1..64})
    b=$(printf 'b%.0s' {1..64})
    printf '%s  x y\n%s  twice\n\\%s  n\\nl\n%s  \377\n%s  two  \n' "$a" "$a" "$a" "$a" "$a" >"$tree/1.part"
    printf '%s  twice\n%s  two  \n%s  bad\n%s  torn' "$a" "$b" "$a" "$a" >"$tree/2.part"
    printf 'vanished\tbad\nvanished\tx\ty\nPermission denied\tx\ty\nvani' >"$tree/1.failed"
    "$source_dir/examples/quickstart/merge.sh" "$tree"
    printf '\\%s  n\\nl\n%s  twice\n%s  x y\n%s  \377\n' "$a" "$a" "$a" "$a" | cmp - "$tree/manifest"
    printf 'vanished\tbad\nchanged between two tries\ttwo  \nvanished\tx\ty\n' | cmp - "$tree/failures"
    rm "$tree"/*
    "$source_dir/examples/quickstart/merge.sh" "$tree"
    [[ ! -s $tree/manifest && ! -s $tree/failures ]] || die "nothing merges to something"
}

# Payloads that no producer of ours makes: the worker opens nothing outside of its folder.
case_payloads() {
    local payload number=0 base='emq:{files}:' id
    local payloads=('' / /etc/passwd ../secret sub/../../secret ./file sub//file sub/ . .. sub/.. link/file)
    private_server
    printf secret >"$scratch/secret"
    mkdir "$tree/sub"
    printf x >"$tree/sub/file"
    ln -s sub "$tree/link"
    for payload in "${payloads[@]}" sub/file "$(printf 'n%.0s' {1..300})"; do
        number=$((number + 1))
        id=$(printf 'JOB0000000%04d' "$number")
        "$cli" -s "$socket" EMQ.ENQUEUE 2 "${base}job:$id" "${base}pending" "$id" "$payload" >/dev/null
    done
    printf 'sub/file\0x' | "$cli" -s "$socket" -x EMQ.ENQUEUE 2 "${base}job:JOB00000009999" \
        "${base}pending" JOB00000009999 >/dev/null
    local result=0
    "$examples/quickstart_worker" --socket "$socket" --part "$scratch/part" --failures "$scratch/failed" \
        --finished "$scratch" "$tree" >"$scratch/out" || result=$?
    ((result == 1)) || die "exit status $result"
    (cd "$tree" && sha256sum sub/file) | cmp - "$scratch/part"
    [[ $(grep -c '^not a path below the folder' "$scratch/failed") == "${#payloads[@]}" ]] ||
        die "$(cat -A "$scratch/failed")"
    grep -q '^File name too long' "$scratch/failed" || die "the long name is not listed"
    output_has 'jobs=15'
    "$examples/quickstart_counts" --socket "$socket" >"$scratch/out"
    output_has 'pending=0'
    output_has 'active=0'
    output_has 'completed=15'
}

# A wrong word is told, with what a terminal would obey in it escaped.
expect_escaped() {
    local program=$1 word=$2 result=0
    "$examples/quickstart_$program" "$word" 2>"$scratch/err" || result=$?
    ((result == 2)) || die "$program: exit status $result"
    error_has "$3"
    if LC_ALL=C grep '[^ -~]' "$scratch/err" >/dev/null; then
        die "$program lets control characters through"
    fi
}

# Options, signals and errors of the programs.
case_examples() {
    local program result
    for program in producer worker counts; do
        "$examples/quickstart_$program" --help | grep '^Usage: ' >/dev/null || die "$program has no help"
        result=0
        "$examples/quickstart_$program" --unknown 2>"$scratch/err" || result=$?
        ((result == 2)) || die "$program: exit status $result"
        error_has '--unknown is no option'
        expect_escaped "$program" $'--un\e[2Jknown' '--un\x1b[2Jknown is no option'
        expect_escaped "$program" $'-\e[2J' '-\x1b[2J is no option'
        expect_escaped "$program" $'--help=\x9b2J' '--help=\x9b2J is no option, or takes no value'
        expect_escaped "$program" --port=$'1\e' 'not 1\x1b'
        expect_escaped "$program" --queue=$'q\e' 'q\x1b'
        result=0
        "$examples/quickstart_$program" --port 2>"$scratch/err" || result=$?
        ((result == 2)) || die "$program: exit status $result"
        error_has '--port takes a value'
        result=0
        "$examples/quickstart_$program" --port 65536 2>"$scratch/err" || result=$?
        ((result == 2)) || die "$program: exit status $result"
        error_has '--port is a number from 1 to 65535'
        result=0
        "$examples/quickstart_$program" --queue 'not a queue' 2>"$scratch/err" || result=$?
        ((result == 2)) || die "$program: exit status $result"
    done
    result=0
    "$examples/quickstart_counts" --socket "$scratch/missing" --patience 0 2>"$scratch/err" || result=$?
    ((result == 3)) || die "counts without a server: exit status $result"
    error_has 'counts: cannot connect'
    private_server
    local files=(--part "$scratch/part" --failures "$scratch/failed")
    # a part that can't be written: the job is not completed
    printf x >"$tree/file"
    "$examples/quickstart_producer" --socket "$socket" --exclude other "$tree" >"$scratch/out"
    output_has 'files=1'
    result=0
    "$examples/quickstart_worker" --socket "$socket" --part /dev/full --failures "$scratch/failed" \
        "$tree" >/dev/null 2>"$scratch/err" || result=$?
    ((result == 3)) || die "a full disk: exit status $result"
    error_has 'worker: cannot write its part: No space left on device'
    "$examples/quickstart_counts" --socket "$socket" >"$scratch/out"
    output_has 'pending=1' # it was given back
    output_has 'active=0'
    output_has 'completed=0'
    # a worker without --finished waits for jobs, and ends when it is told to
    "$examples/quickstart_worker" --socket "$socket" "${files[@]}" "$tree" >"$scratch/out" &
    background=("$!")
    printf more >"$tree/more"
    "$examples/quickstart_producer" --socket "$socket" --exclude file "$tree" >/dev/null
    wait_for grep -q more "$scratch/part"
    kill -TERM "${background[0]}"
    result=0
    wait "${background[0]}" || result=$?
    background=()
    ((result == 143)) || die "a stopped worker: exit status $result"
    output_has 'jobs=2'
}

# Jobs by hand; the queue is the programs' own.
admit() { # admit ID PAYLOAD
    "$cli" -s "$socket" EMQ.ENQUEUE 2 "emq:{files}:job:$1" 'emq:{files}:pending' "$1" "$2" >/dev/null
}
status_is() { # status_is STATUS [DIR]: what server.sh says of one that does not run
    local result=0
    "$source_dir/tools/server.sh" status "${@:2}" >/dev/null 2>&1 || result=$?
    ((result == $1)) || die "server.sh status ends with $result: ${2:-}"
}
unblock_one() {
    local id
    for id in $("$cli" -s "$socket" CLIENT LIST | sed -n 's/^id=\([0-9]*\) .* name=worker .*/\1/p'); do
        [[ $("$cli" -s "$socket" CLIENT UNBLOCK "$id" ERROR) != 1 ]] || return 0
    done
    return 1
}

# A worker that waits takes back what a dead one held, promotes what is due, and outlives the end of its
# wait and of the server.
case_waiting() {
    local base='emq:{files}:' id=JOB00000000002 result=0
    private_server
    printf x | tee "$tree/stalled" "$tree/scheduled" "$tree/unblocked" >"$tree/restarted"
    admit JOB00000000001 stalled
    "$cli" -s "$socket" EMQ.CLAIM 3 "${base}pending" "${base}active" "$base" 1 >/dev/null
    "$cli" -s "$socket" EMQ.SCHEDULE 2 "${base}job:$id" "${base}schedule" "$id" scheduled in 0 >/dev/null
    "$examples/quickstart_worker" --socket "$socket" --part "$scratch/part" --failures "$scratch/failed" \
        "$tree" >"$scratch/out" 2>"$scratch/err" &
    background=("$!")
    wait_for grep -q stalled "$scratch/part"
    wait_for grep -q scheduled "$scratch/part"
    wait_for unblock_one
    admit JOB00000000003 unblocked
    wait_for grep -q unblocked "$scratch/part"
    "$source_dir/tools/server.sh" status "$scratch/server" | grep -xF "socket=$socket" >/dev/null || die 'no status'
    "$source_dir/tools/server.sh" stop "$scratch/server" --keep
    status_is 1 "$scratch/server"
    status_is 1 "$scratch/removed"
    status_is 2
    "$source_dir/tools/server.sh" start --dir "$scratch/server" >/dev/null
    admit JOB00000000004 restarted
    wait_for grep -q restarted "$scratch/part"
    kill -TERM "${background[0]}"
    wait "${background[0]}" || result=$?
    background=()
    ((result == 143)) || die "exit status $result"
    output_has 'jobs=4'
    "$examples/quickstart_counts" --socket "$socket" >"$scratch/out"
    output_has 'active=0'
    output_has 'scheduled=0'
    output_has 'completed=4'
}

"case_$case"
printf 'passed: %s\n' "$case"
