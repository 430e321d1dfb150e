// SPDX-License-Identifier: Apache-2.0
// Numbers of a recorded line, and how large they may be: a line is data of somebody else, so nothing is made or indexed with a number that
// was not compared with a limit. docs/conformance.md states the limits.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::conformance {

constexpr uint64_t kMostBufferBytes = uint64_t{64} << 20u;  ///< of all buffers of one test
constexpr uint64_t kMostLineBytes = uint64_t{64} << 20u;
constexpr uint64_t kMostFileBytes = uint64_t{4} << 30u;  ///< unpacked
constexpr uint64_t kMostListBytes = uint64_t{1} << 30u;  ///< unpacked, of the file of the cases: it stays in memory
constexpr uint64_t kMostGroups = uint64_t{1} << 20u;     ///< workgroups of one dispatch
constexpr unsigned kMostThreads = 256;

/// Throws nlohmann::json::exception: the line is JSON but no test, and why.
[[noreturn]] void wrongLine(const std::string& why);

/// A whole number of JSON from `least` to `most`; anything else is a wrong line, which names `what`.
template <class Json>
uint64_t wholeNumber(const Json& value, std::string_view what, uint64_t least, uint64_t most) {
  const bool natural = value.is_number_unsigned() || (value.is_number_integer() && value.template get<int64_t>() >= 0);
  const uint64_t number = natural ? value.template get<uint64_t>() : 0;
  if (!natural || number < least || number > most) wrongLine(fmt::format("'{}' is not a whole number from {} to {}", what, least, most));
  return number;
}

/// The member `name` of an object of JSON.
template <class Json>
uint64_t numberOf(const Json& object, const char* name, uint64_t least, uint64_t most) {
  return wholeNumber(object.at(name), name, least, most);
}

}  // namespace lockstep::conformance
