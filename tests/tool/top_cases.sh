# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# The cases of `emq top`: reading by reading, and on a terminal that tmux plays. tool_test.sh
# sources it.

# Reading by reading: rates, order, filter, flags, and a queue that goes.
case_top() {
    local i
    a_server
    emq 2 top </dev/null
    error_has '--batch'
    emq 2 top --batch --sort size
    emq 2 top --batch --delay 1
    emq 2 top -n 0
    emq 3 top -n 1 --url "unix://$scratch/nothing"
    emq 0 top -n 1 --json
    json_is 'length == 1 and .[0].queues == [] and .[0].time_ms > 0'
    emq 0 enqueue many 1 2 3 -q
    emq 0 enqueue few 1 -q
    emq 0 claim few --lease 1ms
    emq 0 schedule late x --at @1000000000 -q
    emq 0 schedule late x --in 1h -q
    emq 0 pause still
    emq 0 top -n 1
    [[ $(sed -n 2p "$scratch/out") =~ ^QUEUE\ +PENDING\ +OLDEST\ +ACTIVE\ +SCHED\ +DEAD\ +DONE/s\ +DIED/s$ ]] ||
        die 'the header is another'
    [[ $(sed -n '3,6s/ .*//p' "$scratch/out" | tr '\n' ' ') == 'many few late still ' ]] || die 'the order is another'
    grep -Eqx 'many +3 +[0-9.]+s +0 +0 +0 +- +-' "$scratch/out" || die 'many has other numbers'
    grep -Eqx 'late +0 +- +0 +2! +0 +- +-  overdue' "$scratch/out" || die 'late is not overdue'
    output_has '  paused'
    emq 0 top -n 1 --sort name --match '[fm]*' --json
    json_is '.[0].queues | map(.queue) == ["few", "many"] and .[0].active == 1 and .[0].completed_rate == null'
    emq 0 top -n 1 --sort scheduled --json
    json_is '.[0].queues | .[0].queue == "late" and .[0].overdue and (.[1].overdue | not)'
    # each reading takes four sizes of four queues, and nothing looks at all keys at once
    "$cli" -s "$socket" CONFIG RESETSTAT >/dev/null
    emq 0 top -n 3 --delay 100ms
    "$cli" -s "$socket" INFO commandstats >"$scratch/out"
    output_has 'cmdstat_zcard:calls=48,'
    output_has 'cmdstat_scan:'
    output_lacks 'cmdstat_keys:'
    has_lapsed() { "$tool" top -n 1 --json --match few | jq -e '.queues[0].lapsed'; }
    wait_for has_lapsed
    # a second reading tells how fast it goes; what was removed is gone, what came is there
    "$tool" top --json --delay 300ms >"$scratch/out" 2>"$scratch/err" &
    background=("$!")
    readings() { (($(wc -l <"$scratch/out") >= $1)); }
    wait_for readings 2
    "$cli" -s "$socket" --scan --pattern 'emq:{many}:*' | xargs "$cli" -s "$socket" DEL >/dev/null
    "$cli" -s "$socket" HSET 'emq:{late}:metrics:completed' count 30 >/dev/null
    "$cli" -s "$socket" HSET 'emq:{late}:metrics:failed' count 3 >/dev/null
    "$cli" -s "$socket" ZADD 'emq:{new}:dead' 0 JOB00000000001 >/dev/null
    seen() { jq -e -s "$1" "$scratch/out" >/dev/null; }
    wait_for seen '.[-1].queues | map(.queue) | sort == ["few", "late", "new", "still"]'
    seen 'map(.queues[] | select(.queue == "late")) as $l | ($l | map(.completed_rate // 0) | max) as $done |
        ($l | map(.failed_rate // 0) | max) as $died | $done > 0 and $done <= 100 and ($done / $died | . > 9.99 and . < 10.01)' ||
        die 'the rates are others'
    kill -TERM "${background[0]}"
    i=0
    wait "${background[0]}" || i=$?
    background=()
    ((i == 143)) || die "exit status $i"
    # a damaged queue, or one that is forbidden, hides no other one; the server tells why
    "$cli" -s "$socket" SET 'emq:{bad}:active' x >/dev/null
    emq 0 top -n 1
    grep -q '^bad  .*WRONGTYPE' "$scratch/out" || die 'the words of the server are not told'
    output_has 'new '
    "$cli" -s "$socket" ACL SETUSER half on '>x' +emq.version +get +scan +zcard +zrange +hgetall \
        '%R~{emq}:version' '~emq:{new}:*' >/dev/null
    emq 0 top -n 1 --match '[ln]*' --sort name --json --url "unix://half:x@$socket"
    json_is '.[0].queues | (.[0] | .queue == "late" and (.detail | startswith("NOPERM"))) and .[1].dead == 1'
    emq 0 top -n 1 --match '[ln]*' --sort name --url "unix://half:x@$socket"
    grep -q '^late  .*NOPERM' "$scratch/out" || die 'the words of the server are not told'
    # whoever may not look is told so
    "$cli" -s "$socket" ACL SETUSER blind on '>x' +emq.version +get '%R~{emq}:version' >/dev/null
    emq 4 top -n 1 --url "unix://blind:x@$socket"
    error_has 'cannot read the queues'
}

# ---- on a terminal ----

screen() { tmux -S "$scratch/tmux" -f /dev/null "$@"; }

# A shell on a terminal of 80 columns and 24 lines, which has no other one's settings.
a_terminal() {
    command -v tmux >/dev/null || { echo 'no tmux: skipped' && exit 77; }
    a_server
    screen new-session -d -x 80 -y 24 "env PS1='ready> ' EMQ_URL='$EMQ_URL' bash --norc --noprofile"
    background=("$(screen display-message -p '#{pid}')")
    wait_for shows 'ready>'
}
shows() { screen capture-pane -p | grep -E -- "$1" >/dev/null; }
shows_not() { ! shows "$1"; }
row_is() { [[ $(screen capture-pane -p | sed -n "$1p") =~ $2 ]]; } # row_is LINE PATTERN
keys() { screen send-keys "$@"; }
start_top() { # start_top ARGUMENT...
    keys -l "clear; stty -g; $tool top $*; echo status=\$?; stty -g"
    keys Enter
    wait_for shows "$(printf '%s' 'q quit')"
}
# The terminal is what it was, and the shell's lines are there again.
terminal_is_sane() { # terminal_is_sane STATUS
    wait_for shows "^status=$1\$"
    wait_for shows '^ready> *$'
    shows_not 'q quit' || die 'the screen is still there'
    [[ $(screen capture-pane -p | grep -Ec '^[0-9a-f:]{60,}') == 2 ]] || die "two lines of stty: $(screen capture-pane -p)"
    [[ $(screen capture-pane -p | grep -E '^[0-9a-f:]{60,}' | sort -u | wc -l) == 1 ]] || die 'the terminal has other settings'
    [[ $(screen display-message -p '#{alternate_on}#{cursor_flag}') == 01 ]] || die 'no cursor, or another screen'
}

case_top_screen() {
    a_terminal
    emq 0 enqueue alpha 1 2 3 -q
    emq 0 enqueue beta 1 -q
    "$cli" -s "$socket" ZADD 'emq:{gamma}:dead' 0 JOB00000000001 >/dev/null
    emq 0 pause beta
    start_top
    wait_for row_is 4 '^alpha +3 +[0-9]'
    row_is 1 "^emq top  $socket .*Z\$" || die 'no title'
    row_is 2 '^3 queues  4 pending  0 active  0 sched  1 dead' || die 'no totals'
    row_is 3 '^QUEUE +\*PENDING +OLDEST +ACTIVE +SCHED +DEAD +DONE/s DIED/s' || die 'no header'
    row_is 5 '^beta +1 .* paused$' || die 'beta is not paused'
    row_is 23 '^alpha: ' || die 'the first one is not selected'
    # it goes on
    emq 0 enqueue beta 2 3 4 -q
    wait_for row_is 4 '^beta +4 '
    "$cli" -s "$socket" HSET 'emq:{alpha}:metrics:completed' count 50 >/dev/null
    wait_for row_is 5 '^alpha +3 .* [1-9][0-9.]* +0$'
    "$cli" -s "$socket" DEL 'emq:{gamma}:dead' >/dev/null
    wait_for shows_not '^gamma'
    # one that can't be read
    "$cli" -s "$socket" SET 'emq:{beta}:active' x >/dev/null
    wait_for shows '^beta +a key of the queue has another type'
    keys n Down
    wait_for row_is 23 '^beta: WRONGTYPE '
    keys q
    terminal_is_sane 0
    # a signal
    start_top
    kill -TERM "$(pgrep -P "$(screen display-message -p '#{pane_pid}')")"
    terminal_is_sane 143
    start_top
    keys C-c
    terminal_is_sane 130
    start_top
    keys 'C-\'
    terminal_is_sane 131
    # a terminal that nobody knows
    keys -l "clear; TERM=none-such $tool top; echo status=\$?"
    keys Enter
    wait_for shows '^status=2$'
    shows 'cannot draw'
}

case_top_keys() {
    local i
    a_terminal
    for ((i = 10; i < 60; i++)); do printf 'ZADD emq:{queue-%d}:dead 0 a\n' "$i"; done | "$cli" -s "$socket" >/dev/null
    emq 0 enqueue queue-30 x -q
    "$cli" -s "$socket" ZADD 'emq:{queue-31}:dead' 0 b 0 c >/dev/null
    start_top
    wait_for row_is 4 '^queue-30 +1 '
    keys d
    wait_for row_is 4 '^queue-31 '
    row_is 3 ' \*DEAD ' || die 'DEAD is not marked'
    keys r
    wait_for row_is 3 ' \^DEAD '
    wait_for row_is 4 '^queue-59 '
    keys '<'
    wait_for row_is 3 ' \*SCHED '
    keys n
    wait_for row_is 4 '^queue-10 '
    # moving, scrolling, and the order has no hold on who is selected
    keys Down Down
    wait_for row_is 23 '^queue-12: '
    keys End
    wait_for row_is 22 '^queue-59 '
    wait_for row_is 23 '^queue-59: '
    keys n
    wait_for row_is 4 '^queue-59 '
    wait_for row_is 23 '^queue-59: '
    keys n PageDown
    wait_for row_is 23 '^queue-59: '
    keys Home
    wait_for row_is 23 '^queue-10: '
    keys PageDown
    wait_for row_is 23 '^queue-29: '
    # filter: as it is typed, as a pattern, kept, cleared
    keys / 3 1
    wait_for row_is 2 '^1 queue of 50: \*31\* '
    wait_for row_is 4 '^queue-31 +0 .* 3 '
    keys BSpace BSpace
    keys -l '*-[12]0'
    wait_for row_is 2 '^2 queues of 50: '
    keys Enter
    wait_for row_is 24 '^q quit'
    row_is 5 '^queue-20 ' || die 'the pattern is not kept'
    keys / x
    wait_for shows 'no queue matches'
    keys Escape
    wait_for row_is 2 '^50 queues  '
    # help
    keys h
    wait_for shows 'any key goes back'
    keys x
    wait_for row_is 24 '^q quit'
    # another size, also one that is hardly any
    screen resize-window -x 120 -y 30
    wait_for row_is 30 '^q quit'
    row_is 28 '^queue-' || die 'the rows do not fill it'
    screen resize-window -x 40 -y 6
    wait_for row_is 6 '^queue-'
    screen resize-window -x 3 -y 1
    screen resize-window -x 80 -y 24
    wait_for row_is 24 '^q quit'
    # held
    keys Space
    wait_for row_is 1 'HELD at '
    keys Space
    wait_for row_is 1 "^emq top  .* [0-9:]{8}Z\$"
    keys q
    wait_for shows '^status=0$'
}

# The server goes and comes back; the numbers of before stay to be seen.
case_top_broken() {
    a_terminal
    emq 0 enqueue alpha 1 2 3 -q
    start_top
    wait_for row_is 4 '^alpha +3 '
    "$source_dir/tools/server.sh" stop "$scratch/server" --keep
    wait_for row_is 1 '^NO CONNECTION for [0-9]+s, trying again: '
    row_is 4 '^alpha +3 ' || die 'the numbers are gone'
    "$source_dir/tools/server.sh" start --dir "$scratch/server" >/dev/null
    wait_for row_is 1 '^emq top  '
    emq 0 enqueue beta 1 -q
    wait_for shows '^beta +1 '
    # a right that is taken away is the end, and is told
    "$cli" -s "$socket" ACL SETUSER default -scan >/dev/null
    terminal_is_sane 4
    shows 'cannot read the queues'
}
