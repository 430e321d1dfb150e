// SPDX-License-Identifier: Apache-2.0
// Kernel: a WGSL compute shader of the user's as an op, with its shape rule, its gradient and a function that checks it.
//   const ls::Kernel scale{{.name = "scale",
//                           .source = R"(
//     @group(0) @binding(0) var<storage, read> x: array<f32>;
//     @group(0) @binding(1) var<storage, read_write> y: array<f32>;
//     @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
//       if (id.x < arrayLength(&y)) { y[id.x] = 2 * x[id.x]; }
//     })",
//                           .gradient = [](const ls::BackwardCall& call) { return std::vector{2 * call.cotangents[0]}; }}};
//   ls::Tensor y = scale({x})[0];
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "frontend/ops/gradient.h"
#include "frontend/trace/tensor.h"
#include "ir/support/where.h"

namespace lockstep {

using Types = std::span<const TensorType>;

struct KernelSpec {
  std::string name;    ///< for dumps, labels and the evaluator
  std::string source;  ///< WGSL; bindings 0, 1, ... of group 0 are the operands (storage, read), then the results (storage, read_write)
  /// Where the text is from, for errors about its lines. Empty: it is a literal, and its lines are counted from the Kernel's own place,
  /// "kernel 'scale' at model.cpp:12, line 3 of its WGSL". With a file and no source the file is read.
  std::string file = {};
  /// Types of the results. Absent: one result of the first operand's type.
  std::function<std::vector<TensorType>(Types operands)> infer = {};
  /// Workgroups along x, y and z. Absent: one invocation of the entry point for each element of the first result, along x.
  std::function<std::array<uint32_t, 3>(Types operands, Types results)> groups = {};
  /// Values of the `override` declarations, for example extents.
  std::function<std::map<std::string, double>(Types operands, Types results)> overrides = {};
  /// What flows back, made of ops and of other kernels. Absent: nothing, and where the kernel is the only way from a parameter to the loss
  /// that is Error "grad.C5"; stop_gradient around it says that it is meant. With it operands that get a gradient and all results are f32.
  std::function<std::vector<Tensor>(const BackwardCall&)> gradient = {};
};

class Kernel {
 public:
  /// Error with the reader's diagnostics ("wgsl.*") when the source is not valid WGSL without override values, "kernel.C2" when it has no
  /// entry point or several, "kernel.source" when there is neither a source nor a file, "file.read".
  explicit Kernel(KernelSpec spec, Where where = Where::current());
  /// Records a call in the active trace. Errors "kernel.C1" to "C4", "wgsl.override".
  std::vector<Tensor> operator()(std::vector<Tensor> operands, Where where = Where::current()) const;
  [[nodiscard]] const std::string& name() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace lockstep
