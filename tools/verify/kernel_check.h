// SPDX-License-Identifier: Apache-2.0
// A program on two backends, kernel by kernel. Each dispatch gets the same bytes on both, those that the judge computed before it, so that
// a difference belongs to the kernel that shows it and none adds up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/dispatch.h"
#include "frontend/io/safetensors.h"
#include "ir/program/program.h"
#include "ir/support/result.h"
#include "tools/verify/array_compare.h"

namespace lockstep::tools {

/// One dispatch of a program with the bytes that it reads and writes. Ranges that overlap lie in one buffer.
struct JudgedDispatch {
  KernelDispatch dispatch;
  std::vector<Bytes> before;
  std::vector<Bytes> want;          ///< what the judge left in the buffers
  std::vector<Bytes> got;           ///< and the other device
  std::vector<graph::DType> types;  ///< of the tensor at each binding; empty: those of the kernel's variables

  [[nodiscard]] bool isPacked(size_t binding) const { return binding < types.size() && graph::isPacked(types[binding]); }

  /// The bytes of binding `binding` of group 0 in one of these.
  [[nodiscard]] Bytes bytesOf(const std::vector<Bytes>& buffers, size_t binding) const;
  /// The same as an array of the variable's elements, which are words where the tensor's are packed.
  [[nodiscard]] io::Array arrayOf(const std::vector<Bytes>& buffers, size_t binding) const;
  /// The same as an array of the tensor's elements where they are packed, those that nothing uses in the last word included.
  [[nodiscard]] io::Array elementsOf(const std::vector<Bytes>& buffers, size_t binding) const;
};

struct DispatchBounds {
  /// By binding: how far each element may be from what the judge left there; 0 where it must be equal.
  std::vector<std::vector<double>> elements;
  /// Comparisons, and choices of whole numbers, that another device may make differently within its rounding: what follows from them has no
  /// bound.
  uint64_t unstable_choices = 0;
};
/// Codes of the backend.
Result<DispatchBounds> boundsOf(const JudgedDispatch& run);

/// The first kernel with a result beyond its bound.
struct KernelDifference {
  size_t command = 0;  ///< of the program
  size_t round = 0;    ///< in which run of the program, from 0
  size_t binding = 0;
  std::string element;  ///< "l1.W[3, 5]"
  ArrayDifference numbers;
  JudgedDispatch run;
  std::vector<double> bounds;     ///< of all elements at the binding
  uint64_t unstable_choices = 0;  ///< of the kernel, fewer than elements beyond their bound
};

struct CheckCounts {
  size_t dispatches = 0;
  size_t elements = 0;
  size_t chosen = 0;   ///< elements beyond their bound that may follow from unstable choices: not more of them than choices in the kernel
  double closest = 0;  ///< the largest distance in units of its bound that was seen
  size_t closest_command = 0;
};

class KernelCheck {
 public:
  /// `inputs`: parameters, states and inputs by name, as a dump's inputs.safetensors. States that it lacks have their initial values if
  /// they are no persistent ones. Codes replay.input and those of validation.
  static Result<KernelCheck> make(program::Program program, const io::TensorFile& inputs);

  /// Runs the program once more, from where the judge left it. Ends at the first kernel beyond its bound. A device that fails is a Failure
  /// that names the kernel.
  Result<std::optional<KernelDifference>> run(Backend& judge, Backend& device);

  /// What the judge has computed so far, as replay() gives it: outputs of the last run, and the states after it.
  [[nodiscard]] io::TensorFile outputs() const;
  [[nodiscard]] const program::Program& program() const { return *program_; }
  [[nodiscard]] const CheckCounts& counts() const { return counts_; }

 private:
  explicit KernelCheck(program::ValidProgram program) : program_(std::move(program)) {}
  [[nodiscard]] std::byte* bytesOf(const program::Range& range);
  [[nodiscard]] JudgedDispatch prepare(const program::Dispatch& action);
  void keep(const program::Dispatch& action, const JudgedDispatch& run);
  [[nodiscard]] Result<std::optional<KernelDifference>> compare(size_t command, const program::Dispatch& action, JudgedDispatch run);

  program::ValidProgram program_;
  std::vector<Bytes> arenas_;  ///< by arena
  CheckCounts counts_;
  size_t rounds_ = 0;
};

/// "l1.W[3, 5]" or "t33[7]": an element of a range of a buffer. Of a flat state the parameter is named.
std::string elementName(const program::Program& program, const program::Range& range, size_t index);

}  // namespace lockstep::tools
