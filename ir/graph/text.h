// SPDX-License-Identifier: Apache-2.0
// What the printer, the parser, the validator and the program text share. Not for passes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/support/text.h"

namespace lockstep::graph {

/// No tensor may have more elements: keeps every size in bytes far from the end of 64 bits.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;
/// Constants with more elements than this go to the sidecar when there is one.
inline constexpr size_t kMaxInlineElements = 16;

/// Everything that a text of the graph shows, in print order, and what it is called there. Tolerates broken ids (it skips them), so that
/// an invalid graph can be printed too.
struct Numbering {
  static constexpr uint32_t kAbsent = UINT32_MAX;
  std::vector<RegionId> regions;
  std::vector<NodeId> nodes;
  std::vector<ValueId> values;
  std::vector<ConstantId> constants;
  std::vector<Location> locations;  ///< equal ones merged
  // By old index: the position in the lists above, or kAbsent.
  std::vector<uint32_t> region_position, node_position, value_position, constant_position, location_position;
  std::vector<std::string> hints;  ///< by old value index: the unique name of a value that has a hint, else empty

  /// The name after '%': the hint, the number, or "undefined".
  [[nodiscard]] std::string nameOf(ValueId value) const;
};
Numbering number(const Graph& graph);

/// In which line of the text each thing stands (by old index; 0 = nowhere).
struct TextLines {
  std::vector<uint32_t> symbols, parameters, constants, nodes, yields, outputs;
};
struct PrintOptions {
  bool with_locations = false;
  std::vector<Constant>* sidecar = nullptr;
  TextLines* lines = nullptr;
};
std::string print(const Graph& graph, const PrintOptions& options);

// Pieces of both texts.

/// The name itself when it is an identifier of the tokenizer, else quoted.
std::string printName(std::string_view name);
Result<std::string> parseName(TokenCursor& cursor);
/// True for a name that may stand after '%' or '@'.
bool isSigilName(std::string_view name);
bool isNumber(std::string_view name);

std::string printType(const TensorType& type, const std::vector<Symbol>& symbols);
Result<TensorType> parseType(TokenCursor& cursor, const std::vector<Symbol>& symbols);

/// The attributes of a node; the texts of kernels among them without places.
Attributes attributesWithoutPlaces(const Node& node);
/// "{a = 1, b = "x"}". `constant` gives the name of a constant (without '@').
std::string printAttributes(const Attributes& attributes, const std::function<std::string(ConstantId)>& constant);
/// True when the cursor stands at an attribute list and not at a region.
bool startsAttributes(const TokenCursor& cursor);
Result<Attributes> parseAttributes(TokenCursor& cursor, const std::function<Result<ConstantId>(const Token&)>& constant);

std::string printParameter(const ParameterInfo& parameter, const std::vector<Symbol>& symbols);
/// After the word `parameter`.
Result<ParameterInfo> parseParameter(TokenCursor& cursor, const std::vector<Symbol>& symbols);
Result<OutputKind> parseOutputKind(TokenCursor& cursor);
/// "lockstep.graph 1".
Status parseVersion(TokenCursor& cursor, std::string_view format, int64_t version);

/// The dtype is one, extents are at least 1 and there are at most kMaxElements. The message says what is wrong, else it is empty.
std::string typeProblem(const TensorType& type);

}  // namespace lockstep::graph
