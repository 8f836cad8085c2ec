# SPDX-License-Identifier: Apache-2.0
# The plots of a run, made from the data files in the working directory.
set terminal svg size 900,420 font "sans-serif,13" background "white"
set style data histogram
set style histogram clustered gap 1
set style fill solid 0.85 border -1
set key outside top center horizontal
set grid y
set yrange [0:*]

set output "verbs.svg"
set ylabel "server time per job, reference Lua = 1"
plot for [i=2:5] "verbs.dat" using i:xtic(1) title columnheader(i)

set output "lifecycle.svg"
set logscale y
set yrange [0.005:*]
set xtics rotate by -20
set ylabel "jobs per second, libemq pipelined = 1"
plot for [i=2:5] "lifecycle.dat" using i:xtic(1) title columnheader(i)
