// SPDX-License-Identifier: Apache-2.0
// Types, constants and attributes.
#include <fmt/format.h>

#include "ir/kernel/literal.h"
#include "ir/kernel/parser.h"

namespace lockstep::kernel {
namespace {

/// "vec3" -> {3}, "mat4x2" -> {4, 2}; empty for other words.
std::vector<uint32_t> dimensionsOf(std::string_view word) {
  auto digit = [&](size_t at) -> uint32_t { return word[at] >= '2' && word[at] <= '4' ? static_cast<uint32_t>(word[at] - '0') : 0; };
  if (word.size() == 4 && word.starts_with("vec") && digit(3) != 0) return {digit(3)};
  if (word.size() == 6 && word.starts_with("mat") && word[4] == 'x' && digit(3) != 0 && digit(5) != 0) return {digit(3), digit(5)};
  return {};
}

bool follows(const Token& token, const Token& before) {
  return token.where.line == before.where.line && token.where.column == before.where.column + before.text.size();
}

}  // namespace

Result<TypeId> Parser::checkNesting(TypeId type) const {
  if (module_.types.nestingOf(type) <= kMaxTypeNesting) return type;
  return fail("kernel.nesting", fmt::format("types nest deeper than {}", kMaxTypeNesting), cursor_.peek().where);
}

Result<TypeId> Parser::parseType(uint32_t nesting) {
  if (nesting > kMaxTypeNesting) return cursor_.error(fmt::format("types nest deeper than {}", kMaxTypeNesting));
  Location where = cursor_.peek().where;
  LS_TRY(std::string word, cursor_.identifier());
  if (std::optional<Scalar> scalar = findScalar(word)) return module_.types.scalar(*scalar);
  if (auto declared = structs_.find(word); declared != structs_.end()) return declared->second;
  if (cursor_.peek().text != "<") return fail("kernel.name", fmt::format("unknown type '{}'", word), where);
  return parseGenericType(word, nesting);
}

Result<TypeId> Parser::parseGenericType(std::string_view word, uint32_t nesting) {
  std::vector<uint32_t> dimensions = dimensionsOf(word);
  bool known = !dimensions.empty() || word == "array" || word == "atomic" || word == "ptr" || findMatrixUse(word);
  if (!known) return cursor_.error(fmt::format("unknown type '{}'", word));
  LS_CHECK(cursor_.expect("<"));
  TypeId type;
  if (const std::optional<MatrixUse> use = findMatrixUse(word)) {
    LS_TRY(type, parseSubgroupMatrix(*use));
  } else if (word == "ptr") {
    LS_TRY(type, parsePointerType(nesting));
  } else if (word == "array") {
    LS_TRY(TypeId element, parseType(nesting + 1));
    uint32_t count = 0;
    if (cursor_.accept(",")) {
      Location where = cursor_.peek().where;
      LS_TRY(count, parseU32());
      if (count == 0)
        return fail("kernel.literal", "an array has at least one element", where, "leave the count out to make it runtime-sized");
    }
    type = module_.types.array(element, count);
  } else {
    Location where = cursor_.peek().where;
    LS_TRY(Scalar scalar, parseElementScalar());
    bool is_float = scalar == Scalar::F32 || scalar == Scalar::F16;
    bool fits = dimensions.size() == 2 ? is_float : word != "atomic" || scalar == Scalar::I32 || scalar == Scalar::U32;
    if (!fits) return fail("kernel.name", fmt::format("there is no {} of {}", word, toString(scalar)), where);
    if (dimensions.size() == 2) {
      type = module_.types.matrix(scalar, dimensions[0], dimensions[1]);
    } else {
      type = dimensions.empty() ? module_.types.atomic(scalar) : module_.types.vector(scalar, dimensions[0]);
    }
  }
  LS_CHECK(cursor_.expect(">"));
  return checkNesting(type);
}

Result<TypeId> Parser::parseSubgroupMatrix(MatrixUse use) {
  LS_TRY(const Scalar component, parseElementScalar());
  uint32_t extents[2] = {};  // columns, rows
  for (uint32_t& extent : extents) {
    LS_CHECK(cursor_.expect(","));
    const Location where = cursor_.peek().where;
    LS_TRY(extent, parseU32());
    if (extent == 0 || extent > kMaxSubgroupMatrixExtent) {
      return fail("kernel.literal", fmt::format("a subgroup matrix has 1 to {} columns and rows, not {}", kMaxSubgroupMatrixExtent, extent),
                  where);
    }
  }
  return module_.types.subgroupMatrix(use, component, extents[0], extents[1]);
}

Result<TypeId> Parser::parsePointerType(uint32_t nesting) {
  AddressSpace space{};
  LS_CHECK(wordReader(&findAddressSpace, space)());
  LS_CHECK(cursor_.expect(","));
  LS_TRY(TypeId pointee, parseType(nesting + 1));
  Access access = defaultAccess(space);
  if (cursor_.accept(",")) LS_CHECK(wordReader(&findAccess, access)());
  return module_.types.pointer(space, pointee, access);
}

Result<Scalar> Parser::parseElementScalar() {
  Scalar scalar{};
  LS_CHECK(wordReader(&findScalar, scalar)());
  return scalar;
}

ValueId Parser::addConstant(TypeId type, uint32_t bits, std::vector<ValueId> elements) {
  module_.values.push_back({.kind = ValueKind::Constant, .type = type, .bits = bits, .elements = std::move(elements), .name = {}});
  return ValueId(module_.values.size() - 1);
}

Result<ValueId> Parser::parseConstant(TypeId expected) {
  Location where = cursor_.peek().where;
  TypeId type;
  ValueId constant;
  TokenKind kind = cursor_.peek().kind;
  if (kind == TokenKind::Integer || kind == TokenKind::Float) {
    LS_TRY(constant, parseNumber());
    type = module_[constant].type;
  } else if (cursor_.peek().text == "true" || cursor_.peek().text == "false") {
    type = module_.types.boolean();
    constant = addConstant(type, cursor_.next().text == "true" ? 1 : 0);
  } else {
    bool is_zero = cursor_.accept("zero");
    if (is_zero) LS_CHECK(cursor_.expect("<"));
    LS_TRY(type, parseType());
    if (is_zero) LS_CHECK(cursor_.expect(">"));
    if (is_zero) constant = addConstant(type, 0);
  }
  if (expected.valid() && type != expected) {
    std::string message =
        fmt::format("expected a constant of type {}, found one of {}", module_.types.toString(expected), module_.types.toString(type));
    return fail("kernel.literal", std::move(message), where);
  }
  if (constant.valid()) return constant;
  return parseComposite(type);
}

Result<ValueId> Parser::parseNumber() {
  Token number = cursor_.next();
  std::optional<Scalar> scalar = scalarOfSuffix(cursor_.peek().text);
  if (!scalar || cursor_.peek().kind != TokenKind::Identifier || !follows(cursor_.peek(), number))
    return cursor_.error("expected a suffix i, u, f or h right after the number");
  cursor_.next();
  std::optional<uint32_t> bits = parseScalar(*scalar, number.text);
  if (!bits) return fail("kernel.literal", fmt::format("{} is not a value of {}", number.text, toString(*scalar)), number.where);
  return addConstant(module_.types.scalar(*scalar), *bits);
}

Result<ValueId> Parser::parseComposite(TypeId type) {
  const Type shape = module_.types[type];
  if (shape.kind == TypeKind::Scalar) return parseScalarBits(shape.scalar);
  uint32_t count = module_.types.elementCount(type);
  if (count == 0) return cursor_.error(fmt::format("a constant of type {} has no elements", module_.types.toString(type)));
  std::vector<ValueId> elements;
  LS_CHECK(cursor_.expect("("));
  for (uint32_t i = 0; i < count; ++i) {
    if (i > 0) LS_CHECK(cursor_.expect(","));
    LS_TRY(ValueId element, parseConstant(module_.types.elementOf(type, i)));
    elements.push_back(element);
  }
  LS_CHECK(cursor_.expect(")"));
  return addConstant(type, 0, std::move(elements));
}

Result<ValueId> Parser::parseScalarBits(Scalar scalar) {
  LS_CHECK(cursor_.expect("("));
  Location where = cursor_.peek().where;
  LS_TRY(uint32_t bits, parseU32());
  if (canonicalBits(scalar, bits) != bits) {
    return fail("kernel.literal", fmt::format("0x{:x} has more bits than {}", bits, toString(scalar)), where);
  }
  LS_CHECK(cursor_.expect(")"));
  return addConstant(module_.types.scalar(scalar), bits);
}

Result<uint32_t> Parser::parseU32() {
  Location where = cursor_.peek().where;
  LS_TRY(int64_t value, cursor_.integer());
  if (value < 0 || value > int64_t{UINT32_MAX}) return fail("kernel.literal", fmt::format("{} is not in 0 to 4294967295", value), where);
  return static_cast<uint32_t>(value);
}

bool Parser::atAttributes() const {
  return cursor_.peek().text == "{" && cursor_.peek(1).kind == TokenKind::Identifier && cursor_.peek(2).text == "=";
}

Status Parser::parseAttributes(const AttributeReaders& readers) {
  if (!atAttributes()) return Success{};
  LS_CHECK(cursor_.expect("{"));
  AttributeReaders left = readers;
  do {
    Location where = cursor_.peek().where;
    LS_TRY(std::string name, cursor_.identifier());
    auto reader = left.extract(name);
    if (reader.empty()) {
      std::string_view problem = readers.contains(name) ? "is given twice" : "is not known here";
      return fail("kernel.name", fmt::format("attribute '{}' {}", name, problem), where);
    }
    LS_CHECK(cursor_.expect("="));
    LS_CHECK(reader.mapped()());
  } while (cursor_.accept(","));
  return cursor_.expect("}");
}

std::function<Status()> Parser::numberReader(uint32_t& target) {
  return [this, &target]() -> Status {
    LS_TRY(target, parseU32());
    return Success{};
  };
}

}  // namespace lockstep::kernel
