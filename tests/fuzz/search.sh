#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Searches with the fuzzers that were built in build/fuzz, one after the other, and says how much each has executed.
# usage: tests/fuzz/search.sh SECONDS [NAME...]     seconds for each; no name: all
# New inputs stay in build/corpus/NAME, where the next search begins; one that breaks a promise is written to build/corpus/found/NAME-*.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
programs=build/fuzz/tests/fuzz corpus=build/corpus
[[ ${1:-} =~ ^[0-9]+$ ]] || { sed -n '4s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
seconds="$1"; shift

# NAME  LONGEST INPUT  DICTIONARY  SEEDS ("made": those of fuzz_seeds)
table='
graph       2000   -            tests/ir/data
program     8000   -            tests/ir/data
kernel      256    kernel.dict  tests/frontend/wgsl/data
wgsl        256    wgsl.dict    tests/frontend/wgsl/data shaders
check       256    wgsl.dict    tests/frontend/wgsl/data shaders
spirv       256    wgsl.dict    tests/frontend/wgsl/data shaders
format      256    wgsl.dict    tests/frontend/wgsl/data shaders
safetensors 1000   -            tests/fuzz/corpus/safetensors
npy         300    -            made
npz         1000   -            made
idx         100    -            made
mbjs        700    -            made
golden      1000   -            made
rate        100    -            made
language    600    -            made
profile     4000   -            made
cases       400    -            made
line        500    -            made
run         600    -            made
checkpoint  1600   -            made
dump        28000  -            made
cache       100    -            made
compile     4000   -            made
execute     12000  -            made
sanitize    600    wgsl.dict    made
'

# Most of the time of a short input would be spent on the stacks of allocations and on what exceptions leave behind.
export ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0:malloc_context_size=0:quarantine_size_mb=16
mkdir -p "$corpus/found"
"$programs/fuzz_seeds" "$corpus/made"
status=0
while read -r name longest dictionary seeds; do
  [[ -n $name ]] || continue
  [[ $# -eq 0 || " $* " == *" $name "* ]] || continue
  [[ $seeds != made ]] || seeds="$corpus/made/$name"
  options=(-max_len="$longest" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=4096 -entropic=0 -print_final_stats=1)
  options+=(-artifact_prefix="$corpus/found/$name-")
  [[ $dictionary == - ]] || options+=(-dict="tests/fuzz/$dictionary")
  mkdir -p "$corpus/$name"
  # shellcheck disable=SC2086 # a list of folders
  "$programs/fuzz_$name" "${options[@]}" "$corpus/$name" $seeds >"$corpus/$name.log" 2>&1 || { status=1; printf '%s: broke a promise, see %s\n' "$name" "$corpus/$name.log"; }
  executed="$(sed -n 's/^stat::number_of_executed_units: *//p' "$corpus/$name.log")"
  printf '%-12s %12s executions\n' "$name" "${executed:-?}"
done <<<"$table"
exit "$status"
