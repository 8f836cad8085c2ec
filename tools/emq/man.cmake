# SPDX-License-Identifier: Apache-2.0
# Makes emq.1 of emq.1.in and what `emq help --man` prints: cmake -DTOOL= -DSOURCE= -DOUT= -DVERSION= -P.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${TOOL} help --man OUTPUT_VARIABLE VERBS COMMAND_ERROR_IS_FATAL ANY)
file(READ ${SOURCE} PAGE)
string(REPLACE "@VERSION@" "${VERSION}" PAGE "${PAGE}")
string(REPLACE "@VERBS@\n" "${VERBS}" PAGE "${PAGE}")
file(WRITE ${OUT} "${PAGE}")
