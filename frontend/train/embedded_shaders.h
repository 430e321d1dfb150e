// SPDX-License-Identifier: Apache-2.0
// Private to the front end: the texts of shaders/, in a source file that CMake writes.
#pragma once

#include <span>
#include <string_view>

namespace lockstep::detail {

struct EmbeddedShader {
  std::string_view name;
  std::string_view text;
};
std::span<const EmbeddedShader> embeddedShaders();

}  // namespace lockstep::detail
