// SPDX-License-Identifier: Apache-2.0
// The text of scalar constants: typed, shortest, and read back to the same bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "ir/kernel/type.h"

namespace lockstep::kernel {

/// "3u", "-4i", "1.5f", "2.0h", "true"; infinities and NaNs by their bits: "f32(0x7fc00000)".
std::string formatScalar(Scalar scalar, uint32_t bits);
/// The bits of a number written before the suffix of `scalar` ("1.5" for f32); nullopt when it is not in the type's range.
std::optional<uint32_t> parseScalar(Scalar scalar, std::string_view number);
/// The suffix of a literal: 'i', 'u', 'f', 'h'; nullopt for another text.
std::optional<Scalar> scalarOfSuffix(std::string_view suffix);
/// The bits that a constant of this type really has: bool 0 or 1, f16 the low half.
uint32_t canonicalBits(Scalar scalar, uint32_t bits);

}  // namespace lockstep::kernel
