// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint_metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "ir/support/diagnostic.h"

namespace lockstep::detail {

namespace {

constexpr std::string_view kStates = "lockstep.state.";

/// "f32[16,1]"
graph::TensorType parseType(const std::string& key, std::string_view text) {
  const size_t open = text.find('[');
  const std::optional<graph::DType> dtype = graph::findDType(text.substr(0, open));
  if (!dtype || open == std::string_view::npos || !text.ends_with(']')) {
    incompatible("metadata", fmt::format("'{}' is '{}', no type", key, text), kDamagedCheckpoint);
  }
  std::vector<int64_t> extents;
  for (std::string_view rest = text.substr(open + 1, text.size() - open - 2); !rest.empty();) {
    const size_t comma = std::min(rest.find(','), rest.size());
    extents.push_back(parseNumber<int64_t>(key, rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  if (!io::checkedElementCount(extents)) incompatible("metadata", fmt::format("'{}' has an impossible shape", key));
  return {*dtype, graph::Shape(extents)};
}

}  // namespace

void incompatible(std::string_view code, std::string message, std::string remedy) {
  throw Error(
      {.code = fmt::format("checkpoint.{}", code), .message = std::move(message), .where = {}, .notes = {}, .remedy = std::move(remedy)},
      ExitCode::IncompatibleCheckpoint);
}

const std::string& entryOf(const Metadata& metadata, const std::string& key) {
  auto found = metadata.find(key);
  if (found == metadata.end()) {
    incompatible("metadata", fmt::format("the file has no entry '{}'", key), "only files that a trainer saved hold a training state");
  }
  return found->second;
}

int64_t parseCount(const std::string& key, std::string_view text, int64_t least) {
  const auto value = parseNumber<int64_t>(key, text);
  if (value < least || value > kMostSteps)
    incompatible("metadata", fmt::format("'{}' is {}, but a number of steps is {} to {}", key, value, least, kMostSteps),
                 kDamagedCheckpoint);
  return value;
}

uint64_t readNumber(const Metadata& metadata, const std::string& key) { return parseNumber<uint64_t>(key, entryOf(metadata, key)); }
uint64_t readStep(const Metadata& metadata, const std::string& key) {
  return static_cast<uint64_t>(parseCount(key, entryOf(metadata, key), 0));
}

void writeStates(Metadata& metadata, const StateInfos& states) {
  for (const auto& [name, info] : states) {
    metadata[std::string(kStates) + name] = fmt::format("{} {}", toString(info.type), info.initial);
  }
}

StateInfos readStates(const Metadata& metadata) {
  StateInfos states;
  for (const auto& [key, text] : metadata) {
    if (!key.starts_with(kStates)) continue;
    const size_t space = std::min(text.find(' '), text.size() - 1);
    StateInfo info;
    info.type = parseType(key, std::string_view(text).substr(0, space));
    info.initial = parseNumber<double>(key, std::string_view(text).substr(space + 1));
    states.emplace(key.substr(kStates.size()), info);
  }
  return states;
}

void compareMetadata(std::string_view what, const Metadata& ours, const Metadata& file) {
  const std::string prefix = fmt::format("lockstep.{}.", what);
  const auto reject = [&](const std::string& key, const std::string& in_file, const std::string& here) {
    incompatible(what, fmt::format("{} '{}' is {} in the checkpoint and {} in the trainer", what, key.substr(prefix.size()), in_file, here),
                 "compile the model and optimizer that the checkpoint was made with");
  };
  for (const auto& [key, text] : ours) {
    if (!key.starts_with(prefix)) continue;
    const auto found = file.find(key);
    if (found == file.end()) reject(key, "absent", text);
    if (found->second != text) reject(key, found->second, text);
  }
  for (const auto& [key, text] : file) {
    if (key.starts_with(prefix) && !ours.contains(key)) reject(key, text, "absent");
  }
}

}  // namespace lockstep::detail
