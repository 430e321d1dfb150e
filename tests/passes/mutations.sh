#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whether the golden texts and the tests of ops bite: one rule after the other is broken, and the test that is named with it must fail.
# usage: mutations.sh BUILD_FOLDER [PART]    PART: only rows whose file contains it. Builds in BUILD_FOLDER; the sources are put back
# whatever happens. README.md has the result.
#        mutations.sh --check                only whether each row names a text that stands once in its file
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build="$1" part="${2:-}"
die() { printf 'mutations.sh: %s\n' "$*" >&2; exit 1; }

# TEST~FILE~TEXT~REPLACEMENT. TEXT stands once in the file, as it is.
# TEST: g:PASSES = golden texts of these passes, with their meaning; k = golden texts of kernel passes; o = evaluators, gradients and laws
# of ops.
mutations=(
  # Rules of simplify.
  'g:simplify~passes/graph/simplify.cpp~if (shape.extent(axis) != 1 && map.source~if (shape.extent(axis) > 99 && map.source'
  'g:simplify~passes/graph/simplify.cpp~if (!value || !view->map(s.in, node).guards.empty())~if (!value)'
  'g:simplify~passes/graph/simplify.cpp~return d != data.front();~return d > data.front() + 1e9;'
  'g:simplify~passes/graph/simplify.cpp~if (law.commutes && s.constantOf~if (s.constantOf'
  'g:simplify~passes/graph/simplify.cpp~return inner.op == node.op ? std::optional(inner.operands[0])~return inner.op == node.op ? std::optional(operands[0])'
  'g:simplify~passes/graph/simplify.cpp~return inner.op == node.op ? std::optional~return !inner.operands.empty() ? std::optional'
  'g:simplify~passes/graph/simplify.cpp~if (shape.extent(static_cast<size_t>(axis)) != 1) return~if (shape.extent(static_cast<size_t>(axis)) > 2) return'
  'g:simplify~passes/graph/simplify.cpp~if (inner.op != node.op) return std::nullopt;~if (inner.operands.size() != 1) return std::nullopt;'
  'g:simplify~passes/graph/simplify.cpp~if (types && candidate.attributes == node.attributes)~if (types)'
  # Laws that its rules read.
  'g:simplify~ir/ops/element/sub.cpp~.algebra = {.neutral = 0},~.algebra = {.neutral = 0, .commutes = true},'
  'o~ir/ops/element/mul.cpp~.algebra = {.neutral = 1,~.algebra = {.neutral = 0,'
  # Gradients and updates.
  'g:grad~passes/graph/grad.cpp~sum = sum.valid() ? builder.add(sum, cotangent) : cotangent;~sum = cotangent;'
  'g:grad~ir/ops/product/matmul.cpp~return {dx, dw};~return {dx, b.neg(dw)};'
  'g:grad~ir/ops/element/mul.cpp~return std::vector{g.builder.mul(dy, g.operands[1])~return std::vector{g.builder.mul(dy, g.operands[0])'
  'o~ir/ops/element/sub.cpp~g.builder.neg(g.cotangents[0])~g.cotangents[0]'
  'o~ir/ops/element/div.cpp~b.mul(da, g.results[0])~b.mul(da, g.operands[0])'
  'o~ir/ops/element/tanh.cpp~b.add(b.neg(y), 1.0)~b.add(y, 1.0)'
  'o~ir/ops/element/where.cpp~b.make("where", {cond, zero, dy})~b.make("where", {cond, dy, zero})'
  'o~ir/ops/shape/pad.cpp~{"start", before}, {"length", extent}~{"start", 0 * before}, {"length", extent}'
  'o~ir/ops/shape/concat.cpp~    start += length;
  }
  return gradients;~  }
  return gradients;'
  'o~ir/ops/shape/permute.cpp~inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);~inverse[i] = permutation[i];'
  'o~ir/ops/reduce/sum.cpp~g.builder.broadcastTo(g.builder.reshape(g.cotangents[0], kept), shape)~g.builder.mul(g.builder.broadcastTo(g.builder.reshape(g.cotangents[0], kept), shape), 2.0)'
  'g:optimizer~passes/graph/update_adam.cpp~b.mul(value, 1 - beta)~b.mul(value, beta)'
  'g:optimizer~passes/graph/update_adam.cpp~c.config.beta2, b.mul(c.gradient, c.gradient)~c.config.beta2, c.gradient'
  'g:optimizer~passes/graph/update_adam.cpp~return {b.sub(parameter, step), {m, v}};~return {b.add(parameter, step), {m, v}};'
  # Views and their composition.
  'o~ir/graph/index_map.cpp~append(out, scaled(atom, term.coefficient));~append(out, scaled(atom, 1));'
  'o~ir/graph/index_map.cpp~stride *= shape.extent(axis);~stride += shape.extent(axis);'
  'o~ir/graph/index_map.cpp~if (largestOf(rest, result) >= below)~if (largestOf(rest, result) > below)'
  'o~ir/graph/index_map.cpp~below *= extent;~below += extent;'
  'o~ir/ops/shape/flip.cpp~expr.offset = last;~expr.offset = last + 1;'
  'o~ir/ops/shape/pad.cpp~map.guards.push_back({map.source[axis], 0, source.extent(axis)});~map.guards.push_back({map.source[axis], 0, source.extent(axis) + 1});'
  # Reductions that are split.
  'g:splitReductions~passes/graph/split_reductions.cpp~{"value", neutral}~{"value", neutral + 1}'
  'g:splitReductions~passes/graph/split_reductions.cpp~ValueId blocks = b().reshape(x, Shape{parts, part, results});~ValueId blocks = b().reshape(x, Shape{part, parts, results});'
  'g:splitReductions~passes/graph/split_reductions.cpp~{"axes", leading}~{"axes", trailing}'
  # Emission: combines, scans, scatters, products.
  'g:schedule~ir/ops/reduce/sum.cpp~kernel::Op::Add~kernel::Op::Sub'
  'g:emit,schedule~passes/emit/emit.cpp~for (int64_t half = lanes / 2; half > 0; half /= 2) {~for (int64_t half = lanes / 2; half > 1; half /= 2) {'
  'g:emit,schedule~passes/emit/emit.cpp~b.u32(static_cast<uint32_t>(half * stride))~b.u32(static_cast<uint32_t>(half))'
  'g:emit,schedule~passes/emit/emit_map.cpp~b.make(Op::Lt, {index, b.u32(elements)})~b.make(Op::Le, {index, b.u32(elements)})'
  'g:emit,schedule~passes/emit/emit_rows.cpp~b.u32(static_cast<uint32_t>(rows - 1))~b.u32(static_cast<uint32_t>(rows))'
  'g:emit,schedule~passes/emit/emit_rows.cpp~lanes == 1 ? b.u32(0) : lane;
    forRange(b, begin, b.u32(static_cast<uint32_t>(columns)),~b.u32(0);
    forRange(b, begin, b.u32(static_cast<uint32_t>(columns)),'
  'g:emit,schedule~passes/emit/emit_columns.cpp~b_.make(Op::And, {valid_, b_.make(Op::Eq, {lane_, b_.u32(0)})})~valid_'
  'g:emit,schedule~passes/emit/emit_columns.cpp~b.u32(unsigned32(places - 1))~b.u32(unsigned32(places))'
  'g:emit,schedule~passes/emit/emit_scan.cpp~b_.make(Op::Sub, {u32(space_.length - 1), n})~b_.make(Op::Sub, {u32(space_.length), n})'
  'g:emit,schedule~passes/emit/emit_scan.cpp~for (size_t i = 0; i < sums.size(); ++i) b_.store(sums[i], start_[i]);~(void)sums;'
  'g:emit,schedule~passes/emit/emit_scan.cpp~b_.forRange(first, entry_.lane,~b_.forRange(first, add(entry_.lane, u32(1)),'
  'g:emit,schedule~passes/emit/emit_scan.cpp~b_.make(Op::Min, {left, u32(part_)})~left'
  'g:emit,schedule~passes/emit/emit_scatter.cpp~b.make(Op::Lt, {mine, u32(segments)})~b.make(Op::Le, {mine, u32(segments)})'
  'g:emit,schedule~passes/emit/emit_scatter.cpp~b.make(Op::And, {left, b.make(Op::Sub, {left, b.u32(1)})})~b.make(Op::Sub, {left, b.u32(1)})'
  'g:emit,schedule~passes/emit/emit_scatter.cpp~b.forRange(add(lane, u32(apart)),~b.forRange(add(lane, u32(2 * apart)),'
  'g:emit,schedule~passes/emit/emit_contract.cpp~{batch, k, n}~{batch, n, k}'
  'g:emit,schedule~passes/emit/body_emitter.cpp~builder_.u32(unsigned32(guard.hi - guard.lo))~builder_.u32(unsigned32(guard.hi - guard.lo + 1))'
  'g:emit,schedule~passes/emit/body_memory.cpp~kernel::ValueId inside = builder_.make(Op::Rem, {index, per_window});~kernel::ValueId inside = index;'
  'g:emit,schedule~passes/emit/body_memory.cpp~builder_.make(Op::Ne, {word, builder_.u32(0)})~builder_.make(Op::Eq, {word, builder_.u32(0)})'
  # Dispatches that become one.
  'g:mergeDispatches~passes/emit/merged_parts.cpp~bytes += kernel::workgroupBytes(array.bytes);~bytes += array.bytes;'
  'g:mergeDispatches~passes/emit/merge_dispatches.cpp~ValueId own = b.make(Op::Sub, {group, b.u32(called.first_group)});~ValueId own = group;'
  'g:mergeDispatches~passes/emit/merge_dispatches.cpp~if (parts.empty() || part.kernel->workgroup_size != parts.front().kernel->workgroup_size)~if (parts.empty())'
  'g:mergeDispatches~passes/emit/merged_parts.h~return binding.space == variable.space && binding.range == range && binding.type == variable.type;~return binding.space == variable.space && (binding.range == range || true) && binding.type == variable.type;'
  # Buffers.
  'g:planBuffers~passes/schedule/in_place.cpp~lives_[source.buffer.index()].last == level~lives_[source.buffer.index()].last >= level'
  'g:planBuffers~passes/schedule/in_place.cpp~at_level_[{range.buffer, level}] == 1~at_level_[{range.buffer, level}] >= 1'
  'g:planBuffers~passes/schedule/in_place.cpp~if (!fits || taken.contains(input) ||~if (!fits ||'
  'g:planBuffers~passes/schedule/in_place.cpp~program_[source.buffer].type.dtype == program_[target.buffer].type.dtype~true'
  'g:planBuffers~passes/schedule/in_place.cpp~if (!isLinearIdentity(view->map(graph, node), graph.shapeOf(node.results[0]), graph.shapeOf(moved))) return false;~(void)moved, (void)view;'
  'g:planBuffers~passes/plan/plan_buffers.cpp~free.take(life.first, life.last, buffer.offset, taken);~free.take(life.first, life.first, buffer.offset, taken);'
  'g:planBuffers~passes/plan/plan_buffers.cpp~while (taken.contains(number)) ++number;~while (taken.contains(number + 99)) ++number;'
  # Kernel passes.
  'k~passes/kernel/fold_constants.cpp~{Op::Mul, Constant::Zero, Gives::Right}~{Op::Mul, Constant::Zero, Gives::Left}'
  'k~passes/kernel/fold_constants.cpp~{Op::Lt, Op::Ge}~{Op::Lt, Op::Gt}'
  'k~passes/kernel/fold_constants.cpp~: *right - 1);~: *right);'
  'k~passes/kernel/fold_constants.cpp~if (condition && !endsInJump(m_, taken))~if (condition)'
  'k~passes/kernel/fold_constants.cpp~if (!opposite || !isInteger(inner->operands[0])) return false;~if (!opposite) return false;'
  'k~passes/kernel/forward_stores.cpp~if (control.op == Op::Switch || !endsInJump(m_, inner))~if (!endsInJump(m_, inner))'
  'k~passes/kernel/forward_stores.cpp~if (holdsContinue(control.blocks[0])) forgetSince(before);~'
  'k~passes/kernel/forward_stores.cpp~    for (BlockId inner : control.blocks) collectStores(inner, stored);
    forget(stored);
    size_t before~    size_t before'
  'k~passes/kernel/hoist_invariants.cpp~return isPure(x.op) &&~return'
  'k~passes/kernel/unroll_loops.cpp~return x.op == Op::BreakIf ? trips + 1 : trips;~return trips;'
  'k~passes/kernel/unroll_loops.cpp~if (stores_[variable.index()] != 1 || escapes_[variable.index()])~if (escapes_[variable.index()])'
  'k~passes/kernel/unroll_loops.cpp~if (x.op == Op::Return || (x.op == Op::Break && breaks)~if (x.op == Op::Return'
  'k~passes/kernel/remove_dead.cpp~for (InstructionId store : stores_[root.index()]) mark(store);~'
  'k~passes/kernel/remove_dead.cpp~if (x.op == Op::Call) return has_effect_[x.immediate];~if (x.op == Op::Call) return true;'
  'k~passes/kernel/split_variables.cpp~parts_[base][*constantBits(m_, access.operands[1])]~parts_[base][0]'
  'k~ir/kernel/inline_calls.cpp~map_.set(callee.parameters[i].value, arguments[i]);~map_.set(callee.parameters[i].value, arguments[0]);'
  'k~ir/kernel/inline_calls.cpp~return !callee.returns_from_inside && nesting~return nesting'
)

declare -A target=([g]=passes_test [k]=kernel_passes_test [o]=ops_test)
declare -A binary=([g]=passes/passes_test [k]=passes/kernel/kernel_passes_test [o]=ir/ops/ops_test)
kept="$(mktemp -d)"
file=""
restore() { [[ -z "$file" ]] || cp "$kept/source" "$file"; }
trap 'restore; rm -rf "$kept"' EXIT
missed=0 tried=0
for row in "${mutations[@]}"; do
  IFS='~' read -r -d '' test path text replacement <<<"$row" || true
  replacement="${replacement%$'\n'}"
  [[ "$path" == *"$part"* ]] || continue
  source="$(cat "$path"; printf x)" source="${source%x}"
  [[ "$source" == *"$text"* ]] || die "$path does not have: $text"
  [[ "${source#*"$text"}" != *"$text"* ]] || die "$path has more than once: $text"
  [[ "$build" != --check ]] || continue
  file="$path"
  cp "$file" "$kept/source"
  printf '%s' "${source%%"$text"*}$replacement${source#*"$text"}" >"$file"
  tried=$((tried + 1))
  only="${test#*:}" test="${test%%:*}" filter='*'
  if [[ "$test" == g ]]; then filter="*Golden*/${only//,/_*:*Golden*/}_*"; fi
  if ! ninja -C "$build" "${target[$test]}" >"$kept/log" 2>&1; then
    printf 'BROKEN %s: %s does not compile: %s\n' "$file" "$replacement" "$(grep -m 1 'error:' "$kept/log" || true)"
    missed=$((missed + 1))
  elif timeout 300 "$build/tests/${binary[$test]}" --gtest_filter="$filter" --gtest_brief=1 >"$kept/log" 2>&1; then
    printf 'MISSED %s: %s -> %s\n' "$file" "$text" "$replacement"
    missed=$((missed + 1))
  else
    printf 'found  %s: %s (%s failed)\n' "$file" "${replacement:-removed: $text}" "$(grep -c '^\[  FAILED  \]' "$kept/log" || true)"
  fi
  restore
  file=""
done
[[ "$build" != --check ]] || exit 0
((missed == 0)) || die "$missed of $tried were not found"
printf 'all %s were found\n' "$tried"
