// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "ir/graph/graph.h"
#include "ir/graph/op_def.h"
#include "ir/graph/text.h"

namespace lockstep::graph {
namespace {

constexpr size_t kElementsPerLine = 16;

std::string printElement(double value, DType dtype) {
  constexpr double kExact = 9007199254740992.0;  // 2^53: every smaller integer is exact
  if (!isFloat(dtype) && std::trunc(value) == value && std::abs(value) < kExact) return fmt::format("{}", static_cast<int64_t>(value));
  return formatFloat(value);
}

class Printer {
 public:
  Printer(const Graph& graph, const PrintOptions& options) : graph_(graph), options_(options), numbering_(number(graph)) {
    lines_.symbols.resize(graph.symbols.size());
    lines_.parameters.resize(graph.parameters.size());
    lines_.constants.resize(graph.constants.size());
    lines_.nodes.resize(graph.nodes.size());
    lines_.yields.resize(graph.regions.size());
    lines_.outputs.resize(graph.outputs.size());
    printed_.resize(graph.regions.size());
  }

  std::string run() {
    line("lockstep.graph 1");
    for (size_t i = 0; i < graph_.symbols.size(); ++i) {
      lines_.symbols[i] = next_line_;
      line(fmt::format("symbol {} <= {}", printName(graph_.symbols[i].name), graph_.symbols[i].maximum));
    }
    for (size_t i = 0; i < graph_.parameters.size(); ++i) {
      lines_.parameters[i] = next_line_;
      line(printParameter(graph_.parameters[i], graph_.symbols));
    }
    for (size_t i = 0; i < numbering_.constants.size(); ++i) constant(i);
    line("graph {");
    ++depth_;
    body();
    --depth_;
    line("}");
    if (options_.lines != nullptr) *options_.lines = std::move(lines_);
    return std::move(out_);
  }

 private:
  void body() {
    if (!graph_.regions.empty()) nodes(RegionId(0));
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const Output& output = graph_.outputs[i];
      lines_.outputs[i] = next_line_;
      line(fmt::format("output {} {} %{}", toString(output.kind), quote(output.name), numbering_.nameOf(output.value)));
    }
  }

  void line(std::string_view text) {
    out_.append(2 * depth_, ' ');
    out_ += text;
    out_ += '\n';
    ++next_line_;
  }

  std::string constantName(ConstantId id) const {
    if (id.index() >= numbering_.constant_position.size()) return "undefined";
    return fmt::format("c{}", numbering_.constant_position[id.index()]);
  }

  void constant(size_t position) {
    const Constant& constant = graph_[numbering_.constants[position]];
    lines_.constants[numbering_.constants[position].index()] = next_line_;
    std::string head = fmt::format("constant @c{}: {} = ", position, printType(constant.type, graph_.symbols));
    if (options_.sidecar != nullptr && constant.data.size() > kMaxInlineElements) {
      line(head + fmt::format("sidecar {}", options_.sidecar->size()));
      options_.sidecar->push_back(constant);
      return;
    }
    std::string row = head + "[";
    for (size_t i = 0; i < constant.data.size(); ++i) {
      if (i > 0) row += i % kElementsPerLine == 0 ? "," : ", ";
      if (i > 0 && i % kElementsPerLine == 0) {
        line(row);
        row = "  ";
      }
      row += printElement(constant.data[i], constant.type.dtype);
    }
    line(row + "]");
  }

  void nodes(RegionId id) {
    printed_[id.index()] = true;
    for (NodeId node_id : graph_[id].nodes) {
      if (node_id.index() < graph_.nodes.size()) {
        node(node_id);
      } else {
        line("# a node that does not exist");
      }
    }
  }

  void node(NodeId id) {
    const Node& node = graph_[id];
    std::string text;
    for (ValueId result : node.results) {
      if (!text.empty()) text += ", ";
      text += fmt::format("%{}: {}", numbering_.nameOf(result),
                          result.index() < graph_.values.size() ? printType(graph_.typeOf(result), graph_.symbols) : "?");
    }
    text += fmt::format(" = {}", node.op == nullptr ? std::string_view("?") : *node.op->name);
    for (size_t i = 0; i < node.operands.size(); ++i)
      text += fmt::format("{}%{}", i == 0 ? " " : ", ", numbering_.nameOf(node.operands[i]));
    Attributes attributes = options_.with_locations ? node.attributes : attributesWithoutPlaces(node);
    const std::vector<std::pair<std::string, NestedGraph>> inside = takeNested(attributes);
    if (!attributes.empty()) text += " " + printAttributes(attributes, [this](ConstantId c) { return constantName(c); });
    if (options_.with_locations && node.location != 0 && node.location <= graph_.locations.size()) {
      const Location& location = graph_.locations[node.location - 1];
      text += fmt::format(" @ {}:{}:{}", quote(location.file), location.line, location.column);
    }
    lines_.nodes[id.index()] = next_line_;
    for (const auto& [name, graph] : inside) {
      line(fmt::format("{} {} {{", text, printName(name)));
      nested(*graph);
      text = "}";
    }
    if (node.regions.empty()) {
      line(text);
      return;
    }
    for (RegionId region_id : node.regions) {
      line(text + " {");
      region(region_id);
      text = "}";
    }
    line("}");
  }

  static std::vector<std::pair<std::string, NestedGraph>> takeNested(Attributes& attributes) {
    std::vector<std::pair<std::string, NestedGraph>> taken;
    for (const auto& [name, attribute] : attributes.items()) {
      if (const auto* nested = std::get_if<NestedGraph>(&attribute)) taken.emplace_back(name, *nested);
    }
    for (const auto& [name, graph] : taken) attributes.erase(name);
    return taken;
  }

  /// Its constants and its body; it has names of its own.
  void nested(const Graph& graph) {
    Printer inner(graph, {.with_locations = options_.with_locations, .sidecar = options_.sidecar});
    inner.depth_ = depth_ + 1;
    inner.next_line_ = next_line_;
    for (size_t i = 0; i < inner.numbering_.constants.size(); ++i) inner.constant(i);
    inner.body();
    out_ += inner.out_;
    next_line_ = inner.next_line_;
  }

  void region(RegionId id) {
    ++depth_;
    if (id.index() >= graph_.regions.size() || printed_[id.index()]) {
      line("# a region that does not exist or stands elsewhere too");
    } else {
      nodes(id);
      lines_.yields[id.index()] = next_line_;
      std::string text = "yield";
      for (size_t i = 0; i < graph_[id].yields.size(); ++i) {
        text += fmt::format("{}%{}", i == 0 ? " " : ", ", numbering_.nameOf(graph_[id].yields[i]));
      }
      line(text);
    }
    --depth_;
  }

  const Graph& graph_;
  PrintOptions options_;
  Numbering numbering_;
  TextLines lines_;
  std::vector<bool> printed_;  ///< regions; a broken graph may hold one twice or in itself
  std::string out_;
  size_t depth_ = 0;
  uint32_t next_line_ = 1;
};

struct AttributePrinter {
  const std::function<std::string(ConstantId)>& constant;
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return formatFloat(value); }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(const std::string& value) const { return quote(value); }
  std::string operator()(const std::vector<int64_t>& value) const { return fmt::format("[{}]", fmt::join(value, ", ")); }
  std::string operator()(DType value) const { return std::string(toString(value)); }
  std::string operator()(ConstantId value) const { return "@" + constant(value); }
  std::string operator()(const NestedGraph& value) const { return fmt::format("a graph of {} nodes", value->nodes.size()); }
};

}  // namespace

std::string printName(std::string_view name) {
  bool is_identifier = isSigilName(name) && !(name[0] >= '0' && name[0] <= '9') && name[0] != '.' && name != "inf" && name != "nan";
  return is_identifier ? std::string(name) : quote(name);
}

std::string printType(const TensorType& type, const std::vector<Symbol>& symbols) {
  std::string text = std::string(toString(type.dtype)) + "[";
  for (size_t axis = 0; axis < type.shape.rank(); ++axis) {
    const Dim& dim = type.shape[axis];
    if (axis > 0) text += ",";
    bool named = dim.isSymbol() && dim.symbol().index() < symbols.size();
    text += named ? printName(symbols[dim.symbol().index()].name) : std::to_string(dim.maximum());
  }
  return text + "]";
}

std::string printAttributes(const Attributes& attributes, const std::function<std::string(ConstantId)>& constant) {
  std::string text = "{";
  for (const auto& [name, attribute] : attributes.items()) {
    if (text.size() > 1) text += ", ";
    text += fmt::format("{} = {}", printName(name), std::visit(AttributePrinter{constant}, attribute));
  }
  return text + "}";
}

std::string printParameter(const ParameterInfo& parameter, const std::vector<Symbol>& symbols) {
  return fmt::format("parameter {}: {} {{decay = {}}}", printName(parameter.name), printType(parameter.type, symbols), parameter.decay);
}

std::string print(const Graph& graph, const PrintOptions& options) { return Printer(graph, options).run(); }

std::string print(const Graph& graph, bool with_locations) { return print(graph, PrintOptions{.with_locations = with_locations}); }

std::string print(const Graph& graph, bool with_locations, std::vector<Constant>* sidecar) {
  return print(graph, PrintOptions{.with_locations = with_locations, .sidecar = sidecar});
}

}  // namespace lockstep::graph
