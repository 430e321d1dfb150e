// SPDX-License-Identifier: Apache-2.0
// The inputs of a program inside its trace.
#pragma once

#include <concepts>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "frontend/trace/tensor.h"
#include "ir/support/where.h"

namespace lockstep {

/// The name of an input, and where it was written: operator[] cannot have a defaulted location itself.
class InputName {
 public:
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  InputName(const Text& name, Where where = Where::current()) : name_(name), where_(where) {}
  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] const Where& where() const { return where_; }

 private:
  std::string_view name_;
  Where where_;
};

/// Tensors by the names of their declarations.
class Inputs {
 public:
  explicit Inputs(std::map<std::string, Tensor, std::less<>> tensors) : tensors_(std::move(tensors)) {}
  /// Error "inputs.name" when it was not declared.
  Tensor operator[](InputName name) const;

 private:
  std::map<std::string, Tensor, std::less<>> tensors_;
};

}  // namespace lockstep
