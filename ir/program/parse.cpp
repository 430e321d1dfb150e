// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <limits>
#include <map>
#include <set>

#include "ir/graph/text.h"
#include "ir/program/program.h"
#include "ir/program/text.h"

namespace lockstep::program {
namespace {

Failure at(const Token& token, std::string code, std::string message) { return fail(std::move(code), std::move(message), token.where); }

class Parser {
 public:
  Parser(TokenCursor cursor, std::string_view text, const std::string& file_name)
      : cursor_(std::move(cursor)), text_(text), file_name_(file_name) {}

  Result<Program> run() {
    LS_CHECK(graph::parseVersion(cursor_, "lockstep.program", 1));
    LS_CHECK(cursor_.expect("profile"));
    LS_TRY(program_.profile, parseReference(cursor_));
    // Without its mark a text that was cut off would be a smaller program.
    while (!cursor_.accept("end")) {
      if (cursor_.atEnd()) return at(cursor_.peek(), "text.syntax", "the program is incomplete: its text does not close with 'end'");
      LS_CHECK(item());
    }
    if (!cursor_.atEnd()) return cursor_.error("expected nothing after 'end'");
    return std::move(program_);
  }

 private:
  Status item() {
    if (cursor_.accept("level")) return level();
    if (has_level_) return command();
    if (cursor_.accept("parameter")) {
      LS_TRY(auto parameter, graph::parseParameter(cursor_, {}));
      program_.parameters.push_back(std::move(parameter));
      return Success{};
    }
    if (cursor_.accept("arena")) return arena();
    if (cursor_.accept("buffer")) return buffer();
    if (cursor_.accept("constant")) return constant();
    if (cursor_.accept("kernel")) return kernel();
    if (cursor_.accept("input")) return input();
    if (cursor_.accept("output")) return output();
    if (cursor_.accept("state")) return state();
    if (cursor_.accept("steps")) return steps();
    if (cursor_.accept("loop")) return loop();
    if (cursor_.accept("checkpoint")) return checkpoint();
    return cursor_.error(
        "expected parameter, arena, buffer, constant, kernel, input, output, state, steps, checkpoint, loop, level or end");
  }

  // The name that a declaration gives: after '%3' a string may state it, '%x' is its own name.
  template <class IdType>
  Status declare(const Token& token, const std::string& sigil_name, std::map<std::string, IdType>& names, size_t index, std::string& name) {
    if (!names.emplace(sigil_name, IdType(index)).second) return at(token, "program.name", fmt::format("{} is declared twice", sigil_name));
    name = graph::isNumber(sigil_name) ? "" : sigil_name;
    if (cursor_.peek().kind == TokenKind::String) {
      LS_TRY(name, cursor_.string());
    }
    return Success{};
  }
  template <class IdType>
  Result<IdType> find(const Token& token, const std::map<std::string, IdType>& names, std::string_view what) {
    auto found = names.find(std::string(token.text));
    if (found == names.end()) return at(token, "program.name", fmt::format("there is no {} named {}", what, token.text));
    return found->second;
  }
  Result<ArenaId> arenaUse() {
    const Token token = cursor_.peek();
    LS_CHECK(cursor_.atName());
    return find(token, arenas_, "arena");
  }
  Result<BufferId> bufferUse() {
    const Token token = cursor_.peek();
    LS_CHECK(cursor_.percentName());
    return find(token, buffers_, "buffer");
  }

  Result<uint64_t> natural(uint64_t maximum = std::numeric_limits<int64_t>::max()) {
    const Token token = cursor_.peek();
    LS_TRY(int64_t value, cursor_.integer());
    if (value < 0 || static_cast<uint64_t>(value) > maximum)
      return at(token, "program.number", fmt::format("{} is outside 0..{}", value, maximum));
    return static_cast<uint64_t>(value);
  }
  Result<uint32_t> word() {
    LS_TRY(uint64_t value, natural(std::numeric_limits<uint32_t>::max()));
    return static_cast<uint32_t>(value);
  }

  Result<ArenaRole> role() {
    static constexpr std::array kRoles{ArenaRole::State, ArenaRole::Input, ArenaRole::Output, ArenaRole::Constant, ArenaRole::Workspace};
    for (ArenaRole role : kRoles) {
      if (cursor_.accept(toString(role))) return role;
    }
    return cursor_.error("expected state, input, output, constant or workspace");
  }

  // "{key = value, ...}", each key once; `read` returns a failure for a key that it does not know.
  template <class Read>
  Status fields(Read&& read) {
    std::set<std::string> seen;
    LS_CHECK(cursor_.expect("{"));
    while (!cursor_.accept("}")) {
      if (!seen.empty()) LS_CHECK(cursor_.expect(","));
      const Token token = cursor_.peek();
      LS_TRY(std::string key, cursor_.identifier());
      if (!seen.insert(key).second) return at(token, "program.field", fmt::format("{} is given twice", key));
      LS_CHECK(cursor_.expect("="));
      LS_CHECK(read(key, token));
    }
    return Success{};
  }

  Status arena() {
    Arena arena;
    const Token token = cursor_.peek();
    LS_TRY(std::string name, cursor_.atName());
    LS_CHECK(declare(token, name, arenas_, program_.arenas.size(), arena.name));
    LS_CHECK(cursor_.expect(":"));
    LS_TRY(arena.role, role());
    LS_CHECK(fields([&](const std::string& key, const Token& key_token) -> Status {
      if (key != "size") return at(key_token, "program.field", fmt::format("an arena has no {}", key));
      LS_TRY(arena.size, natural());
      return Success{};
    }));
    program_.arenas.push_back(std::move(arena));
    return Success{};
  }

  Status buffer() {
    Buffer buffer;
    const Token token = cursor_.peek();
    LS_TRY(std::string name, cursor_.percentName());
    LS_CHECK(declare(token, name, buffers_, program_.buffers.size(), buffer.name));
    LS_CHECK(cursor_.expect(":"));
    LS_TRY(buffer.type, graph::parseType(cursor_, {}));
    LS_TRY(buffer.role, role());
    LS_CHECK(fields([&](const std::string& key, const Token& key_token) -> Status {
      if (key == "arena") {
        LS_TRY(buffer.arena, arenaUse());
      } else if (key == "initial") {
        LS_TRY(buffer.initial, cursor_.number());
      } else if (key == "offset") {
        LS_TRY(buffer.offset, natural());
      } else if (key == "size") {
        LS_TRY(buffer.size, natural());
      } else {
        return at(key_token, "program.field", fmt::format("a buffer has no {}", key));
      }
      return Success{};
    }));
    program_.buffers.push_back(std::move(buffer));
    return Success{};
  }

  Status constant() {
    ConstantData data;
    LS_TRY(data.buffer, bufferUse());
    LS_CHECK(cursor_.expect("="));
    LS_CHECK(cursor_.expect("["));
    while (!cursor_.accept("]")) {
      if (!data.words.empty()) LS_CHECK(cursor_.expect(","));
      LS_TRY(uint32_t value, word());
      data.words.push_back(value);
    }
    program_.constants.push_back(std::move(data));
    return Success{};
  }

  // The source between this '{' and its '}', both of which are consumed.
  Result<std::string_view> nestedText() {
    const Token open = cursor_.peek();
    LS_CHECK(cursor_.expect("{"));
    for (size_t depth = 1; !cursor_.atEnd();) {
      const Token token = cursor_.next();
      if (token.kind != TokenKind::Punctuation) continue;
      if (token.text == "{") ++depth;
      if (token.text == "}" && --depth == 0) {
        auto begin = static_cast<size_t>(open.text.data() - text_.data()) + 1;
        auto end = static_cast<size_t>(token.text.data() - text_.data());
        return text_.substr(begin, end - begin);
      }
    }
    return at(open, "text.syntax", "this brace is not closed");
  }

  // Places in a nested text become places in this one.
  static Failure shifted(Failure failure, const Location& open) {
    auto shift = [&](Location& where) {
      if (!where.known() || where.file != open.file) return;
      if (where.line == 1 && where.column != 0) where.column += open.column;
      where.line += open.line - 1;
    };
    for (Diagnostic& diagnostic : failure.diagnostics) {
      shift(diagnostic.where);
      for (Note& note : diagnostic.notes) shift(note.where);
    }
    return failure;
  }

  Status kernel() {
    Kernel kernel;
    const Token token = cursor_.peek();
    LS_TRY(std::string name, cursor_.atName());
    LS_CHECK(declare(token, name, kernels_, program_.kernels.size(), kernel.name));
    SymbolicKernel symbolic;
    bool is_symbolic = cursor_.accept("symbolic");
    if (is_symbolic) {
      LS_TRY(symbolic.plan, parsePlan(cursor_));
    }
    const Location open = cursor_.peek().where;
    LS_TRY(std::string_view text, nestedText());
    if (is_symbolic) {
      auto body = graph::parse(text, file_name_);
      if (!body.ok()) return shifted(body.failure(), open);
      symbolic.body = std::move(*body);
      kernel.code = std::move(symbolic);
    } else {
      auto module = kernel::parse(text, file_name_);
      if (!module.ok()) return shifted(module.failure(), open);
      kernel.code = std::move(*module);
    }
    program_.kernels.push_back(std::move(kernel));
    return Success{};
  }

  Status input() {
    InputPort port;
    LS_TRY(port.name, cursor_.string());
    LS_TRY(port.buffer, bufferUse());
    if (cursor_.accept("key")) {
      port.source = KeySource{};
    } else if (cursor_.accept("[")) {
      FormulaSource formulas;
      while (!cursor_.accept("]")) {
        if (!formulas.elements.empty()) LS_CHECK(cursor_.expect(","));
        LS_TRY(formulas.elements.emplace_back(), cursor_.string());
      }
      port.source = std::move(formulas);
    } else if (cursor_.peek().text == "{") {
      LS_TRY(port.source, batchSource());
    }
    program_.inputs.push_back(std::move(port));
    return Success{};
  }
  Result<InputSource> batchSource() {
    BatchSource batch;
    LS_CHECK(fields([&](const std::string& key, const Token& token) -> Status {
      if (key != "below" && key != "ignored") return at(token, "program.field", fmt::format("an input has no {}", key));
      LS_TRY(const int64_t value, cursor_.integer());
      (key == "below" ? batch.below : batch.ignored) = value;
      return Success{};
    }));
    return InputSource(batch);
  }

  Status output() {
    OutputPort port;
    LS_TRY(port.kind, graph::parseOutputKind(cursor_));
    LS_TRY(port.name, cursor_.string());
    LS_TRY(port.buffer, bufferUse());
    program_.outputs.push_back(std::move(port));
    return Success{};
  }

  Status state() {
    PersistentState state;
    LS_TRY(state.buffer, bufferUse());
    if (cursor_.accept("[")) {
      do {
        StatePart& part = state.parts.emplace_back();
        LS_TRY(part.parameter, cursor_.string());
        LS_CHECK(cursor_.expect("at"));
        LS_TRY(part.offset, cursor_.integer());
      } while (cursor_.accept(","));
      LS_CHECK(cursor_.expect("]"));
    }
    program_.states.push_back(std::move(state));
    return Success{};
  }

  Status steps() {
    if (program_.steps) return cursor_.error("the steps are stated twice");
    program_.steps.emplace();
    return fields([&](const std::string& key, const Token& token) -> Status {
      if (key == "accumulate") {
        LS_TRY(program_.steps->accumulate, cursor_.integer());
      } else if (key == "rate") {
        LS_TRY(program_.steps->rate, cursor_.string());
      } else {
        return at(token, "program.field", fmt::format("steps have no {}", key));
      }
      return Success{};
    });
  }

  Status loop() {
    Loop& loop = program_.loops.emplace_back();
    return fields([&](const std::string& key, const Token& token) -> Status {
      if (key == "first") {
        LS_TRY(loop.first, word());
      } else if (key == "last") {
        LS_TRY(loop.last, word());
      } else if (key == "iterations") {
        LS_TRY(loop.iterations, word());
      } else {
        return at(token, "program.field", fmt::format("a loop has no {}", key));
      }
      return Success{};
    });
  }

  Status checkpoint() {
    const Token token = cursor_.peek();
    LS_TRY(std::string key, cursor_.string());
    LS_TRY(std::string value, cursor_.string());
    if (!program_.checkpoint.emplace(key, std::move(value)).second)
      return at(token, "program.field", fmt::format("the entry {} is given twice", quote(key)));
    return Success{};
  }

  Status level() {
    LS_TRY(level_, word());
    has_level_ = true;
    return cursor_.expect(":");
  }

  Result<Range> range(kernel::Access usual) {
    Range range{.buffer = {}, .access = usual};
    if (cursor_.peek().kind == TokenKind::Identifier) {
      auto access = kernel::findAccess(cursor_.peek().text);
      if (!access) return cursor_.error("expected read, write or read_write");
      range.access = *access;
      cursor_.next();
    }
    LS_TRY(range.buffer, bufferUse());
    range.size = program_[range.buffer].size;
    if (cursor_.accept("[")) {
      LS_TRY(range.offset, natural());
      LS_CHECK(cursor_.expect(","));
      LS_TRY(range.size, natural());
      LS_CHECK(cursor_.expect("]"));
    }
    if (cursor_.accept("step")) {
      LS_TRY(range.step, cursor_.integer());
    }
    return range;
  }

  Result<Action> dispatch() {
    Dispatch dispatch;
    const Token token = cursor_.peek();
    LS_CHECK(cursor_.atName());
    LS_TRY(dispatch.kernel, find(token, kernels_, "kernel"));
    LS_CHECK(cursor_.expect("groups"));
    for (size_t i = 0; i < dispatch.groups.size(); ++i) {
      LS_CHECK(cursor_.expect(i == 0 ? "[" : ","));
      LS_TRY(dispatch.groups[i], word());
    }
    LS_CHECK(cursor_.expect("]"));
    LS_CHECK(cursor_.expect("("));
    while (!cursor_.accept(")")) {
      if (!dispatch.bindings.empty()) LS_CHECK(cursor_.expect(","));
      LS_TRY(Range binding, range(kernel::Access::Read));
      dispatch.bindings.push_back(binding);
    }
    if (!cursor_.accept("immediates")) return Action(std::move(dispatch));
    LS_CHECK(cursor_.expect("["));
    do {
      LS_TRY(const uint32_t value, word());
      dispatch.immediates.push_back(value);
    } while (cursor_.accept(","));
    LS_CHECK(cursor_.expect("]"));
    return Action(std::move(dispatch));
  }

  Result<Action> action() {
    if (cursor_.accept("dispatch")) return dispatch();
    if (cursor_.accept("copy")) {
      Copy copy;
      LS_TRY(copy.source, range(kernel::Access::Read));
      LS_CHECK(cursor_.expect("->"));
      LS_TRY(copy.target, range(kernel::Access::ReadWrite));
      return Action(copy);
    }
    if (cursor_.accept("fill")) {
      Fill fill;
      LS_TRY(fill.target, range(kernel::Access::ReadWrite));
      LS_TRY(fill.pattern, word());
      return Action(fill);
    }
    return cursor_.error("expected dispatch, copy, fill or level");
  }

  Status command() {
    Command command{.action = Fill{}, .level = level_, .label = {}};
    LS_TRY(command.action, action());
    if (cursor_.peek().kind == TokenKind::String) {
      LS_TRY(command.label, cursor_.string());
    }
    program_.commands.push_back(std::move(command));
    return Success{};
  }

  TokenCursor cursor_;
  std::string_view text_;
  const std::string& file_name_;
  Program program_;
  std::map<std::string, ArenaId> arenas_;
  std::map<std::string, BufferId> buffers_;
  std::map<std::string, KernelId> kernels_;
  uint32_t level_ = 0;
  bool has_level_ = false;
};

}  // namespace

Result<Program> parse(std::string_view text, const std::string& file_name) {
  LS_TRY(TokenCursor cursor, TokenCursor::create(text, file_name));
  return Parser(std::move(cursor), text, file_name).run();
}

}  // namespace lockstep::program
