# SPDX-License-Identifier: Apache-2.0
# Completion of `emq` for bash: its verbs, options and arguments, as the tool itself tells them, and
# the queues of the server in EMQ_URL, for which it is given two seconds.

# The argument that is typed: how the verb calls it, "" where there is none.
_emq_argument() { # _emq_argument TOOL VERB OPTIONS
    local usage word i count=0 last=
    read -ra usage < <("$1" help "$2" 2>/dev/null | sed -n '1s/.*\[OPTION\]\.\.\.//p') || return 0
    for ((i = 2; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $last == --* ]] && grep -qx -- "$last=" <<<"$3"; then
            word=--value
        elif [[ $word == -- ]]; then
            return 0 # what follows is a command
        fi
        [[ $word == -* ]] || count=$((count + 1))
        last=$word
    done
    grep -qx -- "$last=" <<<"$3" && return 0
    ((count < ${#usage[@]})) || [[ ${usage[*]} != *... ]] || count=$((${#usage[@]} - 1))
    printf '%s' "${usage[count]:-}"
}

_emq() {
    local tool=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]:-} words options
    COMPREPLY=()
    if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ $verb == help && $current != -* ]]; }; then
        words=$("$tool" help --list 2>/dev/null | cut -f 1) || return 0
    else
        options=$("$tool" help "$verb" --list 2>/dev/null | cut -f 1) || return 0
        if [[ $current == -* ]]; then
            words=$(tr -d = <<<"$options")
        else
            words=$(_emq_argument "$tool" "$verb" "$options")
            case $words in
            QUEUE | QUEUE... | '[QUEUE]')
                [[ " ${COMP_WORDS[*]} " != *' --url'* ]] || return 0 # another server, perhaps
                words=$(timeout 2 "$tool" queues --names 2>/dev/null) || return 0
                ;;
            [a-z]*'|'*) words=${words//|/ } ;;
            *) return 0 ;;
            esac
        fi
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _emq emq
