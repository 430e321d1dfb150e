// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "ir/graph/text.h"
#include "ir/program/program.h"
#include "ir/program/text.h"

namespace lockstep::program {
namespace {

constexpr size_t kWordsPerLine = 8;

// What a thing is called after '%' or '@': its own name where that is unique and can be written so, else its index (and the name is
// then stated as a string).
class SigilNames {
 public:
  template <class List>
  explicit SigilNames(const List& list) {
    std::map<std::string_view, size_t> uses;
    for (const auto& item : list) ++uses[item.name];
    for (size_t i = 0; i < list.size(); ++i) {
      const std::string& name = list[i].name;
      bool as_it_is = graph::isSigilName(name) && !graph::isNumber(name) && uses[name] == 1;
      names_.push_back(as_it_is ? name : std::to_string(i));
      declarations_.push_back(as_it_is || name.empty() ? names_[i] : names_[i] + " " + quote(name));
    }
  }
  [[nodiscard]] std::string use(size_t index) const { return index < names_.size() ? names_[index] : "undefined"; }
  [[nodiscard]] const std::string& declaration(size_t index) const { return declarations_[index]; }

 private:
  std::vector<std::string> names_, declarations_;
};

class Printer {
 public:
  explicit Printer(const Program& program)
      : program_(program), arenas_(program.arenas), buffers_(program.buffers), kernels_(program.kernels) {}

  std::string run(TextLines* lines) {
    line("lockstep.program 1");
    const std::string profile = "profile " + printReference(program_.profile);
    next_line_ += static_cast<size_t>(std::ranges::count(profile, '\n'));
    line(profile);
    for (const graph::ParameterInfo& parameter : program_.parameters) line(graph::printParameter(parameter, {}));
    for (size_t i = 0; i < program_.arenas.size(); ++i) arena(i);
    for (size_t i = 0; i < program_.buffers.size(); ++i) buffer(i);
    for (const ConstantData& data : program_.constants) constant(data);
    for (size_t i = 0; i < program_.kernels.size(); ++i) kernel(i);
    for (const InputPort& port : program_.inputs) input(port);
    for (const OutputPort& port : program_.outputs) {
      lines_.outputs.push_back(next_line_);
      line(fmt::format("output {} {} %{}", toString(port.kind), quote(port.name), buffers_.use(port.buffer.index())));
    }
    for (const PersistentState& state : program_.states) this->state(state);
    if (program_.steps) line(fmt::format("steps {{accumulate = {}, rate = {}}}", program_.steps->accumulate, quote(program_.steps->rate)));
    for (const auto& [key, value] : program_.checkpoint) line(fmt::format("checkpoint {} {}", quote(key), quote(value)));
    for (const Loop& loop : program_.loops) {
      lines_.loops.push_back(next_line_);
      line(fmt::format("loop {{first = {}, last = {}, iterations = {}}}", loop.first, loop.last, loop.iterations));
    }
    for (size_t i = 0; i < program_.commands.size(); ++i) command(i);
    line("end");
    if (lines != nullptr) *lines = std::move(lines_);
    return std::move(out_);
  }

 private:
  void line(std::string_view text) {
    out_ += text;
    out_ += '\n';
    ++next_line_;
  }

  void arena(size_t index) {
    const Arena& arena = program_.arenas[index];
    lines_.arenas.push_back(next_line_);
    line(fmt::format("arena @{}: {} {{size = {}}}", arenas_.declaration(index), toString(arena.role), arena.size));
  }

  void buffer(size_t index) {
    const Buffer& buffer = program_.buffers[index];
    std::string place;
    if (buffer.arena.valid()) place = fmt::format("arena = @{}, ", arenas_.use(buffer.arena.index()));
    if (buffer.initial != 0) place += fmt::format("initial = {}, ", formatFloat(buffer.initial));
    if (buffer.arena.valid() || buffer.offset != 0) place += fmt::format("offset = {}, ", buffer.offset);
    lines_.buffers.push_back(next_line_);
    line(fmt::format("buffer %{}: {} {} {{{}size = {}}}", buffers_.declaration(index), graph::printType(buffer.type, {}),
                     toString(buffer.role), place, buffer.size));
  }

  void constant(const ConstantData& data) {
    lines_.constants.push_back(next_line_);
    std::string row = fmt::format("constant %{} = [", buffers_.use(data.buffer.index()));
    for (size_t i = 0; i < data.words.size(); ++i) {
      if (i > 0) row += i % kWordsPerLine == 0 ? "," : ", ";
      if (i > 0 && i % kWordsPerLine == 0) {
        line(row);
        row = "  ";
      }
      row += fmt::format("0x{:08x}", data.words[i]);
    }
    line(row + "]");
  }

  void kernel(size_t index) {
    const Kernel& kernel = program_.kernels[index];
    lines_.kernels.push_back(next_line_);
    std::string head = "kernel @" + kernels_.declaration(index);
    std::string body;
    if (const auto* symbolic = std::get_if<SymbolicKernel>(&kernel.code)) {
      head += " symbolic " + print(symbolic->plan);
      body = graph::print(symbolic->body);
    } else {
      body = kernel::print(std::get<kernel::Module>(kernel.code));
    }
    line(head + " {");
    for (std::string_view rest = body; !rest.empty();) {
      size_t end = std::min(rest.find('\n'), rest.size());
      line(end == 0 ? std::string() : std::string(kNestedIndent, ' ') + std::string(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    line("}");
  }

  void input(const InputPort& port) {
    std::string source;
    if (const auto* batch = std::get_if<BatchSource>(&port.source)) {
      if (batch->below) source = fmt::format("below = {}", *batch->below);
      if (batch->ignored) source += fmt::format("{}ignored = {}", source.empty() ? "" : ", ", *batch->ignored);
      if (!source.empty()) source = " {" + source + "}";
    } else if (const auto* formulas = std::get_if<FormulaSource>(&port.source)) {
      for (const std::string& element : formulas->elements) source += (source.empty() ? "" : ", ") + quote(element);
      source = " [" + source + "]";
    } else {
      source = " key";
    }
    lines_.inputs.push_back(next_line_);
    line(fmt::format("input {} %{}{}", quote(port.name), buffers_.use(port.buffer.index()), source));
  }

  void state(const PersistentState& state) {
    lines_.states.push_back(next_line_);
    std::string parts;
    for (const StatePart& part : state.parts)
      parts += fmt::format("{}{} at {}", parts.empty() ? " [" : ", ", quote(part.parameter), part.offset);
    line(fmt::format("state %{}{}{}", buffers_.use(state.buffer.index()), parts, parts.empty() ? "" : "]"));
  }

  // A range of the whole buffer is its name alone.
  std::string range(const Range& range) const {
    std::string text = "%" + buffers_.use(range.buffer.index());
    bool whole = range.buffer.index() < program_.buffers.size() && range.offset == 0 && range.size == program_[range.buffer].size;
    if (!whole || range.step != 0) text += fmt::format("[{}, {}]", range.offset, range.size);
    return range.step == 0 ? text : text + fmt::format(" step {}", range.step);
  }
  std::string ranged(const Range& given, kernel::Access usual) const {
    return (given.access == usual ? "" : std::string(kernel::toString(given.access)) + " ") + range(given);
  }

  std::string action(const Dispatch& dispatch) const {
    std::string text = fmt::format("dispatch @{} groups [{}, {}, {}] (", kernels_.use(dispatch.kernel.index()), dispatch.groups[0],
                                   dispatch.groups[1], dispatch.groups[2]);
    for (size_t i = 0; i < dispatch.bindings.size(); ++i) {
      text += fmt::format("{}{} {}", i == 0 ? "" : ", ", kernel::toString(dispatch.bindings[i].access), range(dispatch.bindings[i]));
    }
    text += ")";
    for (size_t i = 0; i < dispatch.immediates.size(); ++i) {
      text += fmt::format("{}0x{:08x}", i == 0 ? " immediates [" : ", ", dispatch.immediates[i]);
    }
    return dispatch.immediates.empty() ? text : text + "]";
  }
  std::string action(const Copy& copy) const {
    return fmt::format("copy {} -> {}", ranged(copy.source, kernel::Access::Read), ranged(copy.target, kernel::Access::ReadWrite));
  }
  std::string action(const Fill& fill) const {
    return fmt::format("fill {} 0x{:08x}", ranged(fill.target, kernel::Access::ReadWrite), fill.pattern);
  }

  void command(size_t index) {
    const Command& command = program_.commands[index];
    if (index == 0 || program_.commands[index - 1].level != command.level) line(fmt::format("level {}:", command.level));
    lines_.commands.push_back(next_line_);
    std::string text = "  " + std::visit([this](const auto& a) { return action(a); }, command.action);
    line(command.label.empty() ? text : text + " " + quote(command.label));
  }

  const Program& program_;
  SigilNames arenas_, buffers_, kernels_;
  TextLines lines_;
  std::string out_;
  uint32_t next_line_ = 1;
};

}  // namespace

std::string print(const Program& program, TextLines* lines) { return Printer(program).run(lines); }
std::string print(const Program& program) { return print(program, nullptr); }

}  // namespace lockstep::program
