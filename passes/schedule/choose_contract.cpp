// SPDX-License-Identifier: Apache-2.0
// Plans of contractions: a template of shaders/ by the style of the device, else one invocation per result.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/queries.h"
#include "passes/cost.h"
#include "passes/schedule/choosers.h"
#include "passes/schedule/inner_axis.h"
#include "passes/schedule/plan_rounds.h"
#include "passes/schedule/quad_operands.h"
#include "passes/schedule/seed_nodes.h"

namespace lockstep::passes {

using namespace graph;
using program::DeviceProfile;
using program::ExecutionStyle;
using program::NaiveContractPlan;
using program::TemplatePlan;

namespace {

constexpr std::string_view kSharedTiled = "shared_tiled";

/// What an invocation of register_rows makes.
struct Block {
  int64_t rows, columns, lanes;
};

/// GPUs: the largest tile that still gives every unit a workgroup; small products with a long k split it among the invocations.
struct Tile : cost::Tile {
  int64_t slices = 1;  ///< invocations that share a sum

  [[nodiscard]] int64_t threads() const { return (m / thread_m) * (n / thread_n); }
  /// The three arrays of the template. Partial sums go through workgroup memory only where there are several.
  [[nodiscard]] uint64_t workgroupBytes() const {
    const int64_t words[] = {slices * k * (m + 1), slices * k * (n + 1), slices > 1 ? slices * m * n : 1};
    uint64_t sum = 0;
    for (const int64_t count : words) sum += kernel::workgroupBytes(4 * static_cast<uint64_t>(count));
    return sum;
  }
};

struct QuadTile : cost::QuadTile {
  [[nodiscard]] int64_t threads() const { return slices * (m / thread_m) * (n / thread_n); }
  /// The tiles of all slices, or the sums of half of them.
  [[nodiscard]] uint64_t workgroupBytes() const {
    const int64_t tiles = slices * k * (m / 4 + 1 + n / 4 + 1), sums = slices / 2 * m * n / 4;
    return 16 * static_cast<uint64_t>(std::max(tiles, sums));
  }
};

/// Products by matrix units.
struct MatrixTile : cost::MatrixTile {
  int64_t depth = 0;                           ///< of a tile along the inner axis
  int64_t unit_m = 0, unit_n = 0, unit_k = 0;  ///< of the units
  int64_t lanes = 0;                           ///< of a subgroup
  int64_t parts = 0;                           ///< of an operand: 2 for f32
  int64_t brain = 0;                           ///< bf16

  [[nodiscard]] int64_t threads() const { return m / sub_m * (n / sub_n) * lanes; }
  /// The tiles, as the template lays them out; strips of results need less. And the scales.
  [[nodiscard]] uint64_t workgroupBytes(bool a_along_m, bool b_along_k) const {
    const auto lines = [&](bool along_inner, int64_t outer) { return along_inner ? outer * (depth / 8 + 1) : depth * (outer / 8 + 1); };
    const int64_t tiles = parts * (lines(!a_along_m, m) + lines(b_along_k, n)), strips = threads() / lanes * unit_m * sub_n / 4;
    const int64_t scales = parts == 2 ? 4 * (m + n) : 6;
    // Each variable begins at a multiple of 16: eight arrays of scales and two flags.
    return 16 * static_cast<uint64_t>(std::max(tiles, strips)) + 4 * static_cast<uint64_t>(scales) + 10 * 16;
  }
};

/// The numbers of a template's plan by name: what a table of their places makes of both.
template <class Numbers>
struct Named {
  std::string_view name;
  int64_t Numbers::* value;
};
constexpr std::array kBlockNumbers{Named<Block>{"rows", &Block::rows}, Named<Block>{"columns", &Block::columns},
                                   Named<Block>{"lanes", &Block::lanes}};
constexpr std::array kTileNumbers{Named<Tile>{"tile_m", &Tile::m},          Named<Tile>{"tile_n", &Tile::n},
                                  Named<Tile>{"tile_k", &Tile::k},          Named<Tile>{"thread_m", &Tile::thread_m},
                                  Named<Tile>{"thread_n", &Tile::thread_n}, Named<Tile>{"slices", &Tile::slices}};
constexpr std::array kQuadNumbers{Named<QuadTile>{"tile_m", &QuadTile::m},          Named<QuadTile>{"tile_n", &QuadTile::n},
                                  Named<QuadTile>{"tile_k", &QuadTile::k},          Named<QuadTile>{"thread_m", &QuadTile::thread_m},
                                  Named<QuadTile>{"thread_n", &QuadTile::thread_n}, Named<QuadTile>{"slices", &QuadTile::slices}};

constexpr std::array kMatrixNumbers{Named<MatrixTile>{"tile_m", &MatrixTile::m},        Named<MatrixTile>{"tile_n", &MatrixTile::n},
                                    Named<MatrixTile>{"tile_k", &MatrixTile::depth},    Named<MatrixTile>{"sub_m", &MatrixTile::sub_m},
                                    Named<MatrixTile>{"sub_n", &MatrixTile::sub_n},     Named<MatrixTile>{"unit_m", &MatrixTile::unit_m},
                                    Named<MatrixTile>{"unit_n", &MatrixTile::unit_n},   Named<MatrixTile>{"unit_k", &MatrixTile::unit_k},
                                    Named<MatrixTile>{"lanes", &MatrixTile::lanes},     Named<MatrixTile>{"parts", &MatrixTile::parts},
                                    Named<MatrixTile>{kMatrixBrain, &MatrixTile::brain}};

/// Whether some result is packed and its words do not cross the ends of rows.
bool storesPairs(const Graph& body, const ContractShape& shape) {
  const auto isPacked = [&](const Output& output) { return elementsPerWord(body.typeOf(output.value).dtype) == kContractRun; };
  return shape.n % kContractRun == 0 && std::ranges::any_of(body.outputs, isPacked);
}

std::map<std::string, int64_t, std::less<>> overridesOf(const auto& numbers, const auto& names, bool pairs) {
  std::map<std::string, int64_t, std::less<>> overrides;
  for (const auto& [name, value] : names) overrides.emplace(name, numbers.*value);
  if (pairs) overrides.emplace(kContractPairs, 1);
  return overrides;
}

/// Nothing where the plan lacks a number, has another one, or one that is not positive.
template <class Numbers>
std::optional<Numbers> numbersOf(const TemplatePlan& plan, const auto& names, bool pairs) {
  Numbers numbers{};
  if (plan.overrides.contains(kContractPairs) != pairs) return std::nullopt;
  for (const auto& [name, value] : names) {
    const auto found = plan.overrides.find(name);
    if (found == plan.overrides.end() || found->second < (name == kMatrixBrain ? 0 : 1)) return std::nullopt;
    numbers.*value = found->second;
  }
  return plan.overrides.size() == names.size() + (pairs ? 1 : 0) ? std::optional(numbers) : std::nullopt;
}

/// Neighbours along the inner axis that one of two loops goes over, if the driver lets both of them run.
int64_t innerOf(const PlanQuery& q) {
  const ContractNode contract = findContract(q.body);
  const int64_t inner = innerRun(q.body, contract), k = contract.shape.k;
  return loopCost(k / inner, 1, loopCost(inner, 1, 0)) <= plannedRounds(q.profile) ? inner : 1;
}

/// CPU drivers.
PlanChoice registerRows(const PlanQuery& q, const Block& block, bool pairs) {
  const ContractShape shape = findContract(q.body).shape;
  const int64_t groups = shape.batch * divideUp(shape.m, block.rows) * divideUp(shape.n, block.lanes * block.columns);
  // A driver that runs a workgroup as a loop on one core keeps the sums of a tile in registers only where no counter indexes them.
  TemplatePlan plan{.name = std::string(kRegisterRows),
                    .overrides = overridesOf(block, kBlockNumbers, pairs),
                    .unrolled_stores = block.rows * block.columns};
  if (const int64_t inner = innerOf(q); inner > 1) plan.overrides.emplace(kContractInner, inner);
  return {.plan = std::move(plan), .groups = splitGroups(groups, q.profile)};
}

Block estimateBlock(const ContractShape& shape, const DeviceProfile& profile, bool pairs) {
  const bool knows_vectors = profile.subgroup_size > 1;
  const int64_t widest = knows_vectors ? profile.subgroup_size : cost::kMostLanesCpu;
  const int64_t most_columns = knows_vectors ? cost::kVectorColumns : cost::kPlainColumns;
  const int64_t shared_by = std::min(widest, cost::kColumnsBeforeSharing);
  const int64_t columns = std::clamp<int64_t>(largestPowerOfTwo(divideUp(shape.n, shared_by)), pairs ? kContractRun : 1, most_columns);
  const int64_t lanes = std::clamp<int64_t>(largestPowerOfTwo(divideUp(shape.n, columns)), cost::kLeastLanesCpu, widest);
  return {.rows = std::min(cost::kRegisterRows, largestPowerOfTwo(shape.m)), .columns = columns, .lanes = lanes};
}

PlanChoice sharedTiled(const ContractShape& shape, const DeviceProfile& profile, const Tile& tile, bool pairs) {
  const int64_t groups = shape.batch * divideUp(shape.m, tile.m) * divideUp(shape.n, tile.n);
  return {.plan = TemplatePlan{.name = std::string(kSharedTiled), .overrides = overridesOf(tile, kTileNumbers, pairs)},
          .groups = splitGroups(groups, profile)};
}

Tile estimateTile(const ContractShape& shape, const DeviceProfile& profile) {
  Tile tile{cost::kTiles.back()};
  for (const cost::Tile& candidate : cost::kTiles) {
    int64_t groups = shape.batch * divideUp(shape.m, candidate.m) * divideUp(shape.n, candidate.n);
    if (groups >= profile.parallel_units && candidate.m <= 2 * shape.m && candidate.n <= 2 * shape.n) {
      tile = {candidate};
      break;
    }
  }
  const int64_t most_threads = std::min<int64_t>(profile.max_workgroup_invocations, cost::kFullWorkgroup);
  for (Tile more = tile; more.slices * 2 * more.k <= shape.k && more.slices * 2 * more.threads() <= most_threads; tile = more) {
    more.slices *= 2;
    if (more.workgroupBytes() > profile.max_workgroup_bytes) break;
  }
  return tile;
}

PlanChoice quadTiled(const ContractShape& shape, const DeviceProfile& profile, const QuadTile& tile, bool pairs) {
  const int64_t groups = shape.batch * divideUp(shape.m, tile.m) * divideUp(shape.n, tile.n);
  return {.plan = TemplatePlan{.name = std::string(kQuadTiled), .overrides = overridesOf(tile, kQuadNumbers, pairs)},
          .groups = splitGroups(groups, profile)};
}

/// The type that holds every element of the value: bf16 or f16 where they were rounded to it before, through views and casts.
DType heldType(const Graph& body, ValueId value) {
  const DType dtype = body.typeOf(value).dtype;
  const Node& node = body.definition(value);
  if (dtype != DType::F32 || graph::leafName(node) != nullptr) return dtype;
  if (*node.op->name == "cast") return body.typeOf(node.operands[0]).dtype;
  return std::holds_alternative<ViewLowering>(*node.op->lower) ? heldType(body, node.operands[0]) : dtype;
}

/// What the units of the device do with the operands of the product: the fields of a tile that do not depend on its size. Nothing where
/// they do not take them.
std::optional<MatrixTile> matrixUnits(const PlanQuery& q) {
  const DeviceProfile& profile = q.profile;
  if (profile.style == ExecutionStyle::Cpu || !profile.fixed_subgroups) return std::nullopt;
  const Node& node = q.body[findContract(q.body).node];
  const DType left = heldType(q.body, node.operands[0]), right = heldType(q.body, node.operands[1]);
  const bool brain = left == DType::BF16 && right == DType::BF16, halves = left == DType::F16 && right == DType::F16;
  const program::MatrixShape& unit = brain ? profile.matrix_bf16 : profile.matrix_f16;
  if (unit == program::MatrixShape{} || !profile.f16) return std::nullopt;
  MatrixTile tile{};
  tile.unit_m = unit.m;
  tile.unit_n = unit.n;
  tile.unit_k = unit.k;
  tile.lanes = profile.subgroup_size;
  tile.parts = brain || halves ? 1 : 2;
  tile.brain = brain ? 1 : 0;
  tile.depth = (cost::kMatrixDepth + tile.unit_k - 1) / tile.unit_k * tile.unit_k;
  const bool fits = tile.depth % tile.unit_k == 0 && tile.depth % 8 == 0 && tile.unit_k % 8 == 0 && tile.unit_n % 4 == 0;
  return fits ? std::optional(tile) : std::nullopt;
}

/// A tile of few rows is deeper where no rounding depends on that: each step waits for its loads, however few they are.
MatrixTile withSize(MatrixTile tile, const cost::MatrixTile& size, const ContractShape& shape) {
  static_cast<cost::MatrixTile&>(tile) = size;
  const bool is_deeper =
      size.m <= cost::kNarrow && tile.parts == 1 && shape.k >= cost::kFewRowDepth && cost::kFewRowDepth % tile.depth == 0;
  if (is_deeper) tile.depth = cost::kFewRowDepth;
  return tile;
}

PlanChoice matrixTiled(const ContractShape& shape, const DeviceProfile& profile, const MatrixTile& tile, bool pairs) {
  const int64_t groups = shape.batch * divideUp(shape.m, tile.m) * divideUp(shape.n, tile.n);
  return {.plan = TemplatePlan{.name = std::string(kMatrixTiled), .overrides = overridesOf(tile, kMatrixNumbers, pairs)},
          .groups = splitGroups(groups, profile)};
}

/// Of shared_tiled with its loops over one thread's tile dissolved: a round loads both tiles and goes over them.
int64_t tiledRounds(const ContractShape& shape, const Tile& tile) {
  const int64_t invocations = tile.slices * tile.threads();
  const int64_t load = loopCost(divideUp(tile.slices * tile.k * tile.m, invocations), 1, 0) +
                       loopCost(divideUp(tile.slices * tile.k * tile.n, invocations), 1, 0);
  const int64_t add_up = loopCost(divideUp(tile.m * tile.n, invocations), 1, loopCost(tile.slices, 1, 0));
  return loopCost(divideUp(shape.k, tile.slices * tile.k), 1, load + loopCost(tile.k, 1, 0)) + add_up;
}

/// What the sums of one invocation may be: more do not fit into registers.
constexpr int64_t kMostSums = 64;
/// The same of a subgroup's results by matrix units.
constexpr int64_t kMostMatrixSums = 128;

bool fits(const Block& block, const ContractShape& shape, const DeviceProfile& profile) {
  return block.rows * block.columns <= kMostSums && block.lanes <= mostInvocations(profile) &&
         shape.k <= std::min(plannedRounds(profile), kLongestSum);
}

bool fits(const Tile& tile, const ContractShape& shape, const DeviceProfile& profile) {
  return tile.m % tile.thread_m == 0 && tile.n % tile.thread_n == 0 && tile.thread_m * tile.thread_n <= kMostSums &&
         tile.slices * tile.threads() <= mostInvocations(profile) && tile.workgroupBytes() <= profile.max_workgroup_bytes &&
         tiledRounds(shape, tile) <= plannedRounds(profile);
}

bool fits(const QuadTile& tile, const ContractShape& shape, const DeviceProfile& profile) {
  const auto quads = [](int64_t of_tile, int64_t of_thread) { return of_thread % 4 == 0 && of_tile % of_thread == 0; };
  return quads(tile.m, tile.thread_m) && quads(tile.n, tile.thread_n) && tile.k % 4 == 0 && tile.thread_m * tile.thread_n <= kMostSums &&
         largestPowerOfTwo(tile.slices) == tile.slices && tile.threads() <= mostInvocations(profile) &&
         tile.workgroupBytes() <= profile.max_workgroup_bytes &&
         loopCost(divideUp(shape.k, tile.slices * tile.k) + 1, 1, 0) <= plannedRounds(profile);
}

bool fits(const MatrixTile& tile, const ContractShape& shape, const DeviceProfile& profile) {
  const bool units = tile.sub_m % tile.unit_m == 0 && tile.sub_n % tile.unit_n == 0 && tile.sub_m % 8 == 0 && tile.sub_n % 8 == 0;
  const bool subgroups = tile.m % tile.sub_m == 0 && tile.n % tile.sub_n == 0;
  // Which way the operands lie is not known here: the larger of both.
  const uint64_t bytes = std::max(tile.workgroupBytes(false, true), tile.workgroupBytes(true, false));
  const int64_t sums = tile.sub_m * tile.sub_n / tile.lanes, held = tile.unit_m * tile.unit_n / tile.lanes;
  return units && subgroups && held > 0 && sums <= kMostMatrixSums && tile.threads() <= mostInvocations(profile) &&
         bytes <= profile.max_workgroup_bytes && loopCost(divideUp(shape.k, tile.depth) + 1, 1, 0) <= plannedRounds(profile);
}

/// Nothing for products that are too small for the units, or that they do not take.
std::optional<MatrixTile> estimateMatrix(const PlanQuery& q, const ContractShape& shape) {
  const std::optional<MatrixTile> units = matrixUnits(q);
  if (!units || shape.batch * shape.m * shape.n * shape.k < cost::kLeastMatrixProducts * q.profile.parallel_units) return std::nullopt;
  if (units->parts == 2) {
    // Split operands that lie in no quads take more registers than there are: 34.7 TFLOP/s at 4095^3, and plain f32 makes 45.5.
    const auto [left, right] = quadOperands(q.body, findContract(q.body));
    if (!left.by_quads || !right.by_quads || shape.k < cost::kLeastSplitDepth) return std::nullopt;
  }
  const auto first = [&](const auto& sizes) -> std::optional<MatrixTile> {
    for (const cost::MatrixTile& size : sizes) {
      const MatrixTile tile = withSize(*units, size, shape);
      const int64_t groups = shape.batch * divideUp(shape.m, tile.m) * divideUp(shape.n, tile.n);
      const bool is_last = &size == &sizes.back() && units->parts == 1;
      const bool is_filling = is_last || static_cast<double>(groups) >= cost::kNearlyEvery * q.profile.parallel_units;
      const bool is_wasted = tile.m > 2 * shape.m || tile.n > 2 * shape.n || tile.depth > shape.k;
      // What lies past the edges takes as long as what does not.
      const auto covered = static_cast<double>(groups * tile.m * tile.n), wanted = static_cast<double>(shape.batch * shape.m * shape.n);
      const bool is_beside = &size != &sizes.back() && covered > cost::kMostCovered * wanted;
      if (is_filling && !is_wasted && !is_beside && fits(tile, shape, q.profile)) return tile;
    }
    return std::nullopt;
  };
  const bool has_few_columns = shape.n <= cost::kNarrow;
  if (has_few_columns || shape.m <= cost::kNarrow) {
    using Sizes = std::span<const cost::MatrixTile>;
    if (const std::optional<MatrixTile> narrow = first(has_few_columns ? Sizes(cost::kFewColumnTiles) : Sizes(cost::kFewRowTiles)))
      return narrow;
  }
  return units->parts == 2 ? first(cost::kSplitTiles) : first(cost::kHalfTiles);
}

/// Nothing for products that are too small for any of them.
std::optional<QuadTile> estimateQuads(const ContractShape& shape, const DeviceProfile& profile) {
  if (shape.batch * shape.m * shape.n * shape.k < cost::kLeastQuadProducts) return std::nullopt;
  for (const cost::QuadTile& candidate : cost::kQuadTiles) {
    const QuadTile tile{candidate};
    const int64_t groups = shape.batch * divideUp(shape.m, tile.m) * divideUp(shape.n, tile.n);
    const bool is_last = &candidate == &cost::kQuadTiles.back();
    const bool is_filling = is_last || static_cast<double>(groups) >= cost::kNearlyEvery * profile.parallel_units;
    const bool is_wasted = tile.m > 2 * shape.m || tile.n > 2 * shape.n || tile.slices * tile.k > shape.k;
    if (is_filling && !is_wasted && fits(tile, shape, profile)) return tile;
  }
  return std::nullopt;
}

/// Without shaders/, and for products that are no more than an outer product, one invocation per result does.
bool usesTemplates(const PlanQuery& q, const ContractShape& shape) { return q.templates && shape.k > cost::kOuterProduct; }

}  // namespace

Result<PlanChoice> chooseContract(const PlanQuery& q) {
  ContractShape shape = findContract(q.body).shape;
  // The naive form is also the only one for an inner axis that the templates are not made for; splitReductions leaves none where it runs.
  if (!usesTemplates(q, shape) || !sumsWithinRounds(shape, q.profile)) {
    const int64_t inner = elementRounds(q.body);
    NaiveContractPlan plan{.lanes = cost::kLeastWorkgroup};
    LS_TRY(plan.unroll, chooseUnroll(q, [&](int64_t unroll) { return loopCost(shape.k, unroll, inner) + inner; }));
    return PlanChoice{plan, splitGroups(divideUp(shape.batch * shape.m * shape.n, plan.lanes), q.profile)};
  }
  const bool pairs = storesPairs(q.body, shape);
  if (q.profile.style == ExecutionStyle::Cpu) return registerRows(q, estimateBlock(shape, q.profile, pairs), pairs);
  if (const std::optional<MatrixTile> tile = estimateMatrix(q, shape)) return matrixTiled(shape, q.profile, *tile, pairs);
  if (const std::optional<QuadTile> quads = estimateQuads(shape, q.profile)) return quadTiled(shape, q.profile, *quads, pairs);
  return sharedTiled(shape, q.profile, estimateTile(shape, q.profile), pairs);
}

std::string contractSizes(const PlanQuery& q) {
  const ContractShape shape = findContract(q.body).shape;
  return fmt::format("{}x{}x{}x{}", roundedUp(shape.batch), roundedUp(shape.m), roundedUp(shape.n), roundedUp(shape.k));
}

std::optional<PlanChoice> contractChoice(const program::Plan& plan, const PlanQuery& q) {
  const auto* filled = std::get_if<TemplatePlan>(&plan);
  const ContractShape shape = findContract(q.body).shape;
  if (filled == nullptr || !usesTemplates(q, shape)) return std::nullopt;
  const bool pairs = storesPairs(q.body, shape);
  const bool is_cpu = q.profile.style == ExecutionStyle::Cpu;
  if (filled->name == kMatrixTiled && !is_cpu) {
    const std::optional<MatrixTile> tile = numbersOf<MatrixTile>(*filled, kMatrixNumbers, pairs), units = matrixUnits(q);
    if (!tile || !units) return std::nullopt;
    const MatrixTile wanted = withSize(*units, *tile, shape);
    const auto same = [&](int64_t MatrixTile::* number) { return (*tile).*number == wanted.*number; };
    const bool suits = same(&MatrixTile::depth) && same(&MatrixTile::unit_m) && same(&MatrixTile::unit_n) && same(&MatrixTile::unit_k) &&
                       same(&MatrixTile::lanes) && same(&MatrixTile::parts) && same(&MatrixTile::brain);
    return suits && fits(*tile, shape, q.profile) ? std::optional(matrixTiled(shape, q.profile, *tile, pairs)) : std::nullopt;
  }
  if (filled->name == kQuadTiled && !is_cpu) {
    const std::optional<QuadTile> tile = numbersOf<QuadTile>(*filled, kQuadNumbers, pairs);
    return tile && fits(*tile, shape, q.profile) ? std::optional(quadTiled(shape, q.profile, *tile, pairs)) : std::nullopt;
  }
  if (filled->name != (is_cpu ? kRegisterRows : kSharedTiled)) return std::nullopt;
  if (is_cpu) {
    TemplatePlan measured = *filled;
    measured.overrides.erase(std::string(kContractInner));  // follows from the operands, and shapes alone are measured
    const std::optional<Block> block = numbersOf<Block>(measured, kBlockNumbers, pairs);
    const bool does = block && fits(*block, shape, q.profile) && (!pairs || block->columns % kContractRun == 0);
    return does ? std::optional(registerRows(q, *block, pairs)) : std::nullopt;
  }
  const std::optional<Tile> tile = numbersOf<Tile>(*filled, kTileNumbers, pairs);
  const bool does = tile && fits(*tile, shape, q.profile) && (!pairs || tile->thread_n % kContractRun == 0);
  return does ? std::optional(sharedTiled(shape, q.profile, *tile, pairs)) : std::nullopt;
}

std::vector<program::Plan> contractCandidates(const PlanQuery& q) {
  const ContractShape shape = findContract(q.body).shape;
  std::vector<program::Plan> plans;
  if (!usesTemplates(q, shape)) return plans;
  const bool pairs = storesPairs(q.body, shape);
  const auto offer = [&](const auto& numbers, const auto& make) {
    if (fits(numbers, shape, q.profile)) plans.push_back(make(shape, q.profile, numbers, pairs).plan);
  };
  if (q.profile.style == ExecutionStyle::Cpu) {
    const auto offerBlock = [&](const Block& block) {
      if (fits(block, shape, q.profile)) plans.push_back(registerRows(q, block, pairs).plan);
    };
    for (const int64_t rows : {1, 2, 4, 8, 16})
      for (const int64_t columns : {1, 2, 4, 8})
        for (const int64_t lanes : {4, 8, 16, 32, 64}) {
          const bool is_wasted = rows >= 2 * shape.m || columns * lanes >= 2 * shape.n;
          if (pairs && columns % kContractRun != 0) continue;
          if (!is_wasted || (rows == 1 && columns == 1)) offerBlock({rows, columns, lanes});
        }
    return plans;
  }
  for (const cost::Tile& tile : cost::kMeasuredTiles)
    for (const int64_t slices : {1, 2, 4, 8, 16}) {
      const bool is_wasted = tile.m >= 2 * shape.m || tile.n >= 2 * shape.n || (slices - 1) * tile.k >= shape.k;
      if (!is_wasted || (tile.m == cost::kTiles.back().m && slices == 1)) offer(Tile{tile, slices}, sharedTiled);
    }
  if (const std::optional<MatrixTile> units = matrixUnits(q)) {
    for (const cost::MatrixTile& size : cost::kMeasuredMatrixTiles) {
      if (size.m <= 2 * shape.m && size.n <= 2 * shape.n) offer(withSize(*units, size, shape), matrixTiled);
    }
  }
  for (const cost::QuadTile& tile : cost::kMeasuredQuadTiles) {
    if (tile.m <= 2 * shape.m && tile.n <= 2 * shape.n && tile.slices * tile.k <= shape.k) offer(QuadTile{tile}, quadTiled);
  }
  return plans;
}

bool sumsWithinRounds(const ContractShape& shape, const DeviceProfile& profile) {
  if (profile.style == ExecutionStyle::Cpu) return shape.k <= std::min(plannedRounds(profile), kLongestSum);
  if (profile.max_loop_iterations == 0) return true;
  return tiledRounds(shape, estimateTile(shape, profile)) <= plannedRounds(profile);
}

}  // namespace lockstep::passes
