// SPDX-License-Identifier: Apache-2.0
// Module scope: names, order of evaluation, call graph.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "frontend/wgsl/checker.h"

namespace lockstep::wgsl {

Program check(const Ast& ast, const ReadOptions& options, Reporter& reporter) { return Checker(ast, options, reporter).run(); }

Checker::Checker(const Ast& ast, const ReadOptions& options, Reporter& reporter)
    : ast_(ast), options_(options), reporter_(reporter), types_(program_.types), eval_(program_.types) {
  program_.expressions.resize(ast.expressions.size());
  program_.declared.resize(ast.statements.size());
  program_.functions.resize(ast.functions.size());
}

Program Checker::run() {
  checkExtensions();
  declareGlobals();
  for (Global& global : globals_) resolveGlobal(global);
  for (const ExprId assertion : ast_.const_asserts) checkConstAssert(assertion);
  for (uint32_t i = 0; i < ast_.functions.size() && !reporter_.full(); ++i) checkFunctionBody(i);
  for (const Global& global : globals_) {
    if (global.entity.valid() && program_[global.entity].kind == EntityKind::Var) program_.globals.push_back(global.entity);
  }
  orderFunctions();
  checkBindings();
  checkUnusedOverrides();
  return std::move(program_);
}

Ty Checker::fail(const char* code, Span where, std::string message, std::string remedy, std::vector<Note> notes) {
  reporter_.error(code, where, std::move(message), std::move(remedy), std::move(notes));
  return kError;
}

EntityId Checker::addEntity(Entity entity) {
  program_.entities.push_back(std::move(entity));
  return EntityId(program_.entities.size() - 1);
}

void Checker::checkExtensions() {
  for (const Directive& enable : ast_.enables) {
    if (enable.name == "f16") {
      f16_enabled_ = program_.uses_f16 = true;
    } else if (enable.name == "subgroups") {
      subgroups_enabled_ = program_.uses_subgroups = true;
    } else {
      fail(kUnsupported, enable.span, fmt::format("extension '{}' is not supported", enable.name), "supported are: f16, subgroups");
    }
  }
  constexpr std::array<std::string_view, 8> kFeatures{"linear_indexing",
                                                      "packed_4x8_integer_dot_product",
                                                      "pointer_composite_access",
                                                      "readonly_and_readwrite_storage_textures",
                                                      "unrestricted_pointer_parameters",
                                                      "uniform_buffer_standard_layout",
                                                      "subgroup_id",
                                                      "subgroup_uniformity"};
  for (const Directive& feature : ast_.requirements) {
    if (std::find(kFeatures.begin(), kFeatures.end(), feature.name) == kFeatures.end()) {
      fail(kUnsupported, feature.span, fmt::format("language feature '{}' is not supported", feature.name));
    }
  }
}

void Checker::declareGlobals() {
  for (const Declaration& declaration : ast_.declarations) {
    std::string_view name;
    Span span;
    const auto take = [&](const auto& decl) {
      name = decl.name;
      span = decl.name_span;
    };
    if (declaration.kind == DeclarationKind::Variable) take(ast_.variables[declaration.index]);
    if (declaration.kind == DeclarationKind::Function) take(ast_.functions[declaration.index]);
    if (declaration.kind == DeclarationKind::Struct) take(ast_.structs[declaration.index]);
    if (declaration.kind == DeclarationKind::Alias) take(ast_.aliases[declaration.index]);
    if (declaration.kind == DeclarationKind::ConstAssert) continue;
    const auto [entry, is_new] = global_names_.try_emplace(name, globals_.size());
    if (!is_new) {
      fail(kName, span, fmt::format("'{}' is declared twice in this module", name), {},
           {reporter_.note(globals_[entry->second].span, "first declared here")});
    }
    globals_.push_back({.declaration = declaration, .span = span, .entity = {}});
  }
}

void Checker::resolveGlobal(Global& global) {
  if (global.state == State::Done) return;
  const std::string_view name = reporter_.source().text(global.span);
  constexpr uint32_t kMaximumChain = 200;
  if (global.state == State::Running || resolving_ >= kMaximumChain) {
    fail(global.state == State::Running ? kName : kLimit, global.span,
         global.state == State::Running ? fmt::format("'{}' depends on itself", name)
                                        : fmt::format("'{}' is at the end of a chain of too many declarations", name));
    return;
  }
  global.state = State::Running;
  ++resolving_;
  // Module-scope declarations see neither the scopes nor the unevaluated context of the place that named them.
  std::vector<Scope> scopes;
  scopes.swap(scopes_);
  const uint32_t quiet = std::exchange(quiet_, 0);
  const uint32_t function = std::exchange(function_, UINT32_MAX);

  const uint32_t index = global.declaration.index;
  if (global.declaration.kind == DeclarationKind::Variable) global.entity = checkGlobalVariable(ast_.variables[index]);
  if (global.declaration.kind == DeclarationKind::Struct) global.type = checkStruct(ast_.structs[index]);
  if (global.declaration.kind == DeclarationKind::Alias) global.type = resolveType(ast_.aliases[index].type);
  if (global.declaration.kind == DeclarationKind::Function) checkSignature(index);

  function_ = function;
  quiet_ = quiet;
  scopes_.swap(scopes);
  --resolving_;
  global.state = State::Done;
}

/// Depth-first order of the call graph, without recursion: chains of calls may be as long as the module.
void Checker::orderFunctions() {
  std::vector<State> states(program_.functions.size(), State::Waiting);
  using Edge = std::map<uint32_t, Span>::const_iterator;
  std::vector<std::pair<uint32_t, Edge>> stack;
  for (uint32_t root = 0; root < states.size(); ++root) {
    if (states[root] != State::Waiting) continue;
    states[root] = State::Running;
    stack.emplace_back(root, program_.functions[root].calls.begin());
    while (!stack.empty()) {
      auto& [function, edge] = stack.back();
      if (edge == program_.functions[function].calls.end()) {
        states[function] = State::Done;
        program_.function_order.push_back(function);
        stack.pop_back();
        continue;
      }
      const auto [callee, place] = *edge++;
      if (states[callee] == State::Running) {
        fail(kFlow, place, fmt::format("call of '{}' makes a recursion, which WGSL does not allow", ast_.functions[callee].name));
      } else if (states[callee] == State::Waiting) {
        states[callee] = State::Running;
        stack.emplace_back(callee, program_.functions[callee].calls.begin());
      }
    }
  }
}

/// Two resources of one entry point may not share a binding. Modules have few entry points, so the check is done on whole modules
/// unless there are several (then variables of different entry points may share).
void Checker::checkBindings() {
  const auto entry_points = std::count_if(program_.functions.begin(), program_.functions.end(),
                                          [](const FunctionInfo& f) { return f.workgroup_size.has_value(); });
  if (entry_points > 1) return;
  std::map<std::pair<uint32_t, uint32_t>, EntityId> seen;
  for (const EntityId id : program_.globals) {
    const Entity& entity = program_[id];
    if (!entity.has_binding) continue;
    const auto [entry, is_new] = seen.try_emplace({entity.group, entity.binding}, id);
    if (!is_new) {
      fail(kAttribute, entity.span, fmt::format("'{}' has the same group and binding as another variable", entity.name), {},
           {reporter_.note(program_[entry->second].span, "first used here")});
    }
  }
}

void Checker::checkUnusedOverrides() {
  for (const auto& [key, value] : options_.overrides) {
    if (used_overrides_.contains(key)) continue;
    fail(kOverride, {}, fmt::format("a value is given for override '{}', which the module does not have", key));
  }
}

}  // namespace lockstep::wgsl
