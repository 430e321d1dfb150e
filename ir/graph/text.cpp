// SPDX-License-Identifier: Apache-2.0
// Reading of the pieces that the graph text and the program text share.
#include "ir/graph/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace lockstep::graph {
namespace {

Failure at(const Token& token, std::string code, std::string message) { return fail(std::move(code), std::move(message), token.where); }

Result<std::vector<int64_t>> parseIntegers(TokenCursor& cursor) {
  std::vector<int64_t> list;
  LS_CHECK(cursor.expect("["));
  while (!cursor.accept("]")) {
    if (!list.empty()) LS_CHECK(cursor.expect(","));
    LS_TRY(int64_t value, cursor.integer());
    list.push_back(value);
  }
  return list;
}

Result<Attribute> parseAttribute(TokenCursor& cursor, const std::function<Result<ConstantId>(const Token&)>& constant) {
  const Token token = cursor.peek();
  switch (token.kind) {
    case TokenKind::Integer: {
      LS_TRY(int64_t value, cursor.integer());
      return Attribute(value);
    }
    case TokenKind::Float: {
      LS_TRY(double value, cursor.number());
      return Attribute(value);
    }
    case TokenKind::String: {
      LS_TRY(std::string value, cursor.string());
      return Attribute(std::move(value));
    }
    case TokenKind::At: {
      LS_TRY(ConstantId value, constant(token));
      cursor.next();
      return Attribute(value);
    }
    case TokenKind::Identifier:
      if (cursor.accept("true")) return Attribute(true);
      if (cursor.accept("false")) return Attribute(false);
      if (auto dtype = findDType(token.text)) {
        cursor.next();
        return Attribute(*dtype);
      }
      break;
    case TokenKind::Punctuation:
      if (token.text == "[") {
        LS_TRY(std::vector<int64_t> value, parseIntegers(cursor));
        return Attribute(std::move(value));
      }
      break;
    case TokenKind::End:
    case TokenKind::Percent:
      break;
  }
  return cursor.error("expected the value of an attribute");
}

}  // namespace

Result<std::string> parseName(TokenCursor& cursor) {
  if (cursor.peek().kind == TokenKind::String) return cursor.string();
  return cursor.identifier();
}

std::string typeProblem(const TensorType& type) {
  if (static_cast<size_t>(type.dtype) >= kDTypes.size()) return "the element type does not exist";
  int64_t count = 1;
  for (const Dim& dim : type.shape.dims()) {
    if (dim.maximum() < 1) return fmt::format("an axis has extent {}, but extents are at least 1", dim.maximum());
    if (dim.maximum() > kMaxElements / count) return fmt::format("a tensor has at most {} elements", kMaxElements);
    count *= dim.maximum();
  }
  return {};
}

Result<TensorType> parseType(TokenCursor& cursor, const std::vector<Symbol>& symbols) {
  const Token type_token = cursor.peek();
  std::optional<DType> dtype;
  if (type_token.kind == TokenKind::Identifier) dtype = findDType(type_token.text);
  if (!dtype) return cursor.error("expected a type such as f32[4,8]");
  cursor.next();
  LS_CHECK(cursor.expect("["));
  std::vector<Dim> dims;
  while (!cursor.accept("]")) {
    if (!dims.empty()) LS_CHECK(cursor.expect(","));
    const Token token = cursor.peek();
    if (token.kind == TokenKind::Integer) {
      LS_TRY(int64_t extent, cursor.integer());
      dims.emplace_back(extent);
      continue;
    }
    LS_TRY(std::string name, parseName(cursor));
    auto found = std::find_if(symbols.begin(), symbols.end(), [&](const Symbol& symbol) { return symbol.name == name; });
    if (found == symbols.end()) return at(token, "graph.symbol", fmt::format("symbol {} is not declared", name));
    dims.push_back(Dim::named(SymbolId(static_cast<size_t>(found - symbols.begin())), found->maximum));
  }
  TensorType type{.dtype = *dtype, .shape = Shape(std::move(dims))};
  if (std::string problem = typeProblem(type); !problem.empty()) return at(type_token, "graph.type", problem);
  return type;
}

bool startsAttributes(const TokenCursor& cursor) {
  auto is = [&](size_t ahead, std::string_view text) {
    return cursor.peek(ahead).kind == TokenKind::Punctuation && cursor.peek(ahead).text == text;
  };
  TokenKind first = cursor.peek(1).kind;
  return is(0, "{") && (is(1, "}") || ((first == TokenKind::Identifier || first == TokenKind::String) && is(2, "=")));
}

Result<Attributes> parseAttributes(TokenCursor& cursor, const std::function<Result<ConstantId>(const Token&)>& constant) {
  Attributes attributes;
  LS_CHECK(cursor.expect("{"));
  while (!cursor.accept("}")) {
    if (!attributes.empty()) LS_CHECK(cursor.expect(","));
    const Token token = cursor.peek();
    LS_TRY(std::string name, parseName(cursor));
    if (attributes.find(name) != nullptr) return at(token, "graph.attribute", fmt::format("attribute {} is given twice", name));
    LS_CHECK(cursor.expect("="));
    LS_TRY(Attribute value, parseAttribute(cursor, constant));
    attributes.set(std::move(name), std::move(value));
  }
  return attributes;
}

Result<ParameterInfo> parseParameter(TokenCursor& cursor, const std::vector<Symbol>& symbols) {
  ParameterInfo parameter;
  LS_TRY(parameter.name, parseName(cursor));
  LS_CHECK(cursor.expect(":"));
  LS_TRY(parameter.type, parseType(cursor, symbols));
  const Token token = cursor.peek();
  if (token.kind == TokenKind::Punctuation && token.text == "{") {
    LS_TRY(Attributes attributes, parseAttributes(cursor, [](const Token& t) -> Result<ConstantId> {
             return at(t, "graph.attribute", "a parameter takes no constants");
           }));
    for (const auto& [name, value] : attributes.items()) {
      if (name != "decay" || !std::holds_alternative<bool>(value)) {
        return at(token, "graph.attribute", fmt::format("a parameter takes decay = true or false, not {}", name));
      }
      parameter.decay = std::get<bool>(value);
    }
  }
  return parameter;
}

Result<OutputKind> parseOutputKind(TokenCursor& cursor) {
  static constexpr std::array kKinds{OutputKind::Loss,  OutputKind::Result,   OutputKind::Capture,  OutputKind::Print,
                                     OutputKind::Check, OutputKind::Gradient, OutputKind::NextState};
  for (OutputKind kind : kKinds) {
    if (cursor.accept(toString(kind))) return kind;
  }
  return cursor.error("expected loss, result, capture, print, check, gradient or next_state");
}

Status parseVersion(TokenCursor& cursor, std::string_view format, int64_t version) {
  const Token token = cursor.peek();
  if (!cursor.accept(format)) return cursor.error(fmt::format("expected '{} {}'", format, version));
  const Token number = cursor.peek();
  LS_TRY(int64_t found, cursor.integer());
  if (found != version) {
    return at(number, "text.version", fmt::format("this is version {} of {}, only version {} can be read", found, token.text, version));
  }
  return Success{};
}

}  // namespace lockstep::graph
