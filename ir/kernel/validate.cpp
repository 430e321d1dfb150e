// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/print_places.h"
#include "ir/kernel/validate_internal.h"

namespace lockstep::kernel {
namespace {

/// A module that is wrong everywhere is a bug of its maker; a screenful of problems tells enough.
constexpr size_t kMaxProblems = 50;

Place placeOf(const Subject& subject, const PrintedModule& printed) {
  auto pick = [](const std::vector<Place>& places, size_t index) { return index < places.size() ? places[index] : Place{}; };
  auto pickInner = [&](const std::vector<std::vector<Place>>& places, const std::vector<Place>& outer) {
    Place inner = subject.index < places.size() ? pick(places[subject.index], subject.second) : Place{};
    return inner.line != 0 ? inner : pick(outer, subject.index);
  };
  switch (subject.kind) {
    case Subject::Kind::Module:
      return {.line = 1, .column = 1};
    case Subject::Kind::Type:
      return pick(printed.types, subject.index);
    case Subject::Kind::Global:
      return pick(printed.globals, subject.index);
    case Subject::Kind::Function:
      return pick(printed.functions, subject.index);
    case Subject::Kind::Parameter:
      return pickInner(printed.parameters, printed.functions);
    case Subject::Kind::Instruction:
      return pick(printed.instructions, subject.index);
    case Subject::Kind::Operand:
      return pickInner(printed.operands, printed.instructions);
    case Subject::Kind::Case:
      return pick(printed.cases, subject.index);
  }
  internalError("kind of subject out of range");
}

std::vector<std::string_view> linesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::string_view withoutIndent(std::string_view line) { return line.substr(std::min(line.find_first_not_of(' '), line.size())); }

/// The place in the user's source that an instruction came from.
Location sourceOf(const Subject& subject, const Module& module) {
  bool is_instruction = subject.kind == Subject::Kind::Instruction || subject.kind == Subject::Kind::Operand;
  if (!is_instruction || subject.index >= module.instructions.size()) return {};
  uint32_t location = module.instructions[subject.index].location;
  return location != 0 && location <= module.locations.size() ? module.locations[location - 1] : Location{};
}

}  // namespace

void Problems::add(Subject subject, std::string_view code, std::string message, std::string remedy) {
  if (problems_.size() >= kMaxProblems) return;
  problems_.push_back({.subject = subject, .code = std::string(code), .message = std::move(message), .remedy = std::move(remedy)});
}

Failure Problems::take(const Module& module) const {
  PrintedModule printed = printWithPlaces(module, false);
  std::vector<std::string_view> lines = linesOf(printed.text);
  std::string file = module.name.empty() ? "kernel" : module.name;
  Failure failure;
  for (const Problem& problem : problems_) {
    Place place = placeOf(problem.subject, printed);
    Diagnostic& diagnostic = failure.diagnostics.emplace_back();
    diagnostic.code = problem.code;
    diagnostic.message = problem.message;
    diagnostic.where = {.file = file, .line = place.line, .column = place.column};
    diagnostic.remedy = problem.remedy;
    if (place.line != 0)
      diagnostic.notes.push_back({.message = std::string(withoutIndent(lines[place.line - 1])), .where = diagnostic.where});
    Location source = sourceOf(problem.subject, module);
    if (source.known()) diagnostic.notes.push_back({.message = "made from this source", .where = source});
  }
  return failure;
}

Result<ValidModule> validate(Module module) {
  Problems problems;
  checkIds(module, problems);
  // Whatever follows may index by every id that it meets.
  if (!problems.empty()) return problems.take(module);
  checkDominance(module, problems);
  checkControl(module, problems);
  checkGlobals(module, problems);
  checkFunctions(module, problems);
  checkInstructions(module, problems);
  if (!problems.empty()) return problems.take(module);
  return ValidModule(std::move(module));
}

}  // namespace lockstep::kernel
