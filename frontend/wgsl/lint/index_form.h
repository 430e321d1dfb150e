// SPDX-License-Identifier: Apache-2.0
// The byte offset of an access as a sum: of ids, of loop counters and of other values, each times a number.
#pragma once

#include <map>
#include <optional>

#include "frontend/wgsl/lint/invocation_flow.h"

namespace lockstep::wgsl {

/// What a term of the sum counts.
struct TermKey {
  enum class What : uint8_t { Lane, Group, Variable, Value } what = What::Value;
  uint32_t which = 0;   ///< axis of an id; the variable; the number of the value
  uint32_t factor = 0;  ///< 1 + the number of a value, not known, that multiplies it; 0 = none
  friend auto operator<=>(const TermKey&, const TermKey&) = default;
};

struct IndexForm {
  std::map<TermKey, int64_t> terms;  ///< bytes, without zeros
  int64_t constant = 0;
  uint32_t element_bytes = 0;  ///< of the innermost array: what the next element is away
  bool runtime_sized = false;  ///< the text does not say how large the array is

  [[nodiscard]] bool has(TermKey::What what) const;
};

/// Nothing for an access without a runtime index or one that is too deep to follow.
std::optional<IndexForm> indexForm(const InvocationFlow& flow, kernel::ValueId pointer);

/// The terms of a value, counted in ones.
std::optional<std::map<TermKey, int64_t>> indexSum(const InvocationFlow& flow, kernel::ValueId value);

}  // namespace lockstep::wgsl
