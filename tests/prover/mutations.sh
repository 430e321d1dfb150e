#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whether the prover's test bites: one rule after the other is broken in ir/kernel, and the test must fail each time.
# usage: mutations.sh BUILD_FOLDER [KERNELS]    builds there; the sources are put back whatever happens
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build="$1" kernels="${2:-60000}"
die() { printf 'mutations.sh: %s\n' "$*" >&2; exit 1; }

# FILE|PATTERN|REPLACEMENT, each on one line of the file.
mutations=(
  'queries.cpp|return std::ranges::all_of(body, \[&\](InstructionId id) { return module\[id\].blocks.empty(); });|return true;'
  'value_ranges.cpp|if (!isDirectlyIn(loop, m_\[sum->operands\[0\]\].index)) return std::nullopt;|'
  'value_ranges.cpp|\*step >= 0 \&\& inside->high + \*step <= all.high|*step >= 0'
  'value_ranges.cpp|\*step < 0 \&\& inside->low + \*step >= all.low|*step < 0'
  'value_ranges.cpp|if (op == Op::Lt \&\& bound.high > all.low) fact.high = bound.high - 1;|if (op == Op::Lt \&\& bound.high > all.low + 1) fact.high = bound.high - 2;'
  'value_ranges.cpp|if (op == Op::Ge .. op == Op::Eq) fact.low = bound.low;|if (op == Op::Ge) fact.low = bound.low + 1;'
  'value_ranges.cpp|const int64_t most = b.high == 0 ? 0 : b.high - 1;|const int64_t most = b.high == 0 ? 0 : std::max<int64_t>(0, b.high - 2);'
  'value_ranges.cpp|Range{a.low - b.high, a.high - b.low}|Range{a.low - b.low, a.high - b.high}'
  'value_ranges.cpp|return result \&\& contains(all, \*result) ? \*result : all;|return result ? both(*result, all) : all;'
  'value_ranges.cpp|return contains(all, range) ? range : all;|return both(all, range);'
  'value_ranges.cpp|return b.low == 0 ? Range{0, a.high} : Range{a.low / b.high, a.high / b.low};|return b.high == 0 ? Range{0, 0} : Range{a.low / b.high, a.high / std::max<int64_t>(2, b.high)};'
  'value_ranges.cpp|return {std::min(a.low, b.low), std::max(a.high, b.high)};|return {std::min(a.low, b.low), std::min(a.high, b.high)};'
  'value_ranges.cpp|const Op op = holds ? row->op : row->opposite;|const Op op = row->op;'
  'value_ranges.cpp|if (op != Op::Lt .. length == nullptr|if ((op != Op::Lt \&\& op != Op::Le) \|\| length == nullptr'
  'guard_accesses.cpp|      ranges_.forgetStores(inner);|'
  'guard_accesses.cpp|if (endsInJump(m_, x.blocks\[0\])) ranges_.assume|if (endsInJump(m_, x.blocks[1])) ranges_.assume'
  'guard_accesses.cpp|return range.low >= 0 \&\& range.high < int64_t{count};|return range.low >= 0 \&\& range.high <= int64_t{count};'
  'loop_rounds.cpp|return sum(product(rounds->most, sum(1, body)), 1);|return sum(product(rounds->most, body), 1);'
)

kept="$(mktemp -d)"
restore() { cp "$kept"/*.cpp ir/kernel/; rm -rf "$kept"; }
cp ir/kernel/*.cpp "$kept/"
trap restore EXIT
missed=0
for row in "${mutations[@]}"; do
  IFS='|' read -r file pattern replacement <<<"${row//\\|/$'\x01'}"
  replacement="${replacement//$'\x01'/|}"
  cp "$kept/$file" "ir/kernel/$file"
  sed -i "s@$pattern@$replacement@" "ir/kernel/$file"
  if cmp -s "$kept/$file" "ir/kernel/$file"; then die "no line of $file matches: $pattern"; fi
  ninja -C "$build" prover_test >"$kept/log" 2>&1 || { tail -n 20 "$kept/log"; die "it does not compile: $replacement"; }
  if LOCKSTEP_PROVER_KERNELS="$kernels" "$build/tests/prover/prover_test" --gtest_brief=1 >"$kept/log" 2>&1; then
    printf 'MISSED %s: %s\n' "$file" "$replacement"
    missed=$((missed + 1))
  else
    printf 'found  %s: %s (%s)\n' "$file" "${replacement:-line removed}" "$(grep -o 'seed [0-9]*' "$kept/log" | head -n 1)"
  fi
  cp "$kept/$file" "ir/kernel/$file"
done
((missed == 0)) || die "$missed of ${#mutations[@]} were not found"
printf 'all %s were found\n' "${#mutations[@]}"
