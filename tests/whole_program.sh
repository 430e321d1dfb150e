#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a GoogleTest program. Ends with 77 when each of its tests skipped itself, which GoogleTest calls a success.
# usage: whole_program.sh PROGRAM [ARGUMENTS]
# LOCKSTEP_SAMPLE=n: every nth of its tests, or all of them with LOCKSTEP_WHOLE set.
set -uo pipefail
if [[ -n "${LOCKSTEP_SAMPLE:-}" && -z "${LOCKSTEP_WHOLE:-}" ]]; then
  export GTEST_TOTAL_SHARDS=$((${GTEST_TOTAL_SHARDS:-1} * LOCKSTEP_SAMPLE)) GTEST_SHARD_INDEX=$((${GTEST_SHARD_INDEX:-0} * LOCKSTEP_SAMPLE))
fi
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
"$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
((status == 0)) || exit "$status"
if grep -q '^\[  PASSED  \] 0 tests' "$log" && grep -q '^\[  SKIPPED \]' "$log"; then exit 77; fi
