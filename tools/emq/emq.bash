# SPDX-License-Identifier: Apache-2.0
# Completion of `emq` for bash: its verbs and options, as the tool itself lists them.

_emq() {
    local current=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]:-} words
    COMPREPLY=()
    if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ $verb == help && $current != -* ]]; }; then
        words=$("${COMP_WORDS[0]}" help --list 2>/dev/null | cut -f 1) || return 0
    elif [[ $current == -* ]]; then
        words=$("${COMP_WORDS[0]}" help "$verb" --list 2>/dev/null | cut -f 1 | tr -d =) || return 0
    else
        return 0 # arguments are queues, ids and texts of a server that is not asked
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -o default -F _emq emq
