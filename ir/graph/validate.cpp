// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <set>
#include <unordered_map>

#include "ir/graph/graph.h"
#include "ir/graph/group_kind.h"
#include "ir/graph/op_def.h"
#include "ir/graph/text.h"

namespace lockstep::graph {
namespace {

constexpr size_t kMaxDepth = 64;         ///< of nested regions, as in the parser
constexpr size_t kMaxDiagnostics = 100;  ///< more help nobody

AttributeKind kindOf(const Attribute& attribute) {
  static constexpr std::array kKinds{AttributeKind::Integer,  AttributeKind::Float, AttributeKind::Boolean,  AttributeKind::String,
                                     AttributeKind::Integers, AttributeKind::DType, AttributeKind::Constant, AttributeKind::Graph};
  static_assert(kKinds.size() == std::variant_size_v<Attribute>);
  return kKinds[attribute.index()];
}

std::string_view toString(AttributeKind kind) {
  static constexpr std::array<std::string_view, 8> kNames{"an integer",         "a number with a point", "a boolean",  "a string",
                                                          "a list of integers", "an element type",       "a constant", "a graph"};
  return kNames[static_cast<size_t>(kind)];
}

// Where in the text a diagnostic points; the lines are known only once the graph is printed, which is done only when something is wrong.
struct Place {
  std::vector<uint32_t> TextLines::* list;
  size_t index;
};

class Validator {
 public:
  explicit Validator(const Graph& graph) : graph_(graph) {
    region_seen_.resize(graph.regions.size());
    node_seen_.resize(graph.nodes.size());
    defined_.resize(graph.values.size());
    visible_.resize(graph.values.size());
  }

  Status run() {
    symbols();
    parameters();
    constants();
    if (graph_.regions.empty()) {
      report("graph.region", "a graph has a body, but this one has no region", {&TextLines::nodes, 0});
    } else {
      body();
    }
    if (problems_.empty()) return Success{};
    TextLines lines;
    print(graph_, PrintOptions{.lines = &lines});
    Failure failure;
    for (auto& [diagnostic, place] : problems_) {
      const auto& list = lines.*place.list;
      diagnostic.where = {.file = "graph", .line = place.index < list.size() ? list[place.index] : 0};
      failure.diagnostics.push_back(std::move(diagnostic));
    }
    return failure;
  }

 private:
  void report(std::string code, std::string message, Place place) {
    report(Diagnostic{.code = std::move(code), .message = std::move(message), .where = {}, .notes = {}, .remedy = {}}, place);
  }
  void report(Diagnostic diagnostic, Place place) {
    if (problems_.size() < kMaxDiagnostics) problems_.emplace_back(std::move(diagnostic), place);
  }
  void reportNode(NodeId id, Diagnostic diagnostic) {
    uint32_t location = graph_[id].location;
    if (location != 0 && location <= graph_.locations.size()) {
      diagnostic.notes.push_back({.message = "the node comes from here", .where = graph_.locations[location - 1]});
    }
    report(std::move(diagnostic), {&TextLines::nodes, id.index()});
  }
  void reportNode(NodeId id, std::string code, std::string message) {
    reportNode(id, Diagnostic{.code = std::move(code), .message = std::move(message), .where = {}, .notes = {}, .remedy = {}});
  }

  void symbols() {
    std::set<std::string_view> names;
    for (size_t i = 0; i < graph_.symbols.size(); ++i) {
      const Symbol& symbol = graph_.symbols[i];
      Place place{&TextLines::symbols, i};
      if (!names.insert(symbol.name).second) report("graph.symbol", fmt::format("symbol {} is declared twice", symbol.name), place);
      if (symbol.maximum < 1 || symbol.maximum > kMaxElements) {
        report("graph.symbol", fmt::format("the maximum of symbol {} lies outside 1..{}", symbol.name, kMaxElements), place);
      }
    }
  }

  // What is wrong with a type in this graph, else empty.
  [[nodiscard]] std::string problemOf(const TensorType& type) const {
    std::string problem = typeProblem(type);
    for (const Dim& dim : type.shape.dims()) {
      if (!problem.empty() || !dim.isSymbol()) continue;
      if (dim.symbol().index() >= graph_.symbols.size()) {
        problem = "an axis has a symbol that the graph does not declare";
      } else if (graph_.symbols[dim.symbol().index()].maximum != dim.maximum()) {
        problem = "an axis has another maximum than its symbol";
      }
    }
    return problem;
  }

  void parameters() {
    std::set<std::string_view> names;
    for (size_t i = 0; i < graph_.parameters.size(); ++i) {
      const ParameterInfo& parameter = graph_.parameters[i];
      Place place{&TextLines::parameters, i};
      if (parameter.name.empty()) report("graph.parameter", "a parameter has no name", place);
      if (!names.insert(parameter.name).second)
        report("graph.parameter", fmt::format("parameter {} is declared twice", parameter.name), place);
      if (std::string problem = problemOf(parameter.type); !problem.empty()) report("graph.type", std::move(problem), place);
    }
  }

  void constants() {
    for (size_t i = 0; i < graph_.constants.size(); ++i) {
      const Constant& constant = graph_.constants[i];
      Place place{&TextLines::constants, i};
      if (std::string problem = problemOf(constant.type); !problem.empty()) {
        report("graph.type", std::move(problem), place);
      } else if (auto count = static_cast<size_t>(constant.type.shape.elementCount()); count != constant.data.size()) {
        report("graph.constant", fmt::format("a constant has {} elements, its type says {}", constant.data.size(), count), place);
      }
    }
  }

  void body() {
    region_seen_[0] = true;
    for (NodeId id : graph_.body().nodes) node(id, 0);
    if (!graph_.body().yields.empty()) report("graph.yield", "the body of a graph has outputs and no yields", {&TextLines::nodes, 0});
    outputs();
  }

  void node(NodeId id, size_t depth) {
    if (id.index() >= graph_.nodes.size())
      return report("graph.node", "a region holds a node that does not exist", {&TextLines::nodes, id.index()});
    if (node_seen_[id.index()]) return reportNode(id, "graph.node", "a node stands in more than one place");
    node_seen_[id.index()] = true;
    const Node& node = graph_[id];
    size_t problems_before = problems_.size();
    results(id);
    if (node.op == nullptr) {
      reportNode(id, "graph.op", "a node has no op");
    } else {
      operands(id);
      attributes(id);
      if (node.location > graph_.locations.size()) reportNode(id, "graph.location", "a node has a location that does not exist");
      bool owns_regions = std::holds_alternative<RegionLowering>(*node.op->lower);
      if (owns_regions == node.regions.empty()) {
        reportNode(id, "graph.region", fmt::format("{} {}", *node.op->name, owns_regions ? "needs a region" : "takes no regions"));
      }
      // The rule may rely on what was checked above. The types of a node with regions follow from the yields.
      if (problems_.size() == problems_before && !owns_regions) infer(id);
      if (problems_.size() == problems_before && owns_regions) groupKind(id);
      for (RegionId owned : node.regions) region(id, owned, depth + 1);
    }
    for (ValueId result : node.results) {
      if (result.index() < visible_.size()) visible_[result.index()] = true;
    }
  }

  void groupKind(NodeId id) {
    const auto& text = graph_[id].attributes.get<std::string>("kind");
    if (!parseGroupKind(text))
      reportNode(id, "graph.attribute",
                 fmt::format("{} is not a kind of group; use map, rows, columns, scan, scatter or contract", quote(text)));
  }

  void results(NodeId id) {
    const Node& node = graph_[id];
    if (node.results.empty()) reportNode(id, "graph.result", "a node makes no result");
    for (size_t i = 0; i < node.results.size(); ++i) {
      ValueId result = node.results[i];
      if (result.index() >= graph_.values.size()) {
        reportNode(id, "graph.value", "a node makes a value that does not exist");
        continue;
      }
      if (defined_[result.index()]) reportNode(id, "graph.value", "a value is made twice");
      defined_[result.index()] = true;
      const Value& value = graph_[result];
      if (value.node != id || value.result != i) reportNode(id, "graph.value", fmt::format("result {} names another node as its maker", i));
      if (std::string problem = problemOf(value.type); !problem.empty()) reportNode(id, "graph.type", std::move(problem));
    }
  }

  // Says in words why a value may not be used here; empty when it may.
  [[nodiscard]] std::string useProblem(ValueId value) const {
    if (value.index() >= graph_.values.size()) return "a value that does not exist";
    if (visible_[value.index()]) return {};
    return defined_[value.index()] ? "a value that is not visible here" : "a value that is not made before";
  }

  void operands(NodeId id) {
    const Node& node = graph_[id];
    const ConstantList<std::string_view>& names = *node.op->operands;
    bool variadic = !names.empty() && names.back().ends_with("...");
    size_t least = names.size() - (variadic ? 1 : 0);
    if (node.operands.size() < least || (!variadic && node.operands.size() > least)) {
      reportNode(id, "graph.operands",
                 fmt::format("{} takes {}{} operand{}, but has {}", *node.op->name, variadic ? "at least " : "", least,
                             least == 1 ? "" : "s", node.operands.size()));
    }
    for (size_t i = 0; i < node.operands.size(); ++i) {
      if (std::string problem = useProblem(node.operands[i]); !problem.empty()) {
        reportNode(id, "graph.value", fmt::format("operand {} of {} is {}", i, *node.op->name, problem));
      }
    }
  }

  void attributes(NodeId id) {
    const Node& node = graph_[id];
    const ConstantList<AttributeDef>& definitions = *node.op->attributes;
    for (const AttributeDef& definition : definitions) {
      if (definition.required && node.attributes.find(definition.name) == nullptr) {
        reportNode(id, "graph.attribute", fmt::format("{} needs the attribute {}", *node.op->name, definition.name));
      }
    }
    for (const auto& [name, attribute] : node.attributes.items()) {
      const AttributeDef* definition = nullptr;
      for (const AttributeDef& candidate : definitions) {
        if (candidate.name == name) definition = &candidate;
      }
      if (definition == nullptr) {
        reportNode(id, "graph.attribute", fmt::format("{} has no attribute named {}", *node.op->name, name));
      } else if (kindOf(attribute) != definition->kind) {
        reportNode(
            id, "graph.attribute",
            fmt::format("attribute {} of {} is {}, not {}", name, *node.op->name, toString(definition->kind), toString(kindOf(attribute))));
      } else if (const auto* constant = std::get_if<ConstantId>(&attribute);
                 constant != nullptr && constant->index() >= graph_.constants.size()) {
        reportNode(id, "graph.constant", fmt::format("attribute {} of {} is a constant that does not exist", name, *node.op->name));
      } else if (const auto* nested = std::get_if<NestedGraph>(&attribute); nested != nullptr) {
        this->nested(id, name, **nested);
      }
    }
  }

  void nested(NodeId id, const std::string& name, const Graph& graph) {
    const Status status = validate(graph);
    if (status.ok()) return;
    for (Diagnostic diagnostic : status.diagnostics()) {
      diagnostic.message = fmt::format("in the {} of {}: {}", name, *graph_[id].op->name, diagnostic.message);
      reportNode(id, std::move(diagnostic));
    }
  }

  void infer(NodeId id) {
    const Node& node = graph_[id];
    std::vector<TensorType> types;
    for (ValueId operand : node.operands) types.push_back(graph_.typeOf(operand));
    auto inferred = (*node.op->infer)({.graph = graph_, .operands = types, .attributes = node.attributes});
    if (!inferred.ok()) {
      for (const Diagnostic& diagnostic : inferred.diagnostics()) reportNode(id, diagnostic);
      return;
    }
    if (inferred->size() != node.results.size()) {
      return reportNode(id, "graph.result",
                        fmt::format("{} makes {} results, but the node has {}", *node.op->name, inferred->size(), node.results.size()));
    }
    for (size_t i = 0; i < node.results.size(); ++i) {
      const TensorType& stated = graph_.typeOf(node.results[i]);
      if (stated == (*inferred)[i]) continue;
      reportNode(id, "graph.type",
                 fmt::format("result {} of {} is {}, but its rule gives {}", i, *node.op->name, printType(stated, graph_.symbols),
                             printType((*inferred)[i], graph_.symbols)));
    }
  }

  void region(NodeId owner, RegionId id, size_t depth) {
    if (id.index() >= graph_.regions.size()) return reportNode(owner, "graph.region", "a node owns a region that does not exist");
    if (region_seen_[id.index()]) return reportNode(owner, "graph.region", "a region stands in more than one place");
    if (depth > kMaxDepth) return reportNode(owner, "graph.depth", fmt::format("regions nest more than {} deep", kMaxDepth));
    region_seen_[id.index()] = true;
    for (NodeId member : graph_[id].nodes) node(member, depth);
    yields(owner, id);
    for (NodeId member : graph_[id].nodes) {
      if (member.index() >= graph_.nodes.size()) continue;
      for (ValueId result : graph_[member].results) {
        if (result.index() < visible_.size()) visible_[result.index()] = false;
      }
    }
  }

  void yields(NodeId owner, RegionId id) {
    const std::vector<ValueId>& yields = graph_[id].yields;
    const std::vector<ValueId>& results = graph_[owner].results;
    Place place{&TextLines::yields, id.index()};
    if (yields.size() != results.size()) {
      return report("graph.yield", fmt::format("a region yields {} values to a node of {} results", yields.size(), results.size()), place);
    }
    for (size_t i = 0; i < yields.size(); ++i) {
      if (std::string problem = useProblem(yields[i]); !problem.empty()) {
        report("graph.yield", fmt::format("yield {} is {}", i, problem), place);
      } else if (results[i].index() < graph_.values.size() && graph_.typeOf(yields[i]) != graph_.typeOf(results[i])) {
        report("graph.yield",
               fmt::format("yield {} is {}, but the result is {}", i, printType(graph_.typeOf(yields[i]), graph_.symbols),
                           printType(graph_.typeOf(results[i]), graph_.symbols)),
               place);
      }
    }
  }

  void outputs() {
    findNames();
    std::set<std::pair<OutputKind, std::string_view>> names;
    size_t losses = 0;
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const Output& output = graph_.outputs[i];
      Place place{&TextLines::outputs, i};
      if (!names.emplace(output.kind, output.name).second) {
        report("graph.output", fmt::format("there are two {} outputs named \"{}\"", graph::toString(output.kind), output.name), place);
      }
      if (std::string problem = useProblem(output.value); !problem.empty()) {
        report("graph.output", fmt::format("output \"{}\" is {}", output.name, problem), place);
        continue;
      }
      outputOfKind(output, place, losses);
    }
  }

  void outputOfKind(const Output& output, Place place, size_t& losses) {
    const TensorType& type = graph_.typeOf(output.value);
    auto mustBe = [&](const TensorType& expected, std::string_view what) {
      if (type == expected) return;
      report("graph.output",
             fmt::format("output \"{}\" is {}, but the {} is {}", output.name, printType(type, graph_.symbols), what,
                         printType(expected, graph_.symbols)),
             place);
    };
    switch (output.kind) {
      case OutputKind::Loss:
        if (++losses > 1) report("graph.output", "a graph has at most one loss", place);
        if (type != TensorType{})
          report("graph.output", fmt::format("the loss is {}, not a f32 scalar", printType(type, graph_.symbols)), place);
        break;
      case OutputKind::Gradient: {
        // Once parameters are views of a state, they are no leaves of the body any more.
        const TensorType* leaf = leafType(output.name);
        if (const auto parameter = parameters_.find(output.name); parameter != parameters_.end()) leaf = parameter->second;
        if (leaf == nullptr) {
          report("graph.output", fmt::format("there is no parameter, input or state named {} that could have a gradient", output.name),
                 place);
        } else {
          mustBe({factsOf(leaf->dtype).compute, leaf->shape}, "leaf's gradient");
        }
        break;
      }
      case OutputKind::NextState: {
        const TensorType* leaf = leafType(output.name);
        if (leaf == nullptr) {
          report("graph.output", fmt::format("there is no state leaf named {} that could have a next version", output.name), place);
        } else {
          mustBe(*leaf, "state");
        }
        break;
      }
      case OutputKind::Result:
      case OutputKind::Capture:
      case OutputKind::Print:
      case OutputKind::Check:
        break;
    }
  }

  /// Names of leaves and parameters, for the outputs that belong to one.
  void findNames() {
    for (NodeId id : graph_.body().nodes) {
      if (id.index() >= graph_.nodes.size()) continue;
      const Node& node = graph_[id];
      const std::string* name = leafName(node);
      const bool is_leaf = name != nullptr && node.results.size() == 1 && node.results[0].index() < graph_.values.size();
      if (is_leaf) leaves_.emplace(*name, &graph_.typeOf(node.results[0]));
    }
    for (const ParameterInfo& parameter : graph_.parameters) parameters_.insert_or_assign(parameter.name, &parameter.type);
  }

  [[nodiscard]] const TensorType* leafType(std::string_view name) const {
    const auto found = leaves_.find(name);
    return found == leaves_.end() ? nullptr : found->second;
  }

  const Graph& graph_;
  std::vector<bool> region_seen_, node_seen_;
  std::vector<bool> defined_;  ///< values that some node made
  std::vector<bool> visible_;  ///< values that may be used here
  std::vector<std::pair<Diagnostic, Place>> problems_;
  std::unordered_map<std::string_view, const TensorType*> leaves_, parameters_;
};

}  // namespace

Status validate(const Graph& graph) { return Validator(graph).run(); }

}  // namespace lockstep::graph
