// SPDX-License-Identifier: Apache-2.0
// A tiny bitmap font for plots: 5x7 dots, digits, capitals and the punctuation of numbers and titles.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep::io {

inline constexpr int kGlyphWidth = 5, kGlyphHeight = 7;

/// Rows from the top; the lowest kGlyphWidth bits of each, leftmost dot highest.
using Glyph = std::array<uint8_t, kGlyphHeight>;

/// Small letters give capitals; unknown characters a box.
const Glyph& glyphOf(char c);

}  // namespace lockstep::io
