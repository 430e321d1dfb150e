// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or the diagnostics that say why there is none. C++20 has no std::expected.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/support/diagnostic.h"

namespace lockstep {

struct Failure {
  std::vector<Diagnostic> diagnostics;
  ExitCode exit_code = ExitCode::BadInput;
};

/// Shorthand for the common failure of one diagnostic.
inline Failure fail(std::string code, std::string message, Location where = {}, std::string remedy = {}) {
  return {
      .diagnostics = {
          {.code = std::move(code), .message = std::move(message), .where = std::move(where), .notes = {}, .remedy = std::move(remedy)}}};
}

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Failure failure) : failure_(std::move(failure)) {}
  [[nodiscard]] bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] T& operator*() & { return *value_; }
  [[nodiscard]] const T& operator*() const& { return *value_; }
  [[nodiscard]] T&& operator*() && { return std::move(*value_); }
  [[nodiscard]] T* operator->() { return &*value_; }
  [[nodiscard]] const T* operator->() const { return &*value_; }
  [[nodiscard]] const Failure& failure() const { return failure_; }
  [[nodiscard]] const std::vector<Diagnostic>& diagnostics() const { return failure_.diagnostics; }
  /// The value, or the diagnostics thrown as Error.
  [[nodiscard]] T orThrow() && {
    if (!ok()) throw Error(failure_.diagnostics, failure_.exit_code);
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  Failure failure_;
};

struct Success {};
using Status = Result<Success>;

}  // namespace lockstep

// Assigns the value of a Result to `target` or returns its failure from the enclosing function.
#define LS_CONCAT_(a, b) a##b
#define LS_CONCAT(a, b) LS_CONCAT_(a, b)
#define LS_TRY(target, expression)                                                       \
  auto LS_CONCAT(result_, __LINE__) = (expression);                                      \
  if (!LS_CONCAT(result_, __LINE__).ok()) return LS_CONCAT(result_, __LINE__).failure(); \
  target = std::move(*LS_CONCAT(result_, __LINE__))
#define LS_CHECK(expression) \
  if (auto LS_CONCAT(result_, __LINE__) = (expression); !LS_CONCAT(result_, __LINE__).ok()) return LS_CONCAT(result_, __LINE__).failure()
