// SPDX-License-Identifier: Apache-2.0
// The inputs of a program inside its trace.
#pragma once

#include <concepts>
#include <map>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

#include "frontend/trace/tensor.h"

namespace lockstep {

/// The name of an input, and where it was written: operator[] cannot have a defaulted location itself.
class InputName {
 public:
  template <class Text>
    requires std::convertible_to<const Text&, std::string_view>
  InputName(const Text& name, std::source_location where = std::source_location::current()) : name_(name), where_(where) {}
  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] const std::source_location& where() const { return where_; }

 private:
  std::string_view name_;
  std::source_location where_;
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
