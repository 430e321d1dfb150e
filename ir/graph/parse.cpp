// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

#include "ir/graph/graph.h"
#include "ir/graph/op_def.h"
#include "ir/graph/text.h"

namespace lockstep::graph {
namespace {

constexpr size_t kMaxDepth = 64;  ///< of nested regions: bounds the recursion

size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

// "did you mean matmul or min?", or nothing when no op has a similar name.
std::string nearestOps(std::string_view name) {
  if (name.size() > 64) return {};
  std::vector<std::pair<size_t, std::string_view>> near;
  for (const OpDef* op : allOps()) {
    size_t distance = editDistance(name, *op->name);
    if (distance <= std::max<size_t>(2, name.size() / 3)) near.emplace_back(distance, *op->name);
  }
  std::sort(near.begin(), near.end());
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(3, near.size()); ++i)
    text += fmt::format("{}{}", i == 0 ? "did you mean " : " or ", near[i].second);
  return text;
}

Failure at(const Token& token, std::string code, std::string message, std::string remedy = {}) {
  return fail(std::move(code), std::move(message), token.where, std::move(remedy));
}

class Parser {
 public:
  Parser(TokenCursor cursor, const std::vector<Constant>* sidecar) : cursor_(std::move(cursor)), sidecar_(sidecar) {}

  Result<Graph> run() {
    LS_CHECK(parseVersion(cursor_, "lockstep.graph", 1));
    while (!cursor_.accept("graph")) {
      if (cursor_.accept("symbol")) {
        LS_CHECK(symbol());
      } else if (cursor_.accept("parameter")) {
        LS_TRY(auto parameter, parseParameter(cursor_, graph_.symbols));
        graph_.parameters.push_back(std::move(parameter));
      } else if (cursor_.accept("constant")) {
        LS_CHECK(constant());
      } else {
        return cursor_.error("expected symbol, parameter, constant or graph");
      }
    }
    LS_CHECK(cursor_.expect("{"));
    LS_CHECK(nodes(RegionId(0), 0));
    while (cursor_.accept("output")) LS_CHECK(output());
    LS_CHECK(cursor_.expect("}"));
    if (!cursor_.atEnd()) return cursor_.error("expected the end of the text after the graph");
    return canonical(graph_);  // drops the constants that no node uses
  }

 private:
  Status symbol() {
    const Token token = cursor_.peek();
    LS_TRY(std::string name, parseName(cursor_));
    for (const Symbol& other : graph_.symbols) {
      if (other.name == name) return at(token, "graph.symbol", fmt::format("symbol {} is declared twice", name));
    }
    LS_CHECK(cursor_.expect("<"));
    LS_CHECK(cursor_.expect("="));
    const Token maximum_token = cursor_.peek();
    LS_TRY(int64_t maximum, cursor_.integer());
    if (maximum < 1 || maximum > kMaxElements) {
      return at(maximum_token, "graph.symbol", fmt::format("the maximum of a symbol lies in 1..{}", kMaxElements));
    }
    graph_.symbols.push_back({.name = std::move(name), .maximum = maximum});
    return Success{};
  }

  Status constant() {
    const Token token = cursor_.peek();
    LS_TRY(std::string name, cursor_.atName());
    LS_CHECK(cursor_.expect(":"));
    Constant constant;
    LS_TRY(constant.type, parseType(cursor_, graph_.symbols));
    LS_CHECK(cursor_.expect("="));
    if (cursor_.accept("sidecar")) {
      const Token index_token = cursor_.peek();
      LS_TRY(int64_t index, cursor_.integer());
      if (sidecar_ == nullptr || index < 0 || static_cast<size_t>(index) >= sidecar_->size()) {
        return at(index_token, "graph.sidecar", fmt::format("the data of @{} is not at hand", name),
                  "read the sidecar file beside the text first");
      }
      const Constant& found = (*sidecar_)[static_cast<size_t>(index)];
      if (found.type != constant.type) {
        return at(index_token, "graph.sidecar",
                  fmt::format("@{} is {}, but the sidecar holds {}", name, toString(constant.type), toString(found.type)));
      }
      constant.data = found.data;
    } else {
      LS_CHECK(cursor_.expect("["));
      while (!cursor_.accept("]")) {
        if (!constant.data.empty()) LS_CHECK(cursor_.expect(","));
        LS_TRY(double element, cursor_.number());
        constant.data.push_back(element);
      }
    }
    auto count = static_cast<size_t>(constant.type.shape.elementCount());
    if (constant.data.size() != count) {
      return at(token, "graph.constant", fmt::format("@{} has {} elements, its type says {}", name, constant.data.size(), count));
    }
    if (!constants_.emplace(name, ConstantId(graph_.constants.size())).second) {
      return at(token, "graph.constant", fmt::format("constant @{} is declared twice", name));
    }
    graph_.constants.push_back(std::move(constant));
    return Success{};
  }

  Result<ConstantId> findConstant(const Token& token) const {
    auto found = constants_.find(std::string(token.text));
    if (found == constants_.end()) return at(token, "graph.constant", fmt::format("constant @{} is not declared", token.text));
    return found->second;
  }

  Result<ValueId> value() {
    const Token token = cursor_.peek();
    LS_TRY(std::string name, cursor_.percentName());
    auto found = values_.find(name);
    if (found == values_.end()) return at(token, "graph.value", fmt::format("value %{} is not defined before its use", name));
    return found->second;
  }

  // A '%' that a ':' follows starts the next node.
  [[nodiscard]] bool atValueUse() const { return cursor_.peek().kind == TokenKind::Percent && cursor_.peek(1).text != ":"; }

  Result<std::vector<ValueId>> values() {
    std::vector<ValueId> list;
    if (!atValueUse()) return list;
    do {
      LS_TRY(ValueId id, value());
      list.push_back(id);
    } while (cursor_.accept(","));
    return list;
  }

  Status nodes(RegionId region, size_t depth) {
    while (cursor_.peek().kind == TokenKind::Percent) LS_CHECK(node(region, depth));
    return Success{};
  }

  Status result(NodeId node) {
    const Token token = cursor_.peek();
    LS_TRY(std::string name, cursor_.percentName());
    LS_CHECK(cursor_.expect(":"));
    LS_TRY(TensorType type, parseType(cursor_, graph_.symbols));
    ValueId id(graph_.values.size());
    if (!values_.emplace(name, id).second) return at(token, "graph.value", fmt::format("value %{} is defined twice", name));
    auto& results = graph_.nodes[node.index()].results;
    auto index = static_cast<uint32_t>(results.size());
    results.push_back(id);
    graph_.values.push_back({.type = std::move(type), .node = node, .result = index, .name = isNumber(name) ? "" : name});
    return Success{};
  }

  Status node(RegionId region, size_t depth) {
    NodeId id(graph_.nodes.size());
    graph_.nodes.emplace_back();
    graph_.regions[region.index()].nodes.push_back(id);
    do LS_CHECK(result(id));
    while (cursor_.accept(","));
    LS_CHECK(cursor_.expect("="));
    const Token op_token = cursor_.peek();
    LS_TRY(std::string op_name, cursor_.identifier());
    const OpDef* op = findOp(op_name);
    if (op == nullptr) return at(op_token, "graph.op", fmt::format("there is no op named {}", op_name), nearestOps(op_name));
    LS_TRY(std::vector<ValueId> operands, values());
    Attributes attributes;
    if (startsAttributes(cursor_)) {
      LS_TRY(attributes, parseAttributes(cursor_, [this](const Token& token) { return findConstant(token); }));
    }
    uint32_t location = 0;
    if (cursor_.accept("@")) {
      LS_TRY(location, parseLocation());
    }
    {
      Node& node = graph_.nodes[id.index()];
      node.op = op;
      node.operands = std::move(operands);
      node.attributes = std::move(attributes);
      node.location = location;
    }
    while (cursor_.peek().kind == TokenKind::Identifier && cursor_.peek(1).kind == TokenKind::Punctuation && cursor_.peek(1).text == "{") {
      const Token token = cursor_.peek();
      LS_TRY(std::string name, cursor_.identifier());
      LS_TRY(NestedGraph graph, nested(depth + 1));
      Attributes& owner = graph_.nodes[id.index()].attributes;
      if (owner.find(name) != nullptr) return at(token, "graph.attribute", fmt::format("attribute {} is given twice", name));
      owner.set(std::move(name), std::move(graph));
    }
    while (cursor_.peek().kind == TokenKind::Punctuation && cursor_.peek().text == "{") LS_CHECK(ownedRegion(id, depth + 1));
    return Success{};
  }

  /// A graph with names of its own.
  Result<NestedGraph> nested(size_t depth) {
    if (depth > kMaxDepth) return at(cursor_.peek(), "graph.depth", fmt::format("graphs nest more than {} deep", kMaxDepth));
    Graph graph;
    std::map<std::string, ValueId> values;
    std::map<std::string, ConstantId> constants;
    const auto exchange = [&] {
      std::swap(graph_, graph);
      std::swap(values_, values);
      std::swap(constants_, constants);
    };
    exchange();
    const Status status = nestedBody(depth);
    exchange();
    if (!status.ok()) return status.failure();
    return NestedGraph(canonical(graph));
  }

  Status nestedBody(size_t depth) {
    LS_CHECK(cursor_.expect("{"));
    while (cursor_.accept("constant")) LS_CHECK(constant());
    LS_CHECK(nodes(RegionId(0), depth));
    while (cursor_.accept("output")) LS_CHECK(output());
    return cursor_.expect("}");
  }

  Status ownedRegion(NodeId owner, size_t depth) {
    if (depth > kMaxDepth) return at(cursor_.peek(), "graph.depth", fmt::format("regions nest more than {} deep", kMaxDepth));
    LS_CHECK(cursor_.expect("{"));
    RegionId region(graph_.regions.size());
    graph_.regions.emplace_back();
    graph_.nodes[owner.index()].regions.push_back(region);
    LS_CHECK(nodes(region, depth));
    LS_CHECK(cursor_.expect("yield"));
    LS_TRY(graph_.regions[region.index()].yields, values());
    return cursor_.expect("}");
  }

  Result<uint32_t> parseLocation() {
    Location location;
    location.quoted = true;
    LS_TRY(location.file, cursor_.string());
    for (uint32_t* part : {&location.line, &location.column}) {
      LS_CHECK(cursor_.expect(":"));
      const Token token = cursor_.peek();
      LS_TRY(int64_t number, cursor_.integer());
      if (number < 0 || number > std::numeric_limits<uint32_t>::max()) return at(token, "text.syntax", "expected a line or a column");
      *part = static_cast<uint32_t>(number);
    }
    graph_.locations.push_back(std::move(location));  // canonical() merges equal ones
    return static_cast<uint32_t>(graph_.locations.size());
  }

  Status output() {
    Output output;
    LS_TRY(output.kind, parseOutputKind(cursor_));
    LS_TRY(output.name, cursor_.string());
    LS_TRY(output.value, value());
    graph_.outputs.push_back(std::move(output));
    return Success{};
  }

  TokenCursor cursor_;
  const std::vector<Constant>* sidecar_;
  Graph graph_;
  std::map<std::string, ValueId> values_;
  std::map<std::string, ConstantId> constants_;
};

}  // namespace

Result<Graph> parse(std::string_view text, const std::string& file_name, const std::vector<Constant>* sidecar) {
  LS_TRY(TokenCursor cursor, TokenCursor::create(text, file_name));
  return Parser(std::move(cursor), sidecar).run();
}

Result<Graph> parse(std::string_view text, const std::string& file_name) { return parse(text, file_name, nullptr); }

}  // namespace lockstep::graph
