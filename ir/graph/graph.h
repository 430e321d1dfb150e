// SPDX-License-Identifier: Apache-2.0
// Tensor IR: a differentiable program over tensors, as a value. Arenas of values, nodes and regions with typed ids; regions[0] is the
// body. A node makes one or more results in SSA form and may own regions (the members of a group, a recomputed body); the nodes of a
// region may use values of the enclosing region directly. Which ops exist is the table of ir/ops (op_def.h).
//
// Text form:
//   lockstep.graph 1
//   parameter l1.W: f32[1,64] {decay = true}
//   graph {
//     %x: f32[256,1] = input {name = "x"}
//     %1: f32[256,64] = matmul %x, %l1.W
//     output loss "loss" %9
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/graph/type.h"
#include "ir/support/id.h"
#include "ir/support/location.h"
#include "ir/support/result.h"
#include "ir/support/variant.h"

namespace lockstep::graph {

struct OpDef;
struct Graph;

using ValueId = Id<struct GraphValueTag>;
using NodeId = Id<struct GraphNodeTag>;
using RegionId = Id<struct GraphRegionTag>;
using ConstantId = Id<struct GraphConstantTag>;

/// A graph inside of a node, with leaves for all that it reads: the body of a loop. A value, which copies share because nobody changes it.
class NestedGraph {
 public:
  explicit NestedGraph(Graph graph);
  [[nodiscard]] const Graph& operator*() const { return *graph_; }
  [[nodiscard]] const Graph* operator->() const { return graph_.get(); }
  friend bool operator==(const NestedGraph& a, const NestedGraph& b);

 private:
  std::shared_ptr<const Graph> graph_;
};

using Attribute = Variant<int64_t, double, bool, std::string, std::vector<int64_t>, DType, ConstantId, NestedGraph>;

/// Named attributes, sorted by name.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> items);
  void set(std::string name, Attribute value);
  void erase(std::string_view name);
  [[nodiscard]] const Attribute* find(std::string_view name) const;
  /// The value of an attribute that the op requires; InternalError when it is absent or of another type.
  template <class T>
  [[nodiscard]] const T& get(std::string_view name) const {
    const Attribute* found = find(name);
    if (found == nullptr || !std::holds_alternative<T>(*found)) missing(name);
    return std::get<T>(*found);
  }
  [[nodiscard]] const std::vector<std::pair<std::string, Attribute>>& items() const { return items_; }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  friend bool operator==(const Attributes&, const Attributes&) = default;

 private:
  [[noreturn]] static void missing(std::string_view name);
  std::vector<std::pair<std::string, Attribute>> items_;
};

struct Value {
  TensorType type;
  NodeId node;          ///< the node that makes it
  uint32_t result = 0;  ///< which of that node's results
  std::string name;     ///< hint for texts; may be empty
  friend bool operator==(const Value&, const Value&) = default;
};

struct Node {
  const OpDef* op = nullptr;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  Attributes attributes;
  std::vector<RegionId> regions;
  uint32_t location = 0;  ///< 1 + index into Graph::locations; 0 = none
  friend bool operator==(const Node&, const Node&) = default;
};

/// Nodes in execution order; `yields` are what the owning node's results take.
struct Region {
  std::vector<NodeId> nodes;
  std::vector<ValueId> yields;
  friend bool operator==(const Region&, const Region&) = default;
};

/// A dense constant: f64 for every dtype (i32 and u32 are exact in it).
struct Constant {
  TensorType type;
  std::vector<double> data;
  friend bool operator==(const Constant&, const Constant&) = default;
};

/// A trainable tensor, in the order in which the module declares it.
struct ParameterInfo {
  std::string name;  ///< path in the module: "layers.0.attn.q.W"
  TensorType type;
  bool decay = true;  ///< whether weight decay applies
  friend bool operator==(const ParameterInfo&, const ParameterInfo&) = default;
};

struct Symbol {
  std::string name;
  int64_t maximum = 0;
  friend bool operator==(const Symbol&, const Symbol&) = default;
};

/// The name by which a caller binds data to a leaf (parameter, input, state): the attribute `name` of a node without operands. Null for all
/// other nodes.
const std::string* leafName(const Node& node);

enum class OutputKind : uint8_t {
  Loss,       ///< the scalar that is minimised
  Result,     ///< a value that a forward program returns
  Capture,    ///< a value that the user asked to see
  Print,      ///< a value that is shown after every step
  Check,      ///< a value that is looked at after every step: whether an index was outside of its range
  Gradient,   ///< d loss / d parameter `name`
  NextState,  ///< the next version of the state leaf `name`
};
std::string_view toString(OutputKind kind);

struct Output {
  OutputKind kind = OutputKind::Result;
  std::string name;
  ValueId value;
  friend bool operator==(const Output&, const Output&) = default;
};

struct Graph {
  std::vector<ParameterInfo> parameters;
  std::vector<Symbol> symbols;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<Region> regions{1};
  std::vector<Constant> constants;
  std::vector<Location> locations;
  std::vector<Output> outputs;

  [[nodiscard]] const Value& operator[](ValueId id) const { return values[id.index()]; }
  [[nodiscard]] const Node& operator[](NodeId id) const { return nodes[id.index()]; }
  [[nodiscard]] const Region& operator[](RegionId id) const { return regions[id.index()]; }
  [[nodiscard]] const Constant& operator[](ConstantId id) const { return constants[id.index()]; }
  [[nodiscard]] const Region& body() const { return regions.front(); }
  [[nodiscard]] const TensorType& typeOf(ValueId id) const { return values[id.index()].type; }
  [[nodiscard]] const Shape& shapeOf(ValueId id) const { return values[id.index()].type.shape; }
  [[nodiscard]] const Node& definition(ValueId id) const { return nodes[values[id.index()].node.index()]; }
  friend bool operator==(const Graph&, const Graph&) = default;
};

/// What a step found wrong is in two outputs of kind Check, i32[] each: NAME.row, the row-major position of the first element that is
/// outside of its range, kNoRow if there is none; and NAME.value, that element (any number if there is none).
inline constexpr std::string_view kCheckRow = ".row", kCheckValue = ".value";
inline constexpr int32_t kNoRow = INT32_MAX;

/// The input of type u32[4] that random ops draw from: seed and step, each as low and high word.
inline constexpr std::string_view kRandomKeyInput = "random.key";

/// Where each parameter lies in the flat leaves `params`, `m`, `v` and in `pack`: a function of the parameters alone.
struct ParameterLayout {
  struct Slot {
    std::string name;
    TensorType type;
    bool decay = true;
    int64_t offset = 0;  ///< in elements; a multiple of kParameterAlignment
    int64_t size = 0;    ///< in elements, without padding
  };
  std::vector<Slot> slots;
  int64_t total = 0;  ///< elements, padding included
  [[nodiscard]] const Slot* find(std::string_view name) const;
};
/// 256 bytes, the largest offset alignment that a device may ask for, in elements of a type.
inline int64_t sliceAlignment(DType dtype) { return 256 / static_cast<int64_t>(byteSize(dtype)); }
inline constexpr int64_t kParameterAlignment = 64;  ///< elements: 256 bytes, the largest offset alignment a device may ask for
ParameterLayout layoutParameters(const std::vector<ParameterInfo>& parameters);

/// Renumbers all arenas in print order and drops what no output, parameter or leaf reaches by structure (unused ids, not dead nodes).
Graph canonical(const Graph& graph);
/// The text. Constants are printed in full; with a sidecar those above 16 elements are appended to it instead and the text says which.
/// An invalid graph prints too (broken ids show as %undefined).
std::string print(const Graph& graph, bool with_locations = false);
std::string print(const Graph& graph, bool with_locations, std::vector<Constant>* sidecar);
/// Reads a text. parse(print(g, true)) == canonical(g), and parse(print(g)) == canonical(withoutLocations(g)), unless g holds a NaN, which
/// equals nothing. Checks syntax, names, types and constants; ask validate() for the rest. The file name is for diagnostics.
Result<Graph> parse(std::string_view text, const std::string& file_name = "graph");
Result<Graph> parse(std::string_view text, const std::string& file_name, const std::vector<Constant>* sidecar);
/// The same graph without source locations, those in the texts of kernels included.
Graph withoutLocations(Graph graph);

/// Ids, order (operands made before use), types (each op's infer agrees with its results), regions, outputs.
Status validate(const Graph& graph);

}  // namespace lockstep::graph
