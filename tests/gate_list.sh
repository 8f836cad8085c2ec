#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The load gate must ask for each host function that the module calls, and for no other, and for each
# command that it replicates.
set -euo pipefail
module=$1
# not asked for: what makes the look-up itself possible, this module's own symbols, and what is optional
exceptions='^(GetApi|Init|OnLoad|OnUnload|ACLCheckPermissions)$'
called=$(grep -ohE 'ValkeyModule_[A-Z][A-Za-z0-9]*' "$module"/*.c | sed 's/^ValkeyModule_//' |
    grep -vE "$exceptions" | sort -u)
listed=$(sed -n '/emq_gate_apis\[\] = {/,/NULL/p' "$module/gate.c" | sed -n 's/^ *"\(.*\)",$/\1/p' | sort -u)
diff <(echo "$called") <(echo "$listed")
replicated=$(tr -d '\n' <"$module/effects.c" | grep -oE '[Rr]eplicate\([^"]*"[A-Z]+"' | sed 's/.*"\([A-Z]*\)"/\1/' | sort -u)
asked=$(sed -n '/emq_gate_commands\[\] = {/,/NULL/p' "$module/gate.c" | grep -oE '"[A-Z]+"' | tr -d '"' | sort -u)
missing=$(comm -23 <(echo "$replicated") <(echo "$asked"))
[[ -z $missing ]] || {
    echo "replicated, but the gate does not ask for: $missing"
    exit 1
}
echo "$(wc -l <<<"$called") functions, $(wc -w <<<"$replicated") commands: all asked for"
