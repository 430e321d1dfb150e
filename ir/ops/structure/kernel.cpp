// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/text.h"
#include "ir/ops/support/common.h"
#include "ir/ops/support/leaf_ops.h"

namespace lockstep::graph::kernel_op {
namespace {

/// "f32[4,3] i32[]"
Result<std::vector<TensorType>> parseResults(const std::string& text) {
  std::vector<TensorType> types;
  Result<TokenCursor> cursor = TokenCursor::create(text, "results");
  bool readable = cursor.ok();
  while (readable && !cursor->atEnd()) {
    Result<TensorType> type = parseType(*cursor, {});
    readable = type.ok();
    if (!readable) break;
    LS_CHECK(checkExtents("kernel", "C1", type->shape.extents()));
    types.push_back(std::move(*type));
  }
  if (!readable) return violated("kernel", "C1", fmt::format("'{}' are no tensor types such as f32[4,3]", text));
  if (types.empty()) return violated("kernel", "C1", "a kernel has at least one result");
  return types;
}

/// Whether bindings 0 .. operands + results - 1 of group 0 are storage, those of the operands read-only, and there are no others.
Status checkBindings(const kernel::Module& module, size_t operands, size_t results) {
  std::vector<bool> bound(operands + results, false);
  for (const kernel::GlobalVariable& global : module.globals) {
    if (global.space == kernel::AddressSpace::Uniform || global.space == kernel::AddressSpace::Immediate)
      return violated("kernel", "C3",
                      fmt::format("'{}' is in {} memory, but operands and results are in storage", global.name, toString(global.space)));
    if (global.space != kernel::AddressSpace::Storage) continue;
    if (global.group != 0 || global.binding >= bound.size())
      return violated("kernel", "C3",
                      fmt::format("'{}' is at group {} binding {}, beyond the {} operands and {} results of group 0", global.name,
                                  global.group, global.binding, operands, results));
    bool writes = global.access != kernel::Access::Read;
    if (writes != (global.binding >= operands))
      return violated("kernel", "C3",
                      fmt::format("binding {} ('{}') is {}, so it must be {}", global.binding, global.name,
                                  writes ? "an operand" : "a result", writes ? "read" : "read_write"));
    bound[global.binding] = true;
  }
  auto missing = std::find(bound.begin(), bound.end(), false);
  if (missing == bound.end()) return Success{};
  return violated("kernel", "C3", fmt::format("the kernel has no binding {}", missing - bound.begin()));
}

/// Whether each tensor is as large as the variable at its binding.
Status checkSizes(const kernel::Module& module, std::span<const TensorType> operands, std::span<const TensorType> results) {
  for (const kernel::GlobalVariable& global : module.globals) {
    if (global.space != kernel::AddressSpace::Storage) continue;
    const bool is_operand = global.binding < operands.size();
    const TensorType& type = is_operand ? operands[global.binding] : results[global.binding - operands.size()];
    if (const uint64_t least = module.types.sizeOf(global.type); type.byteSize() < least) {
      return violated("kernel", "C5",
                      fmt::format("{} {} is {} with {} bytes, but '{}' at binding {} takes at least {}", is_operand ? "operand" : "result",
                                  is_operand ? global.binding : global.binding - operands.size(), toString(type), type.byteSize(),
                                  global.name, global.binding, least));
    }
  }
  return Success{};
}

Result<std::vector<TensorType>> infer(const InferContext& c) {
  LS_TRY(std::vector<TensorType> results, parseResults(c.attributes.get<std::string>("results")));
  Result<kernel::Module> module = kernel::parse(c.attributes.get<std::string>("module"));
  if (!module.ok()) return violated("kernel", "C2", fmt::format("the module is no kernel IR: {}", module.diagnostics().front().message));
  if (module->entryPoint() == nullptr) return violated("kernel", "C2", "the module has no entry point");
  LS_CHECK(checkBindings(*module, c.operands.size(), results.size()));
  const auto& groups = c.attributes.get<std::vector<int64_t>>("groups");
  bool counts = groups.size() == 3 && std::all_of(groups.begin(), groups.end(), [](int64_t n) { return n >= 1 && n <= 65535; });
  if (!counts)
    return violated("kernel", "C4", fmt::format("[{}] are no three numbers of workgroups from 1 to 65535", fmt::join(groups, ",")));
  LS_CHECK(checkSizes(*module, c.operands, results));
  return results;
}

}  // namespace

extern const OpDef kOp;
constexpr OpDef kOp{
    .name = "kernel",
    .summary = "A kernel that the user wrote: its operands and results are whole tensors, bound in order.",
    .constraints = ConstantList<Constraint>{{"C1", "the result types are tensor types, separated by spaces"},
                                            {"C2", "the module is kernel IR with an entry point"},
                                            {"C3", "bindings 0, 1, ... of group 0 are the operands (read), then the results (read_write)"},
                                            {"C4", "the numbers of workgroups are three, each from 1 to 65535"},
                                            {"C5", "every operand and result has as many bytes as the variable at its binding takes"}},
    .operands = ConstantList<std::string_view>{"operands..."},
    .attributes = ConstantList<AttributeDef>{{"label", AttributeKind::String, "name for dumps and for the evaluator"},
                                             {"module", AttributeKind::String, "the kernel as kernel IR text", true, true},
                                             {"results", AttributeKind::String, "types of the results"},
                                             {"groups", AttributeKind::Integers, "workgroups along x, y and z"}},
    .infer = infer,
    .gradient = NotDifferentiable{.reason = "what a kernel computes is not known", .is_unknown = true},
    .lower = KernelLowering{},
    .alias = NoAlias{},
    .evaluate = evaluateNoLeaf,
    .cases = noCases,
};

}  // namespace lockstep::graph::kernel_op
