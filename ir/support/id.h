// SPDX-License-Identifier: Apache-2.0
// Typed 32-bit ids: an index into one arena of one module. They are values, so modules copy, compare and print freely.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace lockstep {

template <class Tag>
struct Id {
  static constexpr uint32_t kInvalid = UINT32_MAX;
  uint32_t value = kInvalid;

  constexpr Id() = default;
  constexpr explicit Id(size_t index) : value(static_cast<uint32_t>(index)) {}
  [[nodiscard]] constexpr bool valid() const { return value != kInvalid; }
  [[nodiscard]] constexpr size_t index() const { return value; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

}  // namespace lockstep
