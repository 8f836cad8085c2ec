#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each public header compiles by itself, as C11 and as C++11, and needs nothing but the C standard
# library.
#
#     headers_test.sh C-COMPILER
set -euo pipefail

cc=$1
cxx=$(command -v g++ || command -v clang++) || { echo 'no C++ compiler found' >&2; exit 1; }
include=${EMQ_SOURCE_DIR:?run the tests through ctest}/include
strict=(-Wall -Wextra -pedantic -Werror -fsyntax-only -I "$include")
count=0

for header in "$include"/emq/*.h; do
    name=emq/${header##*/}
    printf '#include <%s>\n#include <%s>\nint only_so_that_it_is_not_empty;\n' "$name" "$name" |
        "$cc" -std=c11 -Wstrict-prototypes "${strict[@]}" -x c -
    printf '#include <%s>\n#include <%s>\nint only_so_that_it_is_not_empty;\n' "$name" "$name" |
        "$cxx" -std=c++11 "${strict[@]}" -x c++ -
    count=$((count + 1))
done
((count > 0)) || { echo 'no header found' >&2; exit 1; }

if grep -hE '^ *# *include' "$include"/emq/*.h | grep -vE '<(emq/[a-z_]+|std[a-z]+)\.h>$'; then
    echo 'a public header includes something else than emq and the C standard library' >&2
    exit 1
fi
for header in "$include"/emq/*.h; do
    name=emq/${header##*/}
    [[ $name == emq/emq.h ]] || grep -qF "#include <$name>" "$include/emq/emq.h" || {
        echo "emq/emq.h leaves out $name" >&2
        exit 1
    }
done
echo "$count headers compile alone"
