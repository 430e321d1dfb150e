// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/reflect.h"

#include <algorithm>
#include <map>
#include <optional>

#include "frontend/wgsl/check/checked_text.h"
#include "frontend/wgsl/check/contracts.h"
#include "ir/kernel/queries.h"

namespace lockstep::wgsl {
namespace {

double numberOf(const ConstValue& value) {
  return value.type == kF32 || value.type == kF16 ? value.number : static_cast<double>(value.integer);
}

class Reflector {
 public:
  Reflector(const Source& source, const ReadOptions& options, const CheckedText& checked)
      : source_(source), options_(options), ast_(checked.ast), program_(checked.program) {}

  Result<Reflection> run() {
    for (const Directive& extension : ast_.enables) result_.extensions.emplace_back(extension.name);
    for (const VariableDecl& decl : ast_.variables) {
      if (decl.kind == VariableKind::Override) addOverride(decl);
    }
    for (const EntityId id : program_.globals) {
      const Entity& entity = program_[id];
      if (entity.has_binding) addVariable(entity, result_.bindings);
      if (isImmediate(entity)) addVariable(entity, result_.immediates);
    }
    // For all entry points at once where that is possible: it takes as long as for one.
    Reporter silent(source_);
    Program valued = substituteOverrides(ast_, options_, silent);
    if (!silent.failed()) valued_ = std::move(valued);
    for (size_t i = 0; i < program_.functions.size(); ++i) {
      const bool named = options_.entry_point.empty() || ast_.functions[i].name == options_.entry_point;
      if (program_.functions[i].workgroup_size && named) LS_CHECK(addEntryPoint(i));
    }
    Reporter reporter(source_);
    result_.contracts = readContracts(source_, ast_, valued_ ? *valued_ : program_, reporter);
    if (reporter.failed()) return Failure{.diagnostics = reporter.take()};
    return std::move(result_);
  }

 private:
  void addOverride(const VariableDecl& decl) {
    ReflectedOverride out{.name = std::string(decl.name), .id = {}, .type = {}, .value = {}, .where = source_.locate(decl.name_span)};
    out.required = !decl.initializer.valid();
    for (const Attribute& attribute : decl.attributes) {
      const bool is_id = attribute.name == "id" && attribute.arguments.size() == 1;
      if (is_id) out.id = static_cast<uint32_t>(program_[attribute.arguments[0]].value->integer);
    }
    const auto given = options_.overrides.find(out.id ? std::to_string(*out.id) : out.name);
    if (given != options_.overrides.end()) {
      out.value = given->second;
    } else if (!out.required && program_[decl.initializer].value) {
      out.value = numberOf(*program_[decl.initializer].value);
    }
    for (const Entity& entity : program_.entities) {
      if (entity.kind == EntityKind::Override && entity.name == out.name) out.type = program_.types.toString(entity.type);
    }
    positions_[out.name] = result_.overrides.size();
    result_.overrides.push_back(std::move(out));
  }

  [[nodiscard]] bool isImmediate(const Entity& entity) const {
    return entity.kind == EntityKind::Var && program_.types[entity.type].space == AddressSpace::Immediate;
  }

  void addVariable(const Entity& entity, std::vector<ReflectedBinding>& list) {
    const Types& types = program_.types;
    const Type reference = types[entity.type];
    const Ty type = reference.element;
    ReflectedBinding out{.group = entity.group,
                         .binding = entity.binding,
                         .name = entity.name,
                         .type = types.toString(type),
                         .space = reference.space,
                         .access = reference.access,
                         .size = types.sizeOf(type),
                         .members = {},
                         .where = source_.locate(entity.span)};
    Ty last = type;
    if (types[type].kind == Kind::Struct) {
      const std::vector<StructMember>& members = types.structure(type).members;
      const std::vector<uint64_t> offsets = types.memberOffsets(type);
      for (size_t i = 0; i < members.size(); ++i) {
        last = members[i].type;
        out.members.push_back({.name = members[i].name, .type = types.toString(last), .offset = offsets[i], .size = types.sizeOf(last)});
      }
    }
    if (types.isArray(last) && types.isRuntimeSized(last)) out.stride = types.strideOf(last);
    positions_[out.name] = list.size();
    list.push_back(std::move(out));
  }

  Status addEntryPoint(size_t index) {
    ReflectedEntryPoint out{.name = std::string(ast_.functions[index].name),
                            .workgroup_size = {},
                            .workgroup_bytes = {},
                            .bindings = {},
                            .immediate = {},
                            .overrides = {},
                            .where = source_.locate(ast_.functions[index].name_span)};
    for (const EntityId id : program_.functions[index].reaches) {
      const Entity& entity = program_[id];
      if (entity.has_binding) out.bindings.push_back(positions_.at(entity.name));
      if (isImmediate(entity)) out.immediate = positions_.at(entity.name);
      if (entity.kind == EntityKind::Override) out.overrides.push_back(positions_.at(entity.name));
    }
    if (valued_) {
      addValues(*valued_, valued_->functions[index], out);
    } else {
      Reporter reporter(source_);
      ReadOptions options = options_;
      options.entry_point = out.name;
      const Program valued = substituteOverrides(ast_, options, reporter);
      if (!reporter.failed()) {
        addValues(valued, valued.functions[index], out);
      } else if (!options_.overrides.empty()) {
        return Failure{.diagnostics = reporter.take()};
      }
    }
    result_.entry_points.push_back(std::move(out));
    return Success{};
  }

  void addValues(const Program& valued, const FunctionInfo& function, ReflectedEntryPoint& out) {
    out.workgroup_size = function.workgroup_size;
    out.workgroup_bytes = 0;
    for (const EntityId id : function.reaches) {
      const Entity& entity = valued[id];
      if (entity.kind == EntityKind::Override && entity.value)
        result_.overrides[positions_.at(entity.name)].value = numberOf(*entity.value);
      const bool workgroup = entity.kind == EntityKind::Var && valued.types[entity.type].space == AddressSpace::Workgroup;
      if (workgroup) *out.workgroup_bytes += kernel::workgroupBytes(valued.types.sizeOf(valued.types.value(entity.type)));
    }
  }

  const Source& source_;
  const ReadOptions& options_;
  const Ast& ast_;
  const Program& program_;
  Reflection result_;
  std::optional<Program> valued_;            // with the values of all overrides
  std::map<std::string, size_t> positions_;  // module-scope names are unique
};

}  // namespace

Result<Reflection> reflect(std::string_view text, const ReadOptions& options) {
  const Source source(text, options.file_name);
  Reporter reporter(source);
  const CheckedText checked = checkText(source, options, reporter);
  if (reporter.failed()) return Failure{.diagnostics = reporter.take()};
  return Reflector(source, options, checked).run();
}

}  // namespace lockstep::wgsl
