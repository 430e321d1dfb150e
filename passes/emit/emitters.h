// SPDX-License-Identifier: Apache-2.0
// One function per kind of plan: symbolic kernel -> kernel module. Shared prologue: the flat workgroup index of a split dispatch.
#pragma once

#include <functional>
#include <string>

#include "passes/emit/body_emitter.h"
#include "passes/emit/emit.h"

namespace lockstep::passes {

struct EmitQuery {
  const graph::Graph& body;
  const BodyBindings& bindings;
  std::array<uint32_t, 3> groups;  ///< of the dispatch; the flat index goes along x first
  const EmitConfig& config;
};

// One emitter per kind of plan; emit() picks it by the plan's type.
Result<kernel::Module> emitKernel(const program::MapPlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::StripsPlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::VectorPlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::RowsPlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::HeldRowsPlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::ColumnsPlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::ScanPlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::ScatterPlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::NaiveContractPlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::TemplatePlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::StreamPlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::TiledPlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::SplitPlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::DigitsPlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::WholePlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::MatrixPlan& plan, const EmitQuery& query);
Result<kernel::Module> emitKernel(const program::RowChainPlan& plan, const EmitQuery& query);

/// The frame of an entry point with one-dimensional workgroups.
struct Entry {
  kernel::FunctionId function;
  kernel::ValueId group;  ///< flat workgroup index
  kernel::ValueId lane;   ///< local invocation index
};
Entry beginEntry(kernel::Builder& builder, const EmitQuery& query, uint32_t lanes);

/// The kernel that `body` emits, with vectors of up to `width` elements bound. A tensor of which some element turns out to be read alone is
/// bound by elements: one variable per binding is all that there is.
kernel::Module withVectors(const EmitQuery& query, int64_t width, const std::function<void(kernel::Builder&, BodyEmitter&)>& body);

/// for (i = begin; i < end; i += step) { body(i) }, with `unroll` bodies per round of the loop: all but the first ask whether they are
/// still before the end. Drivers that end loops after a number of rounds see fewer of them.
void forRange(kernel::Builder& builder, kernel::ValueId begin, kernel::ValueId end, int64_t step, int64_t unroll, const std::string& name,
              const std::function<void(kernel::ValueId)>& body);

/// Whether a result has the bytes of an operand.
bool storesInPlace(const BodyBindings& bindings);

/// Before the elements of rows are stored in the bytes of an operand: all invocations have read what they need of it for values of the
/// rows, and for reductions where `reads_others`: where some of them read elements that others store.
void awaitRowReads(kernel::Builder& builder, const EmitQuery& query, int64_t lanes, bool reads_others);

/// The start of an accumulator: the neutral element of a reduction over elements of this type.
kernel::ValueId neutralOf(kernel::Builder& builder, const graph::ReduceLowering& reduce, graph::DType dtype);

/// A variable in workgroup memory.
kernel::ValueId workgroupArray(kernel::Builder& builder, std::string name, kernel::TypeId element, int64_t count);

/// Combines one accumulator per invocation over the lanes of each line of a workgroup by a tree in workgroup memory. Lane l of line i is
/// invocation `base + l * stride`; `lane` is l. Ends with every invocation of the line holding the result.
kernel::ValueId combineLanes(kernel::Builder& builder, const graph::ReduceLowering& reduce, kernel::ValueId accumulated,
                             kernel::ValueId scratch, kernel::ValueId invocation, kernel::ValueId lane, int64_t lanes, int64_t stride);

}  // namespace lockstep::passes
