// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/strategy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "passes/schedule/row_phases.h"

namespace lockstep::passes {

using namespace graph;
using program::DeviceProfile;
using program::ExecutionStyle;

std::array<uint32_t, 3> splitGroups(uint64_t groups, const DeviceProfile& profile) {
  uint64_t limit = profile.max_groups_per_dimension;
  if (groups <= limit) return {static_cast<uint32_t>(groups), 1, 1};
  return {static_cast<uint32_t>(limit), static_cast<uint32_t>((groups + limit - 1) / limit), 1};
}

ContractNode findContract(const Graph& body) {
  for (NodeId id : body.body().nodes) {
    if (const auto* contract = std::get_if<ContractLowering>(&*body[id].op->lower)) return {id, contract->shape(body, body[id])};
  }
  internalError("a contract group has no contraction");
}

ScatterNode findScatter(const Graph& body) {
  for (NodeId id : body.body().nodes) {
    if (const auto* scatter = std::get_if<ScatterLowering>(&*body[id].op->lower)) return {id, scatter->shape(body, body[id])};
  }
  internalError("a scatter group has no scatter");
}

ScanSpace scanSpace(const Graph& body) {
  for (NodeId id : body.body().nodes) {
    const auto* scan = std::get_if<ScanLowering>(&*body[id].op->lower);
    if (scan == nullptr) continue;
    const Shape& shape = body.shapeOf(body[id].results[0]);
    auto axis = static_cast<size_t>(scan->axis(body, body[id]));
    ScanSpace space{.node = id, .outer = 1, .length = shape.extent(axis), .inner = shape.strides()[axis]};
    space.outer = shape.elementCount() / (space.length * space.inner);
    return space;
  }
  internalError("a scan group has no scan");
}

NodeId findReduce(const Graph& body) {
  for (NodeId id : body.body().nodes) {
    if (std::holds_alternative<ReduceLowering>(*body[id].op->lower)) return id;
  }
  internalError("a reducing group has no reduction");
}

int64_t unrollOf(const Attributes& parameters) {
  const Attribute* unroll = parameters.find("unroll");
  return unroll == nullptr ? 1 : std::get<int64_t>(*unroll);
}

int64_t plannedRounds(const DeviceProfile& profile) {
  if (profile.max_loop_iterations == 0) return int64_t{1} << 60;
  // What the closed forms of the plans leave out: loops of a constant number of rounds around the long one.
  return int64_t{profile.max_loop_iterations} * 11 / 12;
}

namespace {

int64_t mostInvocations(const DeviceProfile& profile) { return std::min(profile.max_workgroup_invocations, profile.max_workgroup_size_x); }

int64_t divideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t largestPowerOfTwo(int64_t at_most) {
  int64_t power = 1;
  while (power * 2 <= at_most) power *= 2;
  return power;
}

constexpr int64_t kMostUnroll = 64;
// Elements that one register adds up, whatever a device allows: more lose bits.
constexpr int64_t kLongestSum = 65536;

/// The rounds of the loops that ops of the body emit for one element.
int64_t elementRounds(const Graph& body) {
  int64_t rounds = 0;
  for (NodeId id : body.body().nodes) {
    const auto* element = std::get_if<ElementLowering>(&*body[id].op->lower);
    if (element != nullptr && element->rounds > 0) rounds += element->rounds + 1;
  }
  return rounds;
}

/// A loop of `count` elements, `unroll` of them per round.
int64_t loopCost(int64_t count, int64_t unroll, int64_t element) { return divideUp(count, unroll) * (1 + unroll * element) + 1; }

/// The fewest bodies per round that keep a plan within the planned rounds, or an error. `cost` gives its rounds by that number.
Status chooseUnroll(const StrategyQuery& q, Attributes& parameters, const std::function<int64_t(int64_t)>& cost) {
  for (int64_t unroll = 1; unroll <= kMostUnroll; unroll *= 2) {
    if (cost(unroll) > plannedRounds(q.profile)) continue;
    if (unroll > 1) parameters.set("unroll", unroll);
    return Success{};
  }
  const Node& last = q.body[q.body.body().nodes.back()];
  return fail("schedule.loop_limit",
              fmt::format("a kernel of kind '{}' needs {} rounds of its loops per invocation, and the device ends them after {}", q.kind,
                          cost(kMostUnroll), q.profile.max_loop_iterations),
              last.location == 0 ? Location{} : q.body.locations[last.location - 1],
              "reduce in two steps (reshape the long axis to two) or use a device without this limit");
}

Result<StrategyChoice> chooseMap(const StrategyQuery& q) {
  int64_t elements = 1;
  for (const Output& output : q.body.outputs) elements = std::max(elements, q.body.shapeOf(output.value).elementCount());
  // Enough workgroups for every unit before they grow to their full size.
  int64_t lanes = std::min<int64_t>(q.profile.max_workgroup_invocations, 256);
  while (lanes > 64 && elements / lanes < q.profile.parallel_units) lanes /= 2;
  return StrategyChoice{"map", {{"lanes", lanes}}, splitGroups(static_cast<uint64_t>(divideUp(elements, lanes)), q.profile)};
}

Result<StrategyChoice> chooseRows(const StrategyQuery& q) {
  const RowPhases plan = findRowPhases(q.body);
  const int64_t rows = plan.rows, columns = plan.columns;
  int64_t invocations = std::min<int64_t>(q.profile.max_workgroup_invocations, 256);
  // A row is shared by `lanes` invocations; on CPU drivers barriers are expensive, so a row has one invocation unless there are few long
  // rows.
  int64_t lanes = 1;
  bool few_long_rows = rows < 4 * q.profile.parallel_units && columns >= 256;
  if (q.profile.style == ExecutionStyle::Gpu || few_long_rows)
    lanes = std::clamp<int64_t>(largestPowerOfTwo(std::max<int64_t>(columns / 2, 1)), 1, few_long_rows ? invocations : 32);
  const int64_t inner = elementRounds(q.body);
  auto rounds = [&](int64_t unroll) {
    return static_cast<int64_t>(plan.loops()) * loopCost(divideUp(columns, lanes), unroll, inner) + 2 * inner;
  };
  const int64_t most_lanes = largestPowerOfTwo(mostInvocations(q.profile));
  while ((rounds(1) > plannedRounds(q.profile) || divideUp(columns, lanes) > kLongestSum) && lanes < most_lanes) lanes *= 2;
  int64_t rows_per_group = std::max<int64_t>(1, (q.profile.style == ExecutionStyle::Gpu ? 128 : 64) / lanes);
  rows_per_group = std::min(rows_per_group, largestPowerOfTwo(std::max<int64_t>(1, rows)));
  StrategyChoice choice{"rows",
                        {{"lanes", lanes}, {"rows_per_group", rows_per_group}},
                        splitGroups(static_cast<uint64_t>(divideUp(rows, rows_per_group)), q.profile)};
  LS_CHECK(chooseUnroll(q, choice.parameters, rounds));
  return choice;
}

Result<StrategyChoice> chooseColumns(const StrategyQuery& q) {
  const Node& reduce = q.body[findReduce(q.body)];
  int64_t results = q.body.shapeOf(reduce.results[0]).elementCount();
  int64_t length = q.body.shapeOf(reduce.operands[0]).elementCount() / results;
  int64_t width = 32, lanes = 1;
  if (q.profile.style == ExecutionStyle::Gpu) {
    // Workgroups are full however short the columns are: equal ones can be merged.
    int64_t invocations = std::min<int64_t>(q.profile.max_workgroup_invocations, 256);
    lanes = std::clamp<int64_t>(largestPowerOfTwo(length), 1, invocations / 16);
    width = invocations / lanes;
  }
  const int64_t inner = elementRounds(q.body);
  auto rounds = [&](int64_t unroll) { return loopCost(divideUp(length, lanes), unroll, inner) + 2 * inner; };
  const int64_t most_lanes = largestPowerOfTwo(mostInvocations(q.profile));
  while ((rounds(1) > plannedRounds(q.profile) || divideUp(length, lanes) > kLongestSum) && lanes < most_lanes) {
    lanes *= 2;
    while (width * lanes > most_lanes) width /= 2;
  }
  StrategyChoice choice{
      "columns", {{"width", width}, {"lanes", lanes}}, splitGroups(static_cast<uint64_t>(divideUp(results, width)), q.profile)};
  LS_CHECK(chooseUnroll(q, choice.parameters, rounds));
  return choice;
}

Result<StrategyChoice> chooseScan(const StrategyQuery& q) {
  ScanSpace space = scanSpace(q.body);
  // Neighbouring lines are neighbouring elements when there is an inner axis; otherwise the lanes of a workgroup share a line.
  int64_t lanes = 64, shared = space.inner >= 16 ? 1 : std::clamp<int64_t>(largestPowerOfTwo(divideUp(space.length, 4)), 1, lanes);
  const int64_t inner = elementRounds(q.body);
  // Lanes that share a line go over it twice.
  auto rounds = [&](int64_t unroll) {
    int64_t walk = loopCost(divideUp(space.length, shared), unroll, inner);
    return shared == 1 ? walk : 2 * walk + lanes + 1;
  };
  const int64_t most_lanes = largestPowerOfTwo(mostInvocations(q.profile));
  while (rounds(1) > plannedRounds(q.profile) && shared < most_lanes) {
    shared *= 2;
    lanes = std::max(lanes, shared);
  }
  StrategyChoice choice{"scan",
                        {{"lanes", lanes}, {"lanes_per_line", shared}},
                        splitGroups(static_cast<uint64_t>(divideUp(space.outer * space.inner, lanes / shared)), q.profile)};
  LS_CHECK(chooseUnroll(q, choice.parameters, rounds));
  return choice;
}

Result<StrategyChoice> chooseScatter(const StrategyQuery& q) {
  ScatterNode scatter = findScatter(q.body);
  // Many rows per segment are added in parts; if the indices are spread evenly, a part has four or more.
  int64_t parts = largestPowerOfTwo(std::clamp<int64_t>(scatter.shape.length / scatter.shape.segments / 4, 1, 16));
  int64_t wide = scatter.shape.inner == 1 ? 1 : 2 * largestPowerOfTwo(divideUp(scatter.shape.inner, 2));
  int64_t lanes = parts > 1 && wide * parts >= 8 ? 256 : 64;  // the masks grow with the segments that are left for a workgroup
  const int64_t inner = elementRounds(q.body);
  auto columns = [&] { return std::min(lanes / parts, wide); };
  auto rounds = [&](int64_t unroll) {
    int64_t chunk = lanes * kIndicesPerLane, words = chunk / kMaskBits, segments = lanes / (columns() * parts);
    int64_t clear = loopCost(divideUp(segments * words, lanes), 1, 0), mark = loopCost(kIndicesPerLane, 1, inner);
    int64_t add = loopCost(divideUp(words, parts), 1, loopCost(kMaskBits, unroll, inner));
    return loopCost(divideUp(scatter.shape.length, chunk), 1, clear + mark + add) + parts + 1 + inner;
  };
  // A part takes whole words of the masks.
  const int64_t most_lanes = largestPowerOfTwo(mostInvocations(q.profile));
  while (rounds(1) > plannedRounds(q.profile)) {
    if (2 * parts <= lanes * kIndicesPerLane / kMaskBits) {
      parts *= 2;
    } else if (2 * lanes <= most_lanes) {
      lanes *= 2;
    } else {
      break;
    }
  }
  int64_t segments = lanes / (columns() * parts);
  int64_t groups = scatter.shape.outer * divideUp(scatter.shape.segments, segments) * divideUp(scatter.shape.inner, columns());
  StrategyChoice choice{
      "scatter", {{"lanes", lanes}, {"columns", columns()}, {"parts", parts}}, splitGroups(static_cast<uint64_t>(groups), q.profile)};
  LS_CHECK(chooseUnroll(q, choice.parameters, rounds));
  return choice;
}

/// CPU drivers: rows of A are read uniformly by a workgroup, columns of B by its lanes. A driver with a known vector width loads each lane
/// by itself, so an invocation takes as many results as there are registers; one without (an interpreter) wants more lanes instead.
StrategyChoice registerRows(const ContractShape& shape, const DeviceProfile& profile) {
  int64_t vector = profile.subgroup_size, widest = vector > 1 ? vector : 64, most_columns = vector > 1 ? 8 : 2;
  int64_t columns = std::clamp<int64_t>(largestPowerOfTwo(divideUp(shape.n, std::min<int64_t>(widest, 32))), 1, most_columns);
  int64_t lanes = std::clamp<int64_t>(largestPowerOfTwo(divideUp(shape.n, columns)), 8, widest);
  int64_t rows = std::min<int64_t>(8, largestPowerOfTwo(shape.m));
  int64_t groups = shape.batch * divideUp(shape.m, rows) * divideUp(shape.n, lanes * columns);
  return {"register_rows", {{"rows", rows}, {"columns", columns}, {"lanes", lanes}}, splitGroups(static_cast<uint64_t>(groups), profile)};
}

/// GPUs: the largest tile that still gives every unit a workgroup; small products with a long k split it among the invocations.
StrategyChoice sharedTiled(const ContractShape& shape, const DeviceProfile& profile) {
  struct Tile {
    int64_t m, n, k, thread_m, thread_n;
  };
  static constexpr std::array kTiles{Tile{64, 64, 16, 4, 4}, Tile{32, 64, 16, 4, 4}, Tile{32, 32, 16, 2, 4}, Tile{16, 32, 16, 2, 2},
                                     Tile{16, 16, 16, 2, 2}};
  const Tile* chosen = &kTiles.back();
  for (const Tile& tile : kTiles) {
    int64_t groups = shape.batch * divideUp(shape.m, tile.m) * divideUp(shape.n, tile.n);
    if (groups >= profile.parallel_units && tile.m <= 2 * shape.m && tile.n <= 2 * shape.n) {
      chosen = &tile;
      break;
    }
  }
  const Tile& tile = *chosen;
  int64_t invocations = (tile.m / tile.thread_m) * (tile.n / tile.thread_n);
  // Partial sums go through workgroup memory only where there are several.
  auto bytes = [&](int64_t slices) { return 4 * slices * (tile.k * (tile.m + 1 + tile.n + 1) + (slices > 1 ? tile.m * tile.n : 0)); };
  int64_t slices = 1;
  while (slices * 2 * tile.k <= shape.k && slices * 2 * invocations <= std::min<int64_t>(profile.max_workgroup_invocations, 256) &&
         bytes(slices * 2) <= profile.max_workgroup_bytes)
    slices *= 2;
  int64_t groups = shape.batch * divideUp(shape.m, tile.m) * divideUp(shape.n, tile.n);
  return {"shared_tiled",
          {{"tile_m", tile.m},
           {"tile_n", tile.n},
           {"tile_k", tile.k},
           {"thread_m", tile.thread_m},
           {"thread_n", tile.thread_n},
           {"slices", slices}},
          splitGroups(static_cast<uint64_t>(groups), profile)};
}

/// Of shared_tiled with its loops over one thread's tile dissolved: a round loads both tiles and goes over them.
int64_t tiledRounds(const ContractShape& shape, const StrategyChoice& choice) {
  auto number = [&](std::string_view name) { return choice.parameters.get<int64_t>(name); };
  const int64_t slices = number("slices"), tile_m = number("tile_m"), tile_n = number("tile_n"), tile_k = number("tile_k");
  const int64_t invocations = slices * (tile_m / number("thread_m")) * (tile_n / number("thread_n"));
  const int64_t load =
      loopCost(divideUp(slices * tile_k * tile_m, invocations), 1, 0) + loopCost(divideUp(slices * tile_k * tile_n, invocations), 1, 0);
  const int64_t add_up = loopCost(divideUp(tile_m * tile_n, invocations), 1, loopCost(slices, 1, 0));
  return loopCost(divideUp(shape.k, slices * tile_k), 1, load + loopCost(tile_k, 1, 0)) + add_up;
}

Result<StrategyChoice> chooseContract(const StrategyQuery& q) {
  ContractShape shape = findContract(q.body).shape;
  // Without shaders/, and for products that are no more than an outer product, one invocation per result does. It is also the only form for
  // an inner axis that the templates are not made for; splitReductions leaves none where it runs.
  if (!q.templates || shape.k <= 2 || !sumsWithinRounds(shape, q.profile)) {
    int64_t lanes = 64;
    StrategyChoice choice{"naive_contract",
                          {{"lanes", lanes}},
                          splitGroups(static_cast<uint64_t>(divideUp(shape.batch * shape.m * shape.n, lanes)), q.profile)};
    const int64_t inner = elementRounds(q.body);
    LS_CHECK(chooseUnroll(q, choice.parameters, [&](int64_t unroll) { return loopCost(shape.k, unroll, inner) + inner; }));
    return choice;
  }
  return q.profile.style == ExecutionStyle::Cpu ? registerRows(shape, q.profile) : sharedTiled(shape, q.profile);
}

struct Row {
  std::string_view kind;
  Result<StrategyChoice> (*choose)(const StrategyQuery&);
};
constexpr std::array kRows{Row{"map", chooseMap},   Row{"rows", chooseRows},       Row{"columns", chooseColumns},
                           Row{"scan", chooseScan}, Row{"scatter", chooseScatter}, Row{"contract", chooseContract}};

}  // namespace

bool sumsWithinRounds(const ContractShape& shape, const DeviceProfile& profile) {
  if (profile.style == ExecutionStyle::Cpu) return shape.k <= std::min(plannedRounds(profile), kLongestSum);
  if (profile.max_loop_iterations == 0) return true;
  return tiledRounds(shape, sharedTiled(shape, profile)) <= plannedRounds(profile);
}

Result<StrategyChoice> chooseStrategy(const StrategyQuery& query) {
  for (const Row& row : kRows) {
    if (row.kind == query.kind) return row.choose(query);
  }
  internalError(fmt::format("there is no strategy for a group of kind '{}'", query.kind));
}

}  // namespace lockstep::passes
