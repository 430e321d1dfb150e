// SPDX-License-Identifier: Apache-2.0
// The reader of the text form: recursive descent over the shared token cursor. It builds a raw module in text order (constants not
// interned); parse() makes it canonical. Stops at the first error. Recursion is bounded by kMaxBlockNesting and kMaxTypeNesting.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "ir/kernel/module.h"
#include "ir/support/text.h"

namespace lockstep::kernel {

class Parser {
 public:
  explicit Parser(TokenCursor cursor) : cursor_(std::move(cursor)) {}
  Result<Module> parseModule();

 private:
  using AttributeReaders = std::map<std::string_view, std::function<Status()>>;
  template <class Target>
  using NameMap = std::map<std::string, Target, std::less<>>;

  // parse.cpp: the module's level.
  Status parseHeader();
  Status parseStruct();
  Status parseMember(std::vector<Member>& members);
  Status parseGlobal();
  Status parseFunction();
  Status parseParameters(uint32_t function);

  // parse_type.cpp: types, constants and attributes.
  Result<TypeId> parseType(uint32_t nesting = 0);
  Result<TypeId> parseGenericType(std::string_view word, uint32_t nesting);
  Result<TypeId> parseSubgroupMatrix(MatrixUse use);
  Result<TypeId> parsePointerType(uint32_t nesting);
  Result<Scalar> parseElementScalar();
  Result<TypeId> checkNesting(TypeId type) const;
  /// `expected` invalid: of any type.
  Result<ValueId> parseConstant(TypeId expected);
  Result<ValueId> parseNumber();
  Result<ValueId> parseComposite(TypeId type);
  Result<ValueId> parseScalarBits(Scalar scalar);
  ValueId addConstant(TypeId type, uint32_t bits, std::vector<ValueId> elements = {});
  Result<uint32_t> parseU32();
  [[nodiscard]] bool atAttributes() const;
  /// Reads "{name = value, ...}" when there is one; each name has a reader for its value.
  Status parseAttributes(const AttributeReaders& readers);
  /// A reader for an attribute that is a word of an enum.
  template <class Enum>
  std::function<Status()> wordReader(std::optional<Enum> (*find)(std::string_view), Enum& target);
  std::function<Status()> numberReader(uint32_t& target);

  // parse_body.cpp: blocks and instructions.
  Result<BlockId> parseBlock();
  Status parseInstruction(BlockId block);
  Status parseResult(Instruction& instruction, std::string& name);
  Status parseOperands(Instruction& instruction);
  Status parseCallee(Instruction& instruction);
  Status parseInstructionAttributes(Instruction& instruction);
  Status parseComponents(Instruction& instruction);
  Status parseLabels(Instruction& instruction);
  Status parseLocation(Instruction& instruction);
  Status parseRegions(Instruction& instruction);
  Status parseCase(Instruction& instruction);
  Result<ValueId> parseOperand();
  ValueId addValue(ValueKind kind, TypeId type, size_t index, const std::string& name);
  [[nodiscard]] bool atOperandEnd() const;

  TokenCursor cursor_;
  Module module_;
  NameMap<TypeId> structs_;
  NameMap<ValueId> globals_;
  NameMap<FunctionId> functions_;
  NameMap<ValueId> locals_;  // of the function being read
  uint32_t nesting_ = 0;     // of blocks
};

template <class Enum>
std::function<Status()> Parser::wordReader(std::optional<Enum> (*find)(std::string_view), Enum& target) {
  return [this, find, &target]() -> Status {
    Location where = cursor_.peek().where;
    LS_TRY(std::string word, cursor_.identifier());
    std::optional<Enum> found = find(word);
    if (!found) return fail("kernel.name", "unknown word '" + word + "'", where);
    target = *found;
    return Success{};
  };
}

}  // namespace lockstep::kernel
