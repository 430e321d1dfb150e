// SPDX-License-Identifier: Apache-2.0
// What must hold of the part of a step that the host has.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/program/formula.h"
#include "ir/program/program.h"
#include "ir/program/text.h"
#include "ir/support/text.h"

namespace lockstep::program {
namespace {

using graph::DType;

class StepsValidator {
 public:
  StepsValidator(const Program& program, Problems& problems) : program_(program), problems_(problems) {}

  void run() {
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      const InputPort& port = program_.inputs[i];
      const auto wrong = [&](std::string message) {
        problems_.add(&TextLines::inputs, i, "program.input", fmt::format("input {} {}", quote(port.name), message));
      };
      const graph::TensorType& type = program_[port.buffer].type;
      std::visit([&](const auto& source) { check(source, type, wrong); }, port.source);
    }
    // Memory that outlives a program is found by name.
    std::set<std::string_view> names;
    for (size_t i = 0; i < program_.buffers.size(); ++i) {
      const Buffer& buffer = program_.buffers[i];
      if (buffer.role == ArenaRole::State && !names.insert(buffer.name).second)
        problems_.add(&TextLines::buffers, i, "program.buffer",
                      fmt::format("state buffer {} has the name of another one", quote(buffer.name)));
    }
    std::set<BufferId> seen;
    for (size_t i = 0; i < program_.states.size(); ++i) state(i, seen);
    if (!program_.steps) return;
    const auto wrong = [&](std::string message) { problems_.add(&TextLines::states, 0, "program.steps", std::move(message)); };
    if (program_.steps->accumulate < 1) wrong(fmt::format("a step has {} runs, but must have one at least", program_.steps->accumulate));
    formula(program_.steps->rate, kRateNames, wrong);
  }

 private:
  template <class Wrong>
  void formula(const std::string& text, std::span<const std::string_view> names, const Wrong& wrong) const {
    const Result<Formula> parsed = Formula::parse(text, names);
    if (!parsed.ok()) wrong("has a formula that cannot be: " + parsed.diagnostics().front().message);
  }

  template <class Wrong>
  void check(const BatchSource& batch, const graph::TensorType& type, const Wrong& wrong) const {
    if ((batch.below || batch.ignored) && type.dtype != DType::I32 && type.dtype != DType::U32)
      wrong(fmt::format("is {}, but only integers have a range", toString(type)));
    if (batch.below && *batch.below < 1) wrong(fmt::format("takes numbers below {}, but 0 is the least", *batch.below));
  }
  template <class Wrong>
  void check(const FormulaSource& formulas, const graph::TensorType& type, const Wrong& wrong) const {
    const auto count = static_cast<int64_t>(formulas.elements.size());
    if (type.dtype != DType::F32 || type.shape.elementCount() != count)
      wrong(fmt::format("is {}, but {} formulas make f32[{}]", toString(type), count, count));
    for (const std::string& text : formulas.elements) formula(text, kStepNames, wrong);
  }
  template <class Wrong>
  void check(const KeySource& /*key*/, const graph::TensorType& type, const Wrong& wrong) const {
    if (type != graph::TensorType{DType::U32, graph::Shape{4}}) wrong(fmt::format("is {}, but the key is u32[4]", toString(type)));
  }

  void state(size_t index, std::set<BufferId>& seen) {
    const PersistentState& state = program_.states[index];
    const auto wrong = [&](std::string message) {
      problems_.add(&TextLines::states, index, "program.state", fmt::format("state {} {}", index, message));
    };
    if (state.buffer.index() >= program_.buffers.size()) return wrong("has a buffer that does not exist");
    const Buffer& buffer = program_[state.buffer];
    if (buffer.role != ArenaRole::State) wrong(fmt::format("has a buffer for {}", toString(buffer.role)));
    if (!seen.insert(state.buffer).second) wrong("is declared twice");
    int64_t end = 0;
    for (const StatePart& part : state.parts) {
      const auto parameter = std::ranges::find(program_.parameters, part.parameter, &graph::ParameterInfo::name);
      if (parameter == program_.parameters.end()) return wrong(fmt::format("has a part {}, which is no parameter", quote(part.parameter)));
      const int64_t size = parameter->type.shape.elementCount(), room = buffer.type.shape.elementCount();
      if (buffer.type.dtype != DType::F32 || parameter->type.dtype != DType::F32) return wrong("has parts, which only f32 states have");
      if (part.offset < end || part.offset > room || size > room - part.offset)
        return wrong(fmt::format("has no room for {} elements of {} at {}", size, quote(part.parameter), part.offset));
      end = part.offset + size;
    }
  }

  const Program& program_;
  Problems& problems_;
};

}  // namespace

void checkSteps(const Program& program, Problems& problems) { StepsValidator(program, problems).run(); }

}  // namespace lockstep::program
