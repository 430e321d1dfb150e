// SPDX-License-Identifier: Apache-2.0
#include "conformance/recorded_number.h"

#include <nlohmann/json.hpp>

namespace lockstep::conformance {

void wrongLine(const std::string& why) { throw nlohmann::json::other_error::create(501, why, nullptr); }

}  // namespace lockstep::conformance
