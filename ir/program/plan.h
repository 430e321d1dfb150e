// SPDX-License-Identifier: Apache-2.0
// How a group becomes a kernel: one struct per kind of plan. `schedule` chooses a plan, everything after it reads the same value, and two
// kernels are one when their plans and their bodies are equal.
//
// A new kind is a struct here with its place in the list Plan, an emitter (passes/emit/emitters.h) and whoever chooses it
// (passes/schedule/choose_plan.h); without its emitter it does not compile. A template of shaders/ for contractions is a TemplatePlan with
// its name; an op with templates of its own (GroupKind::Template) has plans such as StreamPlan.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "ir/graph/group_kind.h"
#include "ir/support/result.h"
#include "ir/support/text.h"

namespace lockstep::program {

/// What a number of a plan can be: at least 1, and a power of two where lanes are combined by halves. An unroll of 1 is left out of texts,
/// and so is every other number that is 1 where a plan does without.
enum class PlanNumber : uint8_t { Any, PowerOfTwo, Unroll };

/// One invocation per element.
struct MapPlan {
  static constexpr std::string_view kName = "map";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Map;
  int64_t lanes = 1;  ///< invocations of a workgroup
  static constexpr void each(auto& plan, auto&& number) { number("lanes", plan.lanes, PlanNumber::Any); }
  friend bool operator==(const MapPlan&, const MapPlan&) = default;
};

/// A map of many elements: an invocation has several, a workgroup's width apart, and loads all of them before it stores the first. So more
/// loads are under way at a time.
struct StripsPlan {
  static constexpr std::string_view kName = "strips";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Map;
  int64_t lanes = 1;     ///< invocations of a workgroup
  int64_t per_lane = 1;  ///< elements of an invocation
  static constexpr void each(auto& plan, auto&& number) {
    number("lanes", plan.lanes, PlanNumber::Any);
    number("per_lane", plan.per_lane, PlanNumber::Any);
  }
  friend bool operator==(const StripsPlan&, const StripsPlan&) = default;
};

/// A map in which an invocation has `width` neighbouring elements, so that it alone writes the words that packed ones share.
struct VectorPlan {
  static constexpr std::string_view kName = "vector";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Map;
  int64_t lanes = 1;  ///< invocations of a workgroup
  int64_t width = 4;  ///< elements of an invocation; whole words of every result
  static constexpr void each(auto& plan, auto&& number) {
    number("lanes", plan.lanes, PlanNumber::Any);
    number("width", plan.width, PlanNumber::PowerOfTwo);
  }
  friend bool operator==(const VectorPlan&, const VectorPlan&) = default;
};

/// Reductions over rows, with the elements around them.
struct RowsPlan {
  static constexpr std::string_view kName = "rows";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Rows;
  int64_t lanes = 1;  ///< invocations that share a row
  int64_t rows_per_group = 1;
  int64_t unroll = 1;  ///< elements per round of a loop over the row
  static constexpr void each(auto& plan, auto&& number) {
    number("lanes", plan.lanes, PlanNumber::PowerOfTwo);
    number("rows_per_group", plan.rows_per_group, PlanNumber::Any);
    number("unroll", plan.unroll, PlanNumber::Unroll);
  }
  friend bool operator==(const RowsPlan&, const RowsPlan&) = default;
};

/// The same where a row fits the registers of its lanes: each element is read once, whatever number of reductions and results it goes into.
/// A workgroup may stay for several rounds of rows, and then keeps sums by columns of all of them.
struct HeldRowsPlan {
  static constexpr std::string_view kName = "held_rows";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Rows;
  int64_t lanes = 1;           ///< invocations that share a row
  int64_t rows_per_group = 1;  ///< rows side by side, of other lanes
  int64_t width = 1;           ///< neighbouring elements that are loaded at once; columns are a multiple of it
  int64_t per_lane = 1;        ///< of these in an invocation
  int64_t subgroup = 1;        ///< invocations of a subgroup, which exchange values without workgroup memory; 1: nothing is known of them
  int64_t rounds = 1;          ///< rows one after the other
  int64_t rows_per_lane = 1;   ///< rows at the same time: what all rows read is loaded once for these
  static constexpr void each(auto& plan, auto&& number) {
    number("lanes", plan.lanes, PlanNumber::PowerOfTwo);
    number("per_lane", plan.per_lane, PlanNumber::Any);
    number("rounds", plan.rounds, PlanNumber::Unroll);
    number("rows_per_group", plan.rows_per_group, PlanNumber::Any);
    number("rows_per_lane", plan.rows_per_lane, PlanNumber::Unroll);
    number("subgroup", plan.subgroup, PlanNumber::Unroll);
    number("width", plan.width, PlanNumber::PowerOfTwo);
  }
  friend bool operator==(const HeldRowsPlan&, const HeldRowsPlan&) = default;
};

/// Reductions over axes that are not the last ones.
struct ColumnsPlan {
  static constexpr std::string_view kName = "columns";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Columns;
  int64_t width = 1;     ///< neighbouring results of a workgroup
  int64_t lanes = 1;     ///< invocations that share a result
  int64_t unroll = 1;    ///< elements per round
  int64_t vector = 1;    ///< neighbouring results of an invocation
  int64_t subgroup = 1;  ///< invocations of a subgroup, which exchange values without workgroup memory; 1: nothing is known of them
  static constexpr void each(auto& plan, auto&& number) {
    number("lanes", plan.lanes, PlanNumber::PowerOfTwo);
    number("subgroup", plan.subgroup, PlanNumber::Unroll);
    number("unroll", plan.unroll, PlanNumber::Unroll);
    number("vector", plan.vector, PlanNumber::Unroll);
    number("width", plan.width, PlanNumber::Any);
  }
  friend bool operator==(const ColumnsPlan&, const ColumnsPlan&) = default;
};

/// Prefixes along the lines of an axis.
struct ScanPlan {
  static constexpr std::string_view kName = "scan";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Scan;
  int64_t lanes = 1;           ///< invocations of a workgroup
  int64_t lanes_per_line = 1;  ///< invocations that share a line
  int64_t unroll = 1;          ///< elements per round; where an invocation has several neighbours, of each
  /// Neighbours that an invocation loads at once: of a line where its elements are contiguous, else lines side by side.
  int64_t vector = 1;
  static constexpr void each(auto& plan, auto&& number) {
    number("lanes", plan.lanes, PlanNumber::Any);
    number("lanes_per_line", plan.lanes_per_line, PlanNumber::PowerOfTwo);
    number("unroll", plan.unroll, PlanNumber::Unroll);
    number("vector", plan.vector, PlanNumber::Unroll);
  }
  friend bool operator==(const ScanPlan&, const ScanPlan&) = default;
};

/// Sums of the rows whose index names a segment. A workgroup marks the rows of its segments in bit masks and then adds them.
struct ScatterPlan {
  static constexpr std::string_view kName = "scatter";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Scatter;
  /// Indices that an invocation looks at between two barriers, and rows per word of the masks.
  static constexpr int64_t kIndicesPerLane = 8, kMaskBits = 32;
  int64_t lanes = 1;    ///< invocations of a workgroup
  int64_t columns = 1;  ///< of the result, per workgroup; with `vector` so many times that
  int64_t parts = 1;    ///< invocations that share an element of the result
  int64_t unroll = 1;   ///< marked rows per round
  int64_t vector = 1;   ///< neighbouring columns of an invocation

  [[nodiscard]] constexpr int64_t segments() const { return lanes / (columns * parts); }  ///< per workgroup
  [[nodiscard]] constexpr int64_t chunk() const { return lanes * kIndicesPerLane; }       ///< indices between two barriers
  [[nodiscard]] constexpr int64_t words() const { return chunk() / kMaskBits; }           ///< of a segment's mask
  static constexpr void each(auto& plan, auto&& number) {
    number("columns", plan.columns, PlanNumber::PowerOfTwo);
    number("lanes", plan.lanes, PlanNumber::PowerOfTwo);
    number("parts", plan.parts, PlanNumber::PowerOfTwo);
    number("unroll", plan.unroll, PlanNumber::Unroll);
    number("vector", plan.vector, PlanNumber::Unroll);
  }
  friend bool operator==(const ScatterPlan&, const ScatterPlan&) = default;
};

/// A contraction with one invocation per result.
struct NaiveContractPlan {
  static constexpr std::string_view kName = "naive_contract";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Contract;
  int64_t lanes = 1;   ///< invocations of a workgroup
  int64_t unroll = 1;  ///< products per round
  static constexpr void each(auto& plan, auto&& number) {
    number("lanes", plan.lanes, PlanNumber::Any);
    number("unroll", plan.unroll, PlanNumber::Unroll);
  }
  friend bool operator==(const NaiveContractPlan&, const NaiveContractPlan&) = default;
};

/// A contraction by the template matmul_<name> of shaders/, whose hooks are filled in.
struct TemplatePlan {
  static constexpr std::string_view kName = "template";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Contract;
  std::string name;
  std::map<std::string, int64_t, std::less<>> overrides = {};  ///< besides the extents
  /// Results of an invocation that are stored without a loop, where the text stays short; 0: by a loop.
  int64_t unrolled_stores = 0;
  friend bool operator==(const TemplatePlan&, const TemplatePlan&) = default;
};

/// An op with templates by one invocation per row, which goes over the other side in blocks and keeps its row in registers: the template
/// NAME_stream.
struct StreamPlan {
  static constexpr std::string_view kName = "stream";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Template;
  int64_t lanes = 1;   ///< invocations of a workgroup
  int64_t block = 1;   ///< steps per round of the loop
  int64_t vector = 1;  ///< elements that are loaded at once, 1 or 4
  static constexpr void each(auto& plan, auto&& number) {
    number("block", plan.block, PlanNumber::Any);
    number("lanes", plan.lanes, PlanNumber::Any);
    number("vector", plan.vector, PlanNumber::Unroll);
  }
  friend bool operator==(const StreamPlan&, const StreamPlan&) = default;
};

/// The same for GPUs: several neighbouring invocations share some rows, whose elements are spread over their registers, and the other side
/// goes through workgroup memory: the template NAME_tiled.
struct TiledPlan {
  static constexpr std::string_view kName = "tiled";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Template;
  int64_t lanes = 1;        ///< invocations of a workgroup
  int64_t across = 1;       ///< that share rows; where there are several, they are neighbours in a subgroup
  int64_t thread_rows = 1;  ///< rows that they share
  int64_t shares = 1;       ///< groups of invocations that take turns with the blocks of the same rows and are put together at the end
  int64_t tile = 1;         ///< steps that go through workgroup memory at a time
  int64_t block = 1;        ///< steps that are taken together, a divisor of tile
  int64_t vector = 1;       ///< elements that are loaded at once, 1 or 4
  int64_t subgroup = 1;     ///< invocations of a subgroup, where they exchange values
  static constexpr void each(auto& plan, auto&& number) {
    number("across", plan.across, PlanNumber::PowerOfTwo);
    number("block", plan.block, PlanNumber::Any);
    number("lanes", plan.lanes, PlanNumber::Any);
    number("shares", plan.shares, PlanNumber::Unroll);
    number("subgroup", plan.subgroup, PlanNumber::Unroll);
    number("thread_rows", plan.thread_rows, PlanNumber::Any);
    number("tile", plan.tile, PlanNumber::Any);
    number("vector", plan.vector, PlanNumber::Unroll);
  }
  /// Rows of a workgroup.
  [[nodiscard]] int64_t rows() const { return lanes / shares / across * thread_rows; }
  friend bool operator==(const TiledPlan&, const TiledPlan&) = default;
};

/// An op with templates by one workgroup per row, whose invocations share out the other side and put together what they find: the template
/// NAME_split.
struct SplitPlan {
  static constexpr std::string_view kName = "split";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Template;
  int64_t lanes = 1;     ///< invocations of a workgroup
  int64_t across = 1;    ///< that share a step; where there are several, they are neighbours in a subgroup
  int64_t block = 1;     ///< steps that they take together
  int64_t vector = 1;    ///< elements that are loaded at once, 1 or 4
  int64_t subgroup = 1;  ///< invocations of a subgroup, where they exchange values
  static constexpr void each(auto& plan, auto&& number) {
    number("across", plan.across, PlanNumber::PowerOfTwo);
    number("block", plan.block, PlanNumber::Any);
    number("lanes", plan.lanes, PlanNumber::Any);
    number("subgroup", plan.subgroup, PlanNumber::Unroll);
    number("vector", plan.vector, PlanNumber::Unroll);
  }
  friend bool operator==(const SplitPlan&, const SplitPlan&) = default;
};

/// An op by the template NAME_digits: each subgroup has rows of packed integers, and what they are multiplied by goes through workgroup
/// memory as digits.
struct DigitsPlan {
  static constexpr std::string_view kName = "digits";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Template;
  int64_t lanes = 1;        ///< invocations of a subgroup
  int64_t lane_pieces = 1;  ///< vectors of four words of a row that an invocation has at a time
  int64_t rounds = 1;       ///< times that a subgroup has other rows
  int64_t sub_rows = 1;     ///< rows of a subgroup at a time
  int64_t subgroups = 1;    ///< of a workgroup
  int64_t turns = 1;        ///< times lane_pieces of a row whose digits are kept
  int64_t vector = 1;       ///< words that are loaded at once, 1 or 4
  static constexpr void each(auto& plan, auto&& number) {
    number("lane_pieces", plan.lane_pieces, PlanNumber::Any);
    number("lanes", plan.lanes, PlanNumber::PowerOfTwo);
    number("rounds", plan.rounds, PlanNumber::Any);
    number("sub_rows", plan.sub_rows, PlanNumber::Any);
    number("subgroups", plan.subgroups, PlanNumber::Any);
    number("turns", plan.turns, PlanNumber::Any);
    number("vector", plan.vector, PlanNumber::Unroll);
  }
  friend bool operator==(const DigitsPlan&, const DigitsPlan&) = default;
};

/// An op by the template NAME_matrix, for matrix units: each subgroup has rows of its own, and the other side goes through workgroup
/// memory.
struct MatrixPlan {
  static constexpr std::string_view kName = "matrix";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Template;
  int64_t brain = 1;      ///< 2: what is multiplied is bf16, not f16
  int64_t lanes = 1;      ///< invocations of a subgroup
  int64_t parts = 1;      ///< 2: of f32, in two parts
  int64_t sub_rows = 1;   ///< rows of a subgroup, a multiple of unit_m
  int64_t subgroups = 1;  ///< of a workgroup
  int64_t tile = 1;       ///< steps that go through workgroup memory at a time, a multiple of unit
  int64_t unit = 1;       ///< n and k of the units
  int64_t unit_m = 1;
  int64_t vector = 1;  ///< elements that are loaded at once, 1 or 4
  static constexpr void each(auto& plan, auto&& number) {
    number("brain", plan.brain, PlanNumber::Unroll);
    number("lanes", plan.lanes, PlanNumber::PowerOfTwo);
    number("parts", plan.parts, PlanNumber::Unroll);
    number("sub_rows", plan.sub_rows, PlanNumber::Any);
    number("subgroups", plan.subgroups, PlanNumber::Any);
    number("tile", plan.tile, PlanNumber::Any);
    number("unit", plan.unit, PlanNumber::Any);
    number("unit_m", plan.unit_m, PlanNumber::Any);
    number("vector", plan.vector, PlanNumber::Unroll);
  }
  /// Rows of a workgroup.
  [[nodiscard]] int64_t rows() const { return subgroups * sub_rows; }
  friend bool operator==(const MatrixPlan&, const MatrixPlan&) = default;
};

/// An op by one workgroup per run of rows, which has both sides of it in workgroup memory: the template NAME_whole.
struct WholePlan {
  static constexpr std::string_view kName = "whole";
  static constexpr graph::GroupKind kKind = graph::GroupKind::Template;
  int64_t lanes = 1;   ///< invocations of a workgroup
  int64_t vector = 1;  ///< elements that are loaded at once, 1 or 4
  static constexpr void each(auto& plan, auto&& number) {
    number("lanes", plan.lanes, PlanNumber::Any);
    number("vector", plan.vector, PlanNumber::Unroll);
  }
  friend bool operator==(const WholePlan&, const WholePlan&) = default;
};

/// Contractions and reductions of the same rows, which stay in the memory of their workgroup from one to the next.
struct RowChainPlan {
  static constexpr std::string_view kName = "row_chain";
  static constexpr graph::GroupKind kKind = graph::GroupKind::RowChain;
  int64_t lanes = 1;           ///< invocations of a workgroup
  int64_t rows_per_group = 1;  ///< at most `lanes`
  int64_t subgroup = 1;        ///< invocations of a subgroup, which exchange values without workgroup memory; 1: nothing is known of them
  int64_t tile_k = 1;          ///< of what rows are multiplied by, in workgroup memory at a time: along the inner axis
  int64_t tile_n = 1;          ///< and across, at most `lanes`
  static constexpr void each(auto& plan, auto&& number) {
    number("lanes", plan.lanes, PlanNumber::PowerOfTwo);
    number("rows_per_group", plan.rows_per_group, PlanNumber::PowerOfTwo);
    number("subgroup", plan.subgroup, PlanNumber::Unroll);
    number("tile_k", plan.tile_k, PlanNumber::Any);
    number("tile_n", plan.tile_n, PlanNumber::PowerOfTwo);
  }
  friend bool operator==(const RowChainPlan&, const RowChainPlan&) = default;
};

using Plan = std::variant<MapPlan, StripsPlan, VectorPlan, RowsPlan, HeldRowsPlan, ColumnsPlan, ScanPlan, ScatterPlan, NaiveContractPlan,
                          TemplatePlan, StreamPlan, TiledPlan, SplitPlan, DigitsPlan, MatrixPlan, WholePlan, RowChainPlan>;

/// "rows"; of a template its name.
std::string_view nameOf(const Plan& plan);
/// What the group of such a kernel has in common.
graph::GroupKind kindOf(const Plan& plan);

/// rows {lanes = 4, rows_per_group = 16}; template "shared_tiled" {slices = 1, tile_k = 16}. An unroll of 1 is left out.
std::string print(const Plan& plan);
/// Failure "program.plan" for a kind or a number that there is not, and for numbers that make no kernel.
Result<Plan> parsePlan(TokenCursor& cursor);

}  // namespace lockstep::program
