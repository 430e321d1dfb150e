// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ir/kernel/names.h"
#include "ir/kernel/parser.h"

namespace lockstep::kernel {
namespace {

constexpr size_t kMaxTextBytes = size_t{256} << 20;  // keeps every id far below 2^32

std::string hintOf(const std::string& name) { return isNumber(name) ? "" : name; }

}  // namespace

Result<Module> parse(std::string_view text, const std::string& file_name) {
  if (text.size() > kMaxTextBytes) return fail("kernel.syntax", "the text is longer than 256 MiB", {.file = file_name});
  LS_TRY(TokenCursor cursor, TokenCursor::create(text, file_name));
  LS_TRY(Module raw, Parser(std::move(cursor)).parseModule());
  return canonical(raw, true);
}

Result<Module> Parser::parseModule() {
  LS_CHECK(parseHeader());
  while (!cursor_.atEnd()) {
    const std::string_view word = cursor_.peek().text;
    if (word == "struct") {
      LS_CHECK(parseStruct());
    } else if (word == "var") {
      LS_CHECK(parseGlobal());
    } else if (word == "fn") {
      LS_CHECK(parseFunction());
    } else {
      return cursor_.error("expected 'struct', 'var' or 'fn'");
    }
  }
  return std::move(module_);
}

Status Parser::parseHeader() {
  LS_CHECK(cursor_.expect("lockstep.kernel"));
  Location where = cursor_.peek().where;
  LS_TRY(int64_t version, cursor_.integer());
  if (version != 1) {
    return fail("kernel.version", fmt::format("kernel text of version {} cannot be read, only version 1", version), where);
  }
  if (cursor_.accept("module")) {
    LS_TRY(module_.name, cursor_.string());
  }
  if (cursor_.accept("source")) {
    LS_TRY(module_.source, cursor_.string());
  }
  while (cursor_.accept("enable")) {
    Capability capability{};
    LS_CHECK(wordReader(&findCapability, capability)());
    module_.capabilities.push_back(capability);
  }
  return Success{};
}

Status Parser::parseStruct() {
  LS_CHECK(cursor_.expect("struct"));
  Location where = cursor_.peek().where;
  LS_TRY(std::string name, cursor_.identifier());
  if (structs_.contains(name)) return fail("kernel.name", fmt::format("struct {} is declared twice", name), where);
  LS_CHECK(cursor_.expect("{"));
  Type type{.kind = TypeKind::Struct, .element = {}, .name = name, .members = {}};
  while (!cursor_.accept("}")) LS_CHECK(parseMember(type.members));
  LS_TRY(TypeId id, checkNesting(module_.types.intern(type)));
  structs_.emplace(name, id);
  return Success{};
}

Status Parser::parseMember(std::vector<Member>& members) {
  Member member;
  LS_TRY(member.name, cursor_.identifier());
  LS_CHECK(cursor_.expect(":"));
  LS_TRY(member.type, parseType());
  LS_CHECK(parseAttributes(
      {{"offset", numberReader(member.offset)}, {"align", numberReader(member.align)}, {"size", numberReader(member.size)}}));
  members.push_back(std::move(member));
  return Success{};
}

Status Parser::parseGlobal() {
  LS_CHECK(cursor_.expect("var"));
  Location where = cursor_.peek().where;
  LS_TRY(std::string name, cursor_.atName());
  if (globals_.contains(name)) return fail("kernel.name", fmt::format("variable @{} is declared twice", name), where);
  GlobalVariable global;
  global.name = hintOf(name);
  LS_CHECK(cursor_.expect(":"));
  LS_TRY(global.type, parseType());
  if (cursor_.accept("=")) {
    LS_TRY(global.initializer, parseConstant({}));
  }
  std::optional<Access> access;
  auto access_reader = [&]() -> Status {
    access.emplace();
    return wordReader(&findAccess, *access)();
  };
  bool has_space = false;
  auto space_reader = [&]() -> Status {
    has_space = true;
    return wordReader(&findAddressSpace, global.space)();
  };
  auto initial_reader = [&]() -> Status {
    Location at = cursor_.peek().where;
    LS_TRY(std::string word, cursor_.identifier());
    if (word != "none")
      return fail("kernel.syntax", fmt::format("'{}' is no initial value; write initial = none or leave it out", word), at);
    global.zero_initialized = false;
    return Success{};
  };
  LS_CHECK(parseAttributes({{"space", space_reader},
                            {"initial", initial_reader},
                            {"access", access_reader},
                            {"group", numberReader(global.group)},
                            {"binding", numberReader(global.binding)}}));
  if (!has_space) return fail("kernel.syntax", fmt::format("variable @{} needs {{space = ...}}", name), where);
  global.access = access.value_or(defaultAccess(global.space));
  LS_TRY(TypeId pointer, checkNesting(module_.types.pointer(global.space, global.type, global.access)));
  global.value = addValue(ValueKind::Variable, pointer, module_.globals.size(), name);
  globals_.emplace(name, global.value);
  module_.globals.push_back(std::move(global));
  return Success{};
}

Status Parser::parseFunction() {
  LS_CHECK(cursor_.expect("fn"));
  Location where = cursor_.peek().where;
  LS_TRY(std::string name, cursor_.atName());
  FunctionId id(module_.functions.size());
  if (!functions_.emplace(name, id).second) return fail("kernel.name", fmt::format("function @{} is declared twice", name), where);
  locals_.clear();
  module_.functions.emplace_back();
  module_.functions.back().name = hintOf(name);
  LS_CHECK(parseParameters(static_cast<uint32_t>(id.index())));
  Function& function = module_.functions.back();  // calls and blocks add no functions
  function.return_type = module_.types.voidType();
  if (cursor_.accept("->")) {
    LS_TRY(function.return_type, parseType());
  }
  auto size_reader = [&]() -> Status {
    std::array<uint32_t, 3> size{};
    for (size_t axis = 0; axis < size.size(); ++axis) {
      LS_CHECK(cursor_.expect(axis == 0 ? "[" : ","));
      LS_TRY(size[axis], parseU32());
    }
    function.workgroup_size = size;
    return cursor_.expect("]");
  };
  auto subgroup_reader = [&]() -> Status {
    const Location place = cursor_.peek().where;
    LS_TRY(function.subgroup_size, parseU32());
    return function.subgroup_size != 0 ? Status(Success{}) : fail("kernel.entry_point", "a subgroup has at least one invocation", place);
  };
  LS_CHECK(parseAttributes({{"subgroup_size", subgroup_reader}, {"workgroup_size", size_reader}}));
  LS_TRY(function.body, parseBlock());
  return Success{};
}

Status Parser::parseParameters(uint32_t function) {
  LS_CHECK(cursor_.expect("("));
  while (!cursor_.accept(")")) {
    std::vector<Parameter>& parameters = module_.functions[function].parameters;
    if (!parameters.empty()) LS_CHECK(cursor_.expect(","));
    Location where = cursor_.peek().where;
    LS_TRY(std::string name, cursor_.percentName());
    LS_CHECK(cursor_.expect(":"));
    LS_TRY(TypeId type, parseType());
    Parameter parameter;
    LS_CHECK(parseAttributes({{"builtin", wordReader(&findBuiltin, parameter.builtin)}}));
    parameter.value = addValue(ValueKind::Parameter, type, function, name);
    if (!locals_.emplace(name, parameter.value).second) return fail("kernel.name", fmt::format("%{} is defined twice", name), where);
    parameters.push_back(parameter);
  }
  return Success{};
}

}  // namespace lockstep::kernel
