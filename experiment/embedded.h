// SPDX-License-Identifier: Apache-2.0
// Private to this folder: the texts of experiment/page/, as CMake put them into the library.
#pragma once

#include <string_view>

namespace lockstep::experiment {

extern const std::string_view kReportPage;

}  // namespace lockstep::experiment
