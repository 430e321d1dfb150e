// SPDX-License-Identifier: Apache-2.0
// Buffer contents as the recorded files write them.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "backends/dispatch.h"

namespace lockstep::conformance {

/// "0": zeros; "=": `before`; "z...": base64 of a raw deflate stream. Always `size` bytes; nothing when the text is none of these or gives
/// another size.
std::optional<Bytes> decodeBytes(std::string_view text, size_t size, const Bytes& before = {});

}  // namespace lockstep::conformance
