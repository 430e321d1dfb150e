// SPDX-License-Identifier: Apache-2.0
#include "console/color.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "console/terminal.h"

namespace lockstep::console {
namespace {

// Chosen once by main(), before there are threads.
ColorChoice g_choice = ColorChoice::Auto;

constexpr std::array<std::string_view, 3> kCodes{"1;31", "36", "1;33"};

}  // namespace

void chooseColors(ColorChoice choice) { g_choice = choice; }

bool hasColors(std::FILE* stream) {
  if (g_choice != ColorChoice::Auto) return g_choice == ColorChoice::Always;
  const char* unwanted = std::getenv("NO_COLOR");
  return (unwanted == nullptr || *unwanted == '\0') && isTerminal(stream);
}

std::string painted(std::FILE* stream, Paint paint, std::string_view text) {
  if (!hasColors(stream)) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", kCodes[static_cast<size_t>(paint)], text);
}

}  // namespace lockstep::console
