// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "frontend/wgsl/lint/lints.h"

namespace lockstep::wgsl {
namespace {

/// The narrowest group of lanes that GPUs of today run together.
constexpr uint64_t kLanes = 32;

bool countsWorkgroups(kernel::Builtin builtin) {
  return builtin == kernel::Builtin::GlobalInvocationId || builtin == kernel::Builtin::WorkgroupId ||
         builtin == kernel::Builtin::NumWorkgroups;
}

class WorkgroupSizes {
 public:
  WorkgroupSizes(const LintInput& input, LintReporter& reporter)
      : ast_(input.ast), program_(input.program), groups_(input.groups), reporter_(reporter), used_(program_.entities.size()) {
    for (const ExprInfo& expression : program_.expressions) {
      if (expression.entity.valid()) used_[expression.entity.index()] = true;
    }
  }

  void run() {
    for (size_t i = 0; i < ast_.functions.size(); ++i) {
      const FunctionDecl& decl = ast_.functions[i];
      const auto attribute = std::ranges::find(decl.attributes, "workgroup_size", &Attribute::name);
      if (attribute == decl.attributes.end() || !program_.functions[i].workgroup_size) continue;
      // A size that an override gives is chosen by whoever runs it.
      if (std::ranges::any_of(attribute->arguments, [&](ExprId id) { return program_[id].stage != Stage::Const; })) continue;
      visit(decl, program_.functions[i], attribute->span);
    }
  }

 private:
  void visit(const FunctionDecl& decl, const FunctionInfo& info, Span where) {
    const auto [x, y, z] = *info.workgroup_size;
    const uint64_t size = uint64_t{x} * y * z;
    // Small powers of two are tiles, and share the lanes with other workgroups on many GPUs.
    const bool small_tile = size > 1 && size < kLanes && (size & (size - 1)) == 0;
    if (size % kLanes == 0 || small_tile) return;
    const bool many = std::ranges::any_of(groups_, [](uint32_t count) { return count > 1; }) || usesManyGroups(info);
    if (many && writesAnyNumber(info)) {
      const uint64_t idle = kLanes - size % kLanes;
      report(where,
             fmt::format("a workgroup of '{}' has {} {}: GPUs run {} or more lanes together, so that {} of every {} are idle", decl.name,
                         size, size == 1 ? "invocation" : "invocations", kLanes, idle, (size + kLanes - 1) / kLanes * kLanes));
    } else if (!many && size == 1 && hasLongLoop(ast_[decl.body].span)) {
      report(where, fmt::format("'{}' walks over an array in one invocation: the rest of the GPU is idle", decl.name));
    }
  }

  /// Whether the entry point uses what only several workgroups make different.
  [[nodiscard]] bool usesManyGroups(const FunctionInfo& info) const {
    for (size_t i = 0; i < info.parameters.size(); ++i) {
      if (!used_[info.parameters[i].index()]) continue;
      if (countsWorkgroups(info.builtins[i])) return true;
      const Ty type = program_[info.parameters[i]].type;
      if (program_.types[type].kind != Kind::Struct) continue;
      for (const StructMember& member : program_.types.structure(type).members) {
        if (countsWorkgroups(member.builtin)) return true;
      }
    }
    return false;
  }

  /// A kernel for arrays of fixed sizes was made for as many invocations as they need.
  [[nodiscard]] bool writesAnyNumber(const FunctionInfo& info) const {
    return std::ranges::any_of(info.reaches, [&](EntityId id) {
      const Type& type = program_.types[program_[id].type];
      const bool written = type.kind == Kind::Reference && type.space == AddressSpace::Storage && type.access != Access::Read;
      return written && program_.types.isRuntimeSized(type.element);
    });
  }

  /// Whether a loop of the function walks over an array that may be of any size.
  [[nodiscard]] bool hasLongLoop(Span function) const {
    const auto within = [](Span inner, Span outer) { return inner.begin >= outer.begin && inner.end <= outer.end; };
    return std::ranges::any_of(ast_.statements, [&](const Stmt& stmt) {
      const bool loop = stmt.kind == StmtKind::For || stmt.kind == StmtKind::While || stmt.kind == StmtKind::Loop;
      if (!loop || !within(stmt.span, function)) return false;
      return std::ranges::any_of(ast_.expressions, [&](const Expr& expr) {
        if (expr.kind != ExprKind::Index || !within(expr.span, stmt.span)) return false;
        const Ty array = program_.types.value(program_[expr.left].type);
        return program_.types.isArray(array) && program_.types.isRuntimeSized(array);
      });
    });
  }

  void report(Span where, std::string message) {
    reporter_.report(
        DiagnosticRule::WorkgroupSize, where, std::move(message),
        "use 64 or another multiple of 32 invocations, with a test against the number of elements, and share the work between them");
  }

  const Ast& ast_;
  const Program& program_;
  std::array<uint32_t, 3> groups_;
  LintReporter& reporter_;
  std::vector<bool> used_;
};

}  // namespace

void lintWorkgroupSize(const LintInput& input, LintReporter& reporter) { WorkgroupSizes(input, reporter).run(); }

}  // namespace lockstep::wgsl
