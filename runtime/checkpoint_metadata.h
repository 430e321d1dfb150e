// SPDX-License-Identifier: Apache-2.0
// Private to the library: numbers and types in the metadata texts of a checkpoint. checkpoint_file.h has the keys.
#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "runtime/device_states.h"

namespace lockstep::detail {

using Metadata = std::map<std::string, std::string, std::less<>>;
using StateInfos = std::map<std::string, StateInfo, std::less<>>;

inline constexpr const char* kDamagedCheckpoint = "the file is damaged; use another checkpoint";

/// Throws Error "checkpoint.<code>" with exit code IncompatibleCheckpoint.
[[noreturn]] void incompatible(std::string_view code, std::string message, std::string remedy = {});

/// Beyond this a count of steps is damage: at a microsecond per step it is 285 years.
constexpr int64_t kMostSteps = int64_t{1} << 53;

/// Error "checkpoint.metadata" when it is absent, like all that follow.
const std::string& entryOf(const Metadata& metadata, const std::string& key);
template <class T>
T parseNumber(const std::string& key, std::string_view text) {
  T value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    incompatible("metadata", "'" + key + "' is '" + std::string(text) + "', no number", kDamagedCheckpoint);
  return value;
}
/// A number of steps, from `least` to kMostSteps.
int64_t parseCount(const std::string& key, std::string_view text, int64_t least);
uint64_t readNumber(const Metadata& metadata, const std::string& key);
uint64_t readStep(const Metadata& metadata, const std::string& key);

void writeStates(Metadata& metadata, const StateInfos& states);
StateInfos readStates(const Metadata& metadata);

/// Throws "checkpoint.<what>" for the first key that begins with "lockstep.<what>." and is not the same on both sides.
void compareMetadata(std::string_view what, const Metadata& ours, const Metadata& file);

}  // namespace lockstep::detail
