// SPDX-License-Identifier: Apache-2.0
// Declarations that nothing uses. A name that begins with '_' is meant to be unused.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "frontend/wgsl/lint/lints.h"
#include "frontend/wgsl/lint/range_walk.h"

namespace lockstep::wgsl {
namespace {

/// Smaller arrays are not worth a word.
constexpr uint32_t kLargeArray = 16;

class Unused {
 public:
  Unused(const LintInput& input, LintReporter& reporter)
      : input_(input),
        ast_(input.ast),
        program_(input.program),
        reporter_(reporter),
        used_(program_.entities.size()),
        reached_(ast_.functions.size()) {}

  void run() {
    for (const ExprInfo& expression : program_.expressions) {
      if (expression.entity.valid()) used_[expression.entity.index()] = true;
    }
    reachFunctions();
    visitLocals();
    for (size_t i = 0; i < ast_.functions.size(); ++i) visitFunction(i);
    for (const EntityId id : program_.globals) visitGlobal(id);
    // With overrides the sizes are those of the defaults.
    if (input_.module != nullptr && !input_.has_overrides) visitArrays(*input_.module);
  }

 private:
  /// A module without entry points is there for its functions.
  void reachFunctions() {
    std::vector<uint32_t> open;
    for (uint32_t i = 0; i < program_.functions.size(); ++i) {
      if (program_.functions[i].workgroup_size) open.push_back(i);
    }
    has_entry_points_ = !open.empty();
    while (!open.empty()) {
      const uint32_t function = open.back();
      open.pop_back();
      if (reached_[function]) continue;
      reached_[function] = true;
      for (const auto& [callee, place] : program_.functions[function].calls) open.push_back(callee);
    }
  }

  [[nodiscard]] bool isUnused(EntityId id) const { return !used_[id.index()] && !program_[id].name.starts_with("_"); }

  void visitLocals() {
    for (size_t i = 0; i < ast_.statements.size(); ++i) {
      const EntityId id = program_.declared[i];
      if (!id.valid() || !isUnused(id)) continue;
      report(program_[id].span, fmt::format("'{}' is not used", program_[id].name), "remove it, or begin its name with '_'");
    }
  }

  void visitFunction(size_t i) {
    const FunctionDecl& decl = ast_.functions[i];
    const FunctionInfo& info = program_.functions[i];
    if (!info.valid || info.left_out) return;
    if (has_entry_points_ && !reached_[i] && !decl.name.starts_with("_")) {
      report(decl.name_span, fmt::format("no entry point reaches function '{}'", decl.name), "call or remove it");
      return;
    }
    if (isStub(decl, info)) return;
    for (const EntityId id : info.parameters) {
      if (!isUnused(id)) continue;
      report(program_[id].span, fmt::format("parameter '{}' of '{}' is not used", program_[id].name, decl.name),
             "remove it, or begin its name with '_'");
    }
  }

  /// A body that is to be replaced, or stands where nothing is to be done.
  [[nodiscard]] bool isStub(const FunctionDecl& decl, const FunctionInfo& info) const {
    return !info.workgroup_size && ast_[decl.body].statements.size() < 2 &&
           std::ranges::all_of(info.parameters, [&](EntityId id) { return !used_[id.index()]; });
  }

  void visitGlobal(EntityId id) {
    const Entity& entity = program_[id];
    if (entity.kind != EntityKind::Var || !isUnused(id)) return;
    if (!entity.has_binding) {
      report(entity.span, fmt::format("'{}' is not used", entity.name), "remove it");
      return;
    }
    report(entity.span,
           fmt::format("binding {}.{} '{}' is not used: a layout that is made from the module does not have it", entity.group,
                       entity.binding, entity.name),
           "use or remove it");
  }

  /// Arrays of a workgroup or an invocation of which no index reaches the second half.
  void visitArrays(const kernel::Module& module) {
    std::map<kernel::ValueId, int64_t> highest;
    std::set<kernel::ValueId> whole;
    RangeWalk(module).run([&](const kernel::Instruction& x, const kernel::ValueRanges& ranges) {
      for (size_t k = 0; k < x.operands.size(); ++k) {
        const kernel::ValueId value = x.operands[k];
        if (module.typeOf(value).kind != kernel::TypeKind::Pointer) continue;
        if (x.op == kernel::Op::Access && k == 0) {
          int64_t& high = highest[value];
          if (module.typeOf(x.operands[1]).isInteger()) high = std::max(high, highOf(module, x.operands[1], ranges));
        } else {
          whole.insert(value);
        }
      }
    });
    for (const auto& [variable, high] : highest) {
      const kernel::Type& pointer = module.typeOf(variable);
      const kernel::Type& type = module.types[pointer.element];
      const bool own = pointer.space == kernel::AddressSpace::Workgroup || pointer.space == kernel::AddressSpace::Private;
      if (!own || type.kind != kernel::TypeKind::Array || type.count < kLargeArray || whole.contains(variable) ||
          2 * (high + 1) > type.count)
        continue;
      const auto entity = std::ranges::find_if(program_.globals, [&](EntityId id) { return program_[id].name == module[variable].name; });
      if (entity == program_.globals.end()) continue;
      report(program_[*entity].span,
             fmt::format("only the first {} of the {} elements of '{}' are used", high + 1, type.count, program_[*entity].name),
             "make the array smaller: what a workgroup does not take, another one can");
    }
  }

  static int64_t highOf(const kernel::Module& module, kernel::ValueId index, const kernel::ValueRanges& ranges) {
    const auto bits = kernel::constantBits(module, index);
    return bits ? int64_t{*bits} : ranges.rangeOf(index).high;
  }

  void report(Span where, std::string message, const std::string& remedy) {
    reporter_.report(DiagnosticRule::Unused, where, std::move(message), remedy);
  }

  const LintInput& input_;
  const Ast& ast_;
  const Program& program_;
  LintReporter& reporter_;
  std::vector<bool> used_, reached_;
  bool has_entry_points_ = false;
};

}  // namespace

void lintUnused(const LintInput& input, LintReporter& reporter) { Unused(input, reporter).run(); }

}  // namespace lockstep::wgsl
