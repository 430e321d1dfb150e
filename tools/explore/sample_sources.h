// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace lockstep::tools {

struct SourceText {
  std::string_view file;  ///< from the root of the project, as places name it: "examples/models/mlp.cpp"
  std::string_view text;
};

/// The sources of the samples that the command carries, so that it can show them where the project's files are not.
std::span<const SourceText> sampleSources();

}  // namespace lockstep::tools
