// SPDX-License-Identifier: Apache-2.0
// Colours on a terminal, where they are wanted.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace lockstep::console {

enum class ColorChoice : uint8_t { Auto, Always, Never };

/// Of the whole program, before anything is printed. Auto: on a terminal, unless NO_COLOR is set (no-color.org).
void chooseColors(ColorChoice choice);
[[nodiscard]] bool hasColors(std::FILE* stream);

enum class Paint : uint8_t { Error, Help, Loud };
/// The text, in colour if the stream has colours.
std::string painted(std::FILE* stream, Paint paint, std::string_view text);

}  // namespace lockstep::console
