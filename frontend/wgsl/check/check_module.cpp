// SPDX-License-Identifier: Apache-2.0
// Module scope: names, order of evaluation, call graph.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "frontend/wgsl/check/checker.h"
#include "ir/support/nearest.h"

namespace lockstep::wgsl {

Program checkModule(const Ast& ast, const ReadOptions& options, Reporter& reporter) {
  return Checker(ast, options, Checker::Overrides::HaveNoValues, reporter).run();
}

Program substituteOverrides(const Ast& ast, const ReadOptions& options, Reporter& reporter) {
  using Overrides = Checker::Overrides;
  return Checker(ast, options, options.overrides_are_constants ? Overrides::AreConstants : Overrides::HaveValues, reporter).run();
}

Checker::Checker(const Ast& ast, const ReadOptions& options, Overrides overrides, Reporter& reporter)
    : ast_(ast), options_(options), overrides_(overrides), reporter_(reporter), types_(program_.types), eval_(program_.types) {
  program_.expressions.resize(ast.expressions.size());
  program_.declared.resize(ast.statements.size());
  program_.functions.resize(ast.functions.size());
  function_globals_.resize(ast.functions.size());
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
  listReached();
  checkMatrixElements();
  if (overrides_ != Overrides::HaveNoValues) checkUnusedOverrides();
  reportDeferred();
  return std::move(program_);
}

Ty Checker::fail(const char* code, Span where, std::string message, std::string remedy, std::vector<Note> notes) {
  // The module was accepted before, so what is wrong now follows from the values of overrides.
  const bool from_overrides = overrides_ == Overrides::HaveValues && unit_ != SIZE_MAX;
  if (from_overrides) return defer(kOverride, where, std::move(message), std::move(remedy), std::move(notes));
  if (std::string_view(code) == kFlow) {
    if (function_ == UINT32_MAX) program_.ordered = false;
    if (function_ != UINT32_MAX) program_.functions[function_].broken = true;
  }
  reporter_.error(code, where, std::move(message), std::move(remedy), std::move(notes));
  return kError;
}

Ty Checker::defer(const char* code, Span where, std::string message, std::string remedy, std::vector<Note> notes) {
  globals_[unit_].deferred.push_back(
      {.code = code, .where = where, .message = std::move(message), .remedy = std::move(remedy), .notes = std::move(notes)});
  return kError;
}

std::vector<size_t> Checker::entryPoints() const {
  std::vector<size_t> found;
  for (size_t i = 0; i < program_.functions.size(); ++i) {
    const bool named = options_.entry_point.empty() || ast_.functions[i].name == options_.entry_point;
    if (program_.functions[i].workgroup_size && named) found.push_back(function_globals_[i]);
  }
  return found;
}

std::vector<bool> Checker::reachedFrom(const std::vector<size_t>& roots) const {
  std::vector<bool> reached(globals_.size(), false);
  std::vector<size_t> pending = roots;
  while (!pending.empty()) {
    const size_t at = pending.back();
    pending.pop_back();
    if (reached[at]) continue;
    reached[at] = true;
    pending.insert(pending.end(), globals_[at].uses.begin(), globals_[at].uses.end());
  }
  return reached;
}

/// A library without entry points is given to somebody who adds one, so with override values all of it counts.
void Checker::reportDeferred() {
  const std::vector<size_t> roots = entryPoints();
  if (roots.empty() && !options_.entry_point.empty()) {
    std::vector<std::string_view> names;
    for (size_t i = 0; i < program_.functions.size(); ++i) {
      if (program_.functions[i].workgroup_size) names.push_back(ast_.functions[i].name);
    }
    reporter_.error(kName, {}, fmt::format("the module has no compute entry point '{}'", options_.entry_point),
                    suggest(options_.entry_point, names));
    return;
  }
  const bool library = roots.empty() && overrides_ == Overrides::HaveValues;
  const std::vector<bool> reached = library ? std::vector<bool>(globals_.size(), true) : reachedFrom(roots);
  for (size_t i = 0; i < globals_.size(); ++i) {
    if (!reached[i]) continue;
    for (Deferred& problem : globals_[i].deferred) {
      reporter_.error(problem.code, problem.where, std::move(problem.message), std::move(problem.remedy), std::move(problem.notes));
    }
  }
  leaveOut(reached);
}

/// Functions and variables that no entry point reaches stay in the module as long as nothing that they use has a problem.
void Checker::leaveOut(const std::vector<bool>& reached) {
  std::vector<std::vector<size_t>> users(globals_.size());
  std::vector<size_t> pending;
  for (size_t i = 0; i < globals_.size(); ++i) {
    for (const size_t used : globals_[i].uses) users[used].push_back(i);
    if (!reached[i] && !globals_[i].deferred.empty()) pending.push_back(i);
  }
  if (pending.empty()) return;
  std::vector<bool> out(globals_.size(), false);
  while (!pending.empty()) {
    const size_t at = pending.back();
    pending.pop_back();
    if (out[at]) continue;
    out[at] = true;
    pending.insert(pending.end(), users[at].begin(), users[at].end());
  }
  std::set<EntityId> entities;
  for (size_t i = 0; i < globals_.size(); ++i) {
    const Global& global = globals_[i];
    if (!out[i]) continue;
    if (global.declaration.kind == DeclarationKind::Function) program_.functions[global.declaration.index].left_out = true;
    if (global.entity.valid()) entities.insert(global.entity);
  }
  std::erase_if(program_.globals, [&](EntityId id) { return entities.contains(id); });
}

EntityId Checker::addEntity(Entity entity) {
  program_.entities.push_back(std::move(entity));
  return EntityId(program_.entities.size() - 1);
}

namespace {

/// Extensions that WGSL has, and Dawn's subgroup matrices; those that are not supported only name things of other stages, which are
/// harmless where compute shaders do not use them.
constexpr auto kExtensions =
    std::to_array<std::string_view>({"chromium_experimental_subgroup_matrix", "clip_distances", "dual_source_blending", "f16",
                                     "primitive_index", "subgroup_size_control", "subgroups"});

/// The first is Tint's name for `print`.
constexpr auto kFeatures = std::to_array<std::string_view>({
    "chromium_print",
    "fragment_depth",
    "immediate_address_space",
    "linear_indexing",
    "packed_4x8_integer_dot_product",
    "pointer_composite_access",
    "readonly_and_readwrite_storage_textures",
    "subgroup_id",
    "subgroup_uniformity",
    "swizzle_assignment",
    "texture_and_sampler_let",
    "texture_formats_tier1",
    "uniform_buffer_standard_layout",
    "unrestricted_pointer_parameters",
});

/// Features of WGSL, and extensions of implementations, that are known but not supported.
constexpr auto kUnsupportedFeatures = std::to_array<std::string_view>({"buffer_view"});

constexpr auto kUnsupportedExtensions = std::to_array<std::string_view>({"atomic_vec2u_min_max"});

bool isVendorExtension(std::string_view name) {
  return name.starts_with("chromium_") || name.starts_with("wgpu_") || name.starts_with("naga_");
}

}  // namespace

void Checker::checkExtensions() {
  for (const Directive& enable : ast_.enables) {
    if (enable.name == "f16") f16_enabled_ = program_.uses_f16 = true;
    if (enable.name == "subgroups") subgroups_enabled_ = program_.uses_subgroups = true;
    // It enables subgroups, too; a kernel that only states the size does without them.
    if (enable.name == "subgroup_size_control") subgroup_sizes_enabled_ = subgroups_enabled_ = true;
    if (enable.name == "chromium_experimental_subgroup_matrix") subgroup_matrices_enabled_ = program_.uses_subgroup_matrices = true;
    if (std::ranges::find(kExtensions, enable.name) != kExtensions.end()) continue;
    const bool known =
        isVendorExtension(enable.name) || std::ranges::find(kUnsupportedExtensions, enable.name) != kUnsupportedExtensions.end();
    fail(known ? kUnsupported : kName, enable.span,
         known ? fmt::format("extension '{}' is not supported", enable.name) : fmt::format("WGSL has no extension '{}'", enable.name),
         fmt::format("supported are: {}", fmt::join(kExtensions, ", ")));
  }
  for (const Directive& feature : ast_.requirements) {
    if (std::ranges::find(kFeatures, feature.name) != kFeatures.end()) continue;
    const bool known =
        isVendorExtension(feature.name) || std::ranges::find(kUnsupportedFeatures, feature.name) != kUnsupportedFeatures.end();
    fail(known ? kUnsupported : kName, feature.span,
         known ? fmt::format("language feature '{}' is not supported", feature.name)
               : fmt::format("WGSL has no language feature '{}'", feature.name),
         fmt::format("supported are: {}", fmt::join(kFeatures, ", ")));
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
    if (declaration.kind == DeclarationKind::Function) function_globals_[declaration.index] = globals_.size();
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
  LocalScopes scopes;
  std::swap(scopes, scopes_);
  const uint32_t quiet = std::exchange(quiet_, 0);
  const uint32_t function = std::exchange(function_, UINT32_MAX);
  const size_t unit = std::exchange(unit_, static_cast<size_t>(&global - globals_.data()));

  const uint32_t index = global.declaration.index;
  if (global.declaration.kind == DeclarationKind::Variable) global.entity = checkGlobalVariable(ast_.variables[index]);
  if (global.declaration.kind == DeclarationKind::Struct) global.type = checkStruct(ast_.structs[index]);
  if (global.declaration.kind == DeclarationKind::Alias) global.type = resolveType(ast_.aliases[index].type);
  if (global.declaration.kind == DeclarationKind::Function) checkSignature(index);

  unit_ = unit;
  function_ = function;
  quiet_ = quiet;
  std::swap(scopes, scopes_);
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

/// Two resources of one entry point may not share a binding, and immediate data is one variable.
void Checker::checkBindings() {
  std::set<std::pair<uint32_t, uint32_t>> bindings;
  bool shared = false, has_immediate = false;
  const auto isImmediate = [&](const Entity& entity) {
    return entity.kind == EntityKind::Var && types_[entity.type].space == AddressSpace::Immediate;
  };
  for (const EntityId id : program_.globals) {
    const Entity& entity = program_[id];
    if (entity.has_binding) shared = !bindings.emplace(entity.group, entity.binding).second || shared;
    if (isImmediate(entity)) shared = std::exchange(has_immediate, true) || shared;
  }
  if (!shared) return;
  for (const size_t entry_point : entryPoints()) {
    const std::vector<bool> reached = reachedFrom({entry_point});
    std::map<std::pair<uint32_t, uint32_t>, EntityId> seen;
    EntityId immediate;
    for (size_t i = 0; i < globals_.size(); ++i) {
      if (!reached[i] || !globals_[i].entity.valid()) continue;
      const Entity& entity = program_[globals_[i].entity];
      if (isImmediate(entity)) {
        if (!immediate.valid()) {
          immediate = globals_[i].entity;
          continue;
        }
        fail(kAttribute, entity.span,
             fmt::format("'{}' is the second immediate variable of entry point '{}', which can have one", entity.name,
                         reporter_.source().text(globals_[entry_point].span)),
             "make them members of one struct", {reporter_.note(program_[immediate].span, "the first is here")});
      }
      if (!entity.has_binding) continue;
      const auto [entry, is_new] = seen.try_emplace({entity.group, entity.binding}, globals_[i].entity);
      if (is_new) continue;
      fail(kAttribute, entity.span,
           fmt::format("'{}' has the same group and binding as another variable of entry point '{}'", entity.name,
                       reporter_.source().text(globals_[entry_point].span)),
           "give one of them another @binding", {reporter_.note(program_[entry->second].span, "first used here")});
    }
  }
}

void Checker::listReached() {
  for (const size_t entry_point : entryPoints()) {
    const std::vector<bool> reached = reachedFrom({entry_point});
    std::vector<EntityId>& list = program_.functions[globals_[entry_point].declaration.index].reaches;
    for (size_t i = 0; i < globals_.size(); ++i) {
      if (reached[i] && globals_[i].entity.valid()) list.push_back(globals_[i].entity);
    }
  }
}

/// How many elements of a matrix an invocation holds, and which, follows from the size of its subgroup. The compiler states it for
/// templates.
void Checker::checkMatrixElements() {
  if (overrides_ == Overrides::AreConstants) return;
  for (const size_t entry_point : entryPoints()) {
    const FunctionDecl& decl = ast_.functions[globals_[entry_point].declaration.index];
    const bool stated = std::ranges::find(decl.attributes, "subgroup_size", &Attribute::name) != decl.attributes.end();
    if (stated || matrix_elements_.empty()) continue;
    const std::vector<bool> reached = reachedFrom({entry_point});
    for (const auto& [global, place] : matrix_elements_) {
      if (!reached[global]) continue;
      fail(kAttribute, place,
           fmt::format("elements of a subgroup matrix need an entry point with a subgroup size, and '{}' has none", decl.name),
           "write '@subgroup_size(32)' before it and 'enable subgroup_size_control;' at the top of the module",
           {reporter_.note(decl.name_span, "the entry point is here")});
      break;
    }
  }
}

void Checker::checkUnusedOverrides() {
  for (const auto& [key, value] : options_.overrides) {
    if (used_overrides_.contains(key)) continue;
    fail(kOverride, {}, fmt::format("a value is given for override '{}', which the module does not have", key),
         suggest(key, used_overrides_));
  }
}

}  // namespace lockstep::wgsl
