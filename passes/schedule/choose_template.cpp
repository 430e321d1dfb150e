// SPDX-License-Identifier: Apache-2.0
// Plans of ops with templates.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "ir/kernel/queries.h"
#include "passes/cost.h"
#include "passes/schedule/choosers.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/seed_nodes.h"
#include "passes/schedule/split_plan.h"

namespace lockstep::passes {

using namespace graph;
using program::DigitsPlan;
using program::MatrixPlan;
using program::SplitPlan;
using program::StreamPlan;
using program::TiledPlan;
using program::WholePlan;

namespace {

/// Of the hooks load_NAME4.
constexpr int64_t kTemplateVector = 4;

int64_t lastExtent(const TemplateTensor& tensor) { return tensor.space.extent(tensor.space.rank() - 1); }

int64_t vectorOf(const TemplateShape& shape) {
  const bool has_fours = std::ranges::all_of(
      shape.operands, [](const TemplateTensor& tensor) { return !tensor.along_last || lastExtent(tensor) % kTemplateVector == 0; });
  return has_fours ? kTemplateVector : 1;
}

int64_t widestOf(const TemplateShape& shape) {
  int64_t widest = 1;
  for (const TemplateTensor& tensor : shape.operands) {
    if (tensor.along_last) widest = std::max(widest, lastExtent(tensor));
  }
  return widest;
}

PlanChoice stream(const PlanQuery& q, const TemplateShape& shape, int64_t& rounds) {
  StreamPlan plan;
  plan.lanes = std::min<int64_t>(q.profile.style == program::ExecutionStyle::Cpu ? cost::kStreamLanesCpu : cost::kStreamLanes,
                                 mostInvocations(q.profile));
  plan.block = std::clamp<int64_t>(cost::kStreamElements / shape.registers, 1, cost::kStreamBlock);
  plan.vector = vectorOf(shape);
  rounds = loopCost(shape.repeats, 1, loopCost(shape.length, plan.block, 0));
  return {plan, splitGroups(divideUp(shape.rows, plan.lanes), q.profile)};
}

/// Rows of which nothing is shared.
PlanChoice alone(const PlanQuery& q, const TemplateShape& shape, int64_t& rounds) {
  const int64_t lanes = q.profile.style == program::ExecutionStyle::Cpu ? cost::kStreamLanesCpu : cost::kStreamLanes;
  const StreamPlan plan{.lanes = std::min<int64_t>(lanes, mostInvocations(q.profile))};
  rounds = loopCost(shape.repeats, 1, loopCost(shape.length, 1, 0));
  return {plan, splitGroups(divideUp(shape.rows, plan.lanes), q.profile)};
}

/// Elements of a row and its results in halves of a step's: 2 forward, 3 and 4 for gradients. Where keys and values differ in width, the
/// quotient has a fraction for the gradient towards queries alone.
int64_t halvesOf(const TemplateShape& shape) { return 2 * shape.registers % shape.shared == 0 ? 2 * shape.registers / shape.shared : 3; }

/// What an invocation of a tiled template holds: the more results a row has, the fewer registers are left for the rest.
cost::TiledRow tiledRow(const TemplateShape& shape) {
  return *std::ranges::find_if(cost::kTiledRows, [&](const cost::TiledRow& row) { return halvesOf(shape) >= row.halves; });
}

/// For GPUs whose subgroups are known; nothing where no workgroup fits.
std::optional<PlanChoice> tiled(const PlanQuery& q, const TemplateShape& shape, int64_t& rounds) {
  const program::DeviceProfile& profile = q.profile;
  if (profile.style == program::ExecutionStyle::Cpu || !profile.fixed_subgroups) return std::nullopt;
  const cost::TiledRow row = tiledRow(shape);
  const int64_t widest = widestOf(shape);
  TiledPlan plan{.lanes = cost::kTiledLanes, .thread_rows = row.rows, .vector = vectorOf(shape)};
  plan.across = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(divideUp(widest, row.per_lane))));
  plan.subgroup = plan.across > 1 ? profile.subgroup_size : 1;
  if (plan.subgroup % plan.across != 0 || plan.lanes % plan.subgroup != 0 || plan.lanes > mostInvocations(profile)) return std::nullopt;
  // A step takes whole quads of all invocations, of both tensors.
  const int64_t step = 2 * 4 * plan.across * divideUp(widest, 4 * plan.across);
  plan.tile = largestPowerOfTwo(std::max<int64_t>(1, cost::kTiledElements / step));
  // With two numbers of each step: what is known of its row.
  while (plan.tile > 1 && 4 * plan.tile * (step + 2) > int64_t{profile.max_workgroup_bytes}) plan.tile /= 2;
  plan.block = std::min(plan.tile, row.block);
  // The first tile of a key may begin before it.
  rounds = loopCost(shape.repeats, 1, loopCost(divideUp(shape.length, plan.tile) + 1, 1, loopCost(plan.tile, plan.block, 0)));
  const auto groups = [&](const TiledPlan& p) { return shape.rows / shape.run * divideUp(shape.run, p.rows()); };
  for (TiledPlan more = plan; more.shares < cost::kMostShares; plan = more) {
    more.shares *= 2;
    const bool fits = more.lanes % (more.shares * more.subgroup) == 0 && more.rows() <= more.tile && more.shares * more.block <= more.tile;
    if (!fits || shape.length < cost::kLeastRoundsOfShare * more.shares * more.block) break;
    if (groups(more) > row.shared_groups * profile.parallel_units) break;
  }
  return PlanChoice{plan, splitGroups(groups(plan), profile)};
}

/// Of workgroup memory that the template NAME_matrix takes: for its tiles, or for the rows of a workgroup before them, and for factors.
int64_t matrixBytes(const MatrixPlan& plan, int64_t widest) {
  const int64_t line = divideUp(widest, plan.unit) * plan.unit / 8 + 1;
  const int64_t tiles = plan.parts * std::max(2 * plan.tile, plan.rows()) * line, strips = plan.subgroups * plan.unit_m * plan.unit / 4;
  return 16 * std::max(tiles, strips) + 4 * (4 * plan.rows() + 4 * plan.tile + 4);
}

/// By matrix units, whose results become operands and whose n and k are one; nothing where there are none or too little to do.
std::optional<PlanChoice> matrix(const PlanQuery& q, const TemplateShape& shape, int64_t& rounds) {
  const program::DeviceProfile& profile = q.profile;
  const bool brain = shape.low == DType::BF16;
  const program::MatrixShape& unit = brain ? profile.matrix_bf16 : profile.matrix_f16;
  if (profile.style == program::ExecutionStyle::Cpu || !profile.fixed_subgroups || !profile.f16 || !profile.matrix_rows ||
      unit == program::MatrixShape{})
    return std::nullopt;
  MatrixPlan plan{.brain = brain ? 2 : 1,
                  .lanes = profile.subgroup_size,
                  .parts = shape.low == DType::F32 ? 2 : 1,
                  .subgroups = cost::kMatrixSubgroups,
                  .unit = unit.n,
                  .unit_m = unit.m,
                  .vector = vectorOf(shape)};
  const int64_t widest = widestOf(shape);
  const int64_t halves = std::min<int64_t>(3, halvesOf(shape));
  const auto row = std::ranges::find_if(
      cost::kMatrixRows, [&](const cost::MatrixRows& r) { return r.halves == halves && r.parts == plan.parts && widest <= r.widest; });
  if (row == cost::kMatrixRows.end() || unit.n != unit.k || unit.n % 8 != 0 || shape.run < unit.m || shape.length < cost::kLeastMatrixSteps)
    return std::nullopt;
  plan.sub_rows = divideUp(cost::kMatrixSubRows, plan.unit_m) * plan.unit_m;
  const int64_t groups = shape.rows / shape.run * divideUp(shape.run, plan.rows());
  const bool is_deep = halves == 2 && plan.parts == 1 && widest <= cost::kWidestOfDeepSteps && shape.length >= cost::kLeastDeepSteps &&
                       groups <= cost::kMostDeepGroups * profile.parallel_units;
  plan.tile = divideUp((is_deep ? 2 : 1) * cost::kMatrixSteps, plan.unit) * plan.unit;
  // A row comes by neighbours of a subgroup, an oct each.
  const int64_t octs = divideUp(widest, plan.unit) * plan.unit / 8;
  const bool fits = octs <= plan.lanes && plan.unit_m * plan.unit % plan.lanes == 0 &&
                    plan.subgroups * plan.lanes <= mostInvocations(profile) &&
                    matrixBytes(plan, widest) <= int64_t{profile.max_workgroup_bytes};
  if (!fits) return std::nullopt;
  rounds = loopCost(shape.repeats, 1, loopCost(divideUp(shape.length, plan.tile) + 1, 1, 0));
  return PlanChoice{plan, splitGroups(groups, profile)};
}

/// Each subgroup leaves its sums in workgroup memory; where they are not known, each part does.
int64_t teamsOf(const SplitPlan& plan) { return plan.lanes / std::max(plan.across, plan.subgroup); }

/// CPU drivers compile rows that are too wide for minutes.
std::optional<PlanChoice> split(const PlanQuery& q, const TemplateShape& shape, int64_t& rounds) {
  if (q.profile.style == program::ExecutionStyle::Cpu && widestOf(shape) > cost::kWidestSplitCpu) return std::nullopt;
  const SplitPlan plan = splitPlan(shape, q.profile);
  const int64_t teams = teamsOf(plan);
  rounds = loopCost(shape.length, plan.lanes / plan.across * plan.block, 0) + 1 + loopCost(teams, 1, 0) +
           loopCost(divideUp(widestOf(shape), 4), plan.lanes, 0) * (1 + loopCost(teams, 1, 0));
  return PlanChoice{plan, splitGroups(shape.rows, q.profile)};
}

/// By integer dot products. Without known subgroups each invocation has rows of its own, which reads the weight in pieces that are far
/// apart: nothing for a GPU.
std::optional<PlanChoice> digits(const PlanQuery& q, const TemplateShape& shape, int64_t& rounds) {
  const program::DeviceProfile& profile = q.profile;
  if (profile.style == program::ExecutionStyle::Gpu && !profile.fixed_subgroups) return std::nullopt;
  const int64_t piece = shape.shared, lanes = profile.fixed_subgroups && profile.subgroup_size * 8 >= piece ? profile.subgroup_size : 1;
  const cost::DigitStep step = cost::kDigitSteps[piece == cost::kDigitSteps[0].piece ? 0 : 1];
  DigitsPlan plan{.lanes = lanes, .vector = vectorOf(shape)};
  const int64_t most = lanes == 1 ? cost::kStreamLanesCpu : cost::kDigitSubgroups, units = profile.parallel_units;
  while (plan.subgroups < most && 2 * plan.subgroups * lanes <= mostInvocations(profile)) plan.subgroups *= 2;
  while (lanes > 1 && plan.subgroups > cost::kLeastDigitSubgroups && 2 * shape.run <= plan.subgroups * units) plan.subgroups /= 2;
  const int64_t pieces = divideUp(shape.length, 4), lane_pieces = divideUp(pieces, lanes);
  plan.lane_pieces = std::min(lane_pieces, lanes == 1 ? cost::kDigitLoads : step.lane_pieces);
  plan.turns = divideUp(lane_pieces, plan.lane_pieces);
  // Three digits of each element, a word for each piece, and a sum of squares for each subgroup.
  const auto bytes = [&] {
    const auto words = [](int64_t count) { return static_cast<int64_t>(kernel::workgroupBytes(4 * static_cast<uint64_t>(count))); };
    const int64_t kept = std::min(pieces, plan.turns * plan.lane_pieces * lanes);
    return 3 * piece * kept + words(kept) + words(plan.subgroups);
  };
  while (plan.turns > 1 && bytes() > int64_t{profile.max_workgroup_bytes}) --plan.turns;
  if (lanes > 1) {
    // As many rows as let all workgroups run at once: each makes the digits of x, while only its first words are under way.
    const int64_t side_by_side = 2 * bytes() <= int64_t{profile.max_workgroup_bytes} ? 2 : 1;
    const int64_t rows = divideUp(shape.run, side_by_side * units * plan.subgroups);
    plan.sub_rows = std::min(rows, step.rows);
    if (rows > plan.sub_rows && plan.turns * plan.lane_pieces >= lane_pieces)
      plan.rounds = std::min(divideUp(shape.run, units * plan.subgroups * plan.sub_rows), cost::kMostDigitRows / plan.sub_rows);
  }
  // The bounds of the loops count digits in each turn over the pieces, and the slow sum of a row that is not finite.
  const int64_t octets = std::min(pieces, plan.turns * plan.lane_pieces * lanes) * piece / 8;
  rounds = plan.rounds * divideUp(lane_pieces, plan.lane_pieces) * (1 + loopCost(octets, plan.subgroups * lanes, 0)) + 1 +
           loopCost(plan.rounds * plan.sub_rows, lanes, 0) * loopCost(pieces * piece, 1, 0);
  return PlanChoice{plan, splitGroups(shape.rows / shape.run * divideUp(shape.run, plan.subgroups * plan.sub_rows * plan.rounds), profile)};
}

/// By workgroups that have whole runs; nothing where one does not fit into a workgroup's memory.
std::optional<PlanChoice> whole(const PlanQuery& q, const TemplateShape& shape, int64_t& rounds) {
  if (4 * shape.held > int64_t{q.profile.max_workgroup_bytes}) return std::nullopt;
  const int64_t quads = divideUp(widestOf(shape), 4);
  const int64_t items = std::max(shape.run * shape.length, (shape.run + shape.length) * quads);
  WholePlan plan{.lanes = cost::kLeastWholeLanes, .vector = vectorOf(shape)};
  while (plan.lanes < cost::kMostWholeLanes && plan.lanes * cost::kWholeItems < items) plan.lanes *= 2;
  while (plan.lanes > mostInvocations(q.profile)) plan.lanes /= 2;
  constexpr int64_t kPhases = 6;
  rounds = shape.repeats * kPhases * loopCost(divideUp(items, plan.lanes), 1, loopCost(std::max({shape.run, shape.length, quads}), 1, 0));
  return PlanChoice{plan, splitGroups(shape.rows / shape.run, q.profile)};
}

}  // namespace

SplitPlan splitPlan(const TemplateShape& shape, const program::DeviceProfile& profile) {
  const bool is_cpu = profile.style == program::ExecutionStyle::Cpu;
  SplitPlan plan{.lanes = std::min<int64_t>(is_cpu ? cost::kStreamLanesCpu : cost::kTiledLanes, mostInvocations(profile)),
                 .block = is_cpu ? std::clamp<int64_t>(cost::kSplitElementsCpu / widestOf(shape), 1, cost::kSplitBlock) : cost::kSplitBlock,
                 .vector = vectorOf(shape)};
  // Few rows are split among more invocations, so that as much is under way.
  const auto is_few = [&] { return shape.rows * plan.lanes < cost::kFullWorkgroup * int64_t{profile.parallel_units}; };
  while (!is_cpu && is_few() && 2 * plan.lanes <= std::min(cost::kMostSplitLanes, mostInvocations(profile))) plan.lanes *= 2;
  if (!is_cpu && profile.fixed_subgroups && plan.lanes % profile.subgroup_size == 0) {
    const int64_t quads = divideUp(widestOf(shape), cost::kSplitQuads * kTemplateVector);
    plan.across = std::min<int64_t>(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(quads))), profile.subgroup_size);
    plan.subgroup = plan.across > 1 ? profile.subgroup_size : 1;
  }
  const auto bytes = [&] {
    const int64_t quads = plan.across * divideUp(widestOf(shape), 4 * plan.across);
    return teamsOf(plan) * (16 * quads + 8) + 16;
  };
  const int64_t least = std::max(plan.across, plan.subgroup);
  while (plan.lanes / 2 >= least && bytes() > int64_t{profile.max_workgroup_bytes}) plan.lanes /= 2;
  return plan;
}

Result<PlanChoice> chooseTemplate(const PlanQuery& q) {
  const TemplateShape shape = findTemplate(q.body).shape;
  if (!q.templates) return fail("template.name", "there are no kernel templates here, and an op needs one");
  int64_t rounds = 0;
  std::optional<PlanChoice> choice;
  if (shape.form == TemplateForm::Split) {
    choice = split(q, shape, rounds);
    if (!choice) {
      return fail("schedule.row_width",
                  fmt::format("heads are {} wide, and CPU drivers take up to {}", widestOf(shape), cost::kWidestSplitCpu), {},
                  "use cached_attention, which becomes other operations there");
    }
  }
  if (shape.form == TemplateForm::Stream) choice = alone(q, shape, rounds);
  if (shape.form == TemplateForm::Digits) {
    choice = digits(q, shape, rounds);
    if (!choice) {
      return fail("schedule.subgroups", "integer dot products want subgroups of a known size, and the device has none", {},
                  "use quantized_matmul, which becomes other operations there");
    }
  }
  if (shape.form == TemplateForm::Whole) {
    choice = whole(q, shape, rounds);
    if (!choice) {
      return fail("schedule.workgroup_bytes",
                  fmt::format("a run of rows takes {} bytes of workgroup memory, and the device has {}", 4 * shape.held,
                              q.profile.max_workgroup_bytes),
                  {}, "use the op that this one is made from, which becomes others where it does not fit");
    }
  }
  if (!choice && shape.has_matrix) choice = matrix(q, shape, rounds);
  if (!choice) choice = tiled(q, shape, rounds);
  if (!choice) choice = stream(q, shape, rounds);
  if (rounds > plannedRounds(q.profile)) {
    return fail("schedule.loop_limit",
                fmt::format("a row takes {} rounds of a loop, and the device ends loops after {}", rounds, q.profile.max_loop_iterations),
                {}, "use a shorter sequence, or choose a device without that limit (lockstep devices)");
  }
  return *choice;
}

}  // namespace lockstep::passes
