/* SPDX-License-Identifier: Apache-2.0 */
/* Other queues, spoken to by their own protocols, in the same windows of jobs. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include "bench.h"

void peer_beanstalkd(bench *b);
void peer_gearmand(bench *b);

#endif
