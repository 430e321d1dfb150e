// SPDX-License-Identifier: Apache-2.0
#include "conformance/recorded_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "conformance/recorded_bytes.h"
#include "conformance/recorded_number.h"

namespace lockstep::conformance {
namespace {

Bytes decoded(const nlohmann::json& text, size_t size, const Bytes& before = {}) {
  std::optional<Bytes> bytes = decodeBytes(text.get<std::string>(), size, before);
  if (!bytes) throw nlohmann::json::type_error::create(302, "a buffer's content is not encoded as it should be", &text);
  return std::move(*bytes);
}

/// One to three numbers.
std::array<uint32_t, 3> groupsOf(const nlohmann::json& numbers) {
  std::array<uint32_t, 3> groups{1, 1, 1};
  if (numbers.empty() || numbers.size() > groups.size()) wrongLine("'wgs' has not one to three numbers");
  uint64_t left = kMostGroups;
  for (size_t i = 0; i < numbers.size(); ++i) {
    groups[i] = static_cast<uint32_t>(wholeNumber(numbers.at(i), "wgs", 0, left));
    left /= std::max(groups[i], 1u);
  }
  return groups;
}

uint32_t index(const nlohmann::json& value, std::string_view what) {
  return static_cast<uint32_t>(wholeNumber(value, what, 0, std::numeric_limits<uint32_t>::max()));
}

/// What the buffer of a binding holds before the program runs.
Bytes fill(char kind, uint32_t binding, size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size / sizeof(uint32_t); ++i) {
    const uint32_t number = static_cast<uint32_t>(i) + 5 * binding;
    const float real = static_cast<float>(number % 13) * 0.5f + 0.25f;
    const uint32_t word = kind == 'Z' ? 0 : kind == 'I' ? number % 7 : std::bit_cast<uint32_t>(real);
    std::memcpy(bytes.data() + i * sizeof word, &word, sizeof word);
  }
  return bytes;
}

/// A program that needs values for overrides says in a line of its own with which ones it was run: "// flags: --overrides n=10,m=2".
std::map<std::string, double> overridesOf(const std::string& text) {
  constexpr std::string_view kOption = "--overrides ";
  std::map<std::string, double> values;
  const size_t line = text.find("// flags: ");
  if (line == std::string::npos) return values;
  const std::string flags = text.substr(line, text.find('\n', line) - line);
  size_t start = flags.find(kOption);
  if (start == std::string::npos) return values;
  start += kOption.size();
  const size_t end = std::min(flags.find(' ', start), flags.size());
  while (start < end) {
    const size_t equals = std::min(flags.find('=', start), end), comma = std::min(flags.find(',', start), end);
    if (equals < comma) values[flags.substr(start, equals - start)] = std::strtod(flags.c_str() + equals + 1, nullptr);
    start = comma + 1;
  }
  return values;
}

}  // namespace

RecordedProgram readTrace(const std::string& line) {
  const nlohmann::json test = nlohmann::json::parse(line);
  RecordedProgram program{.family = test.at("fam"),
                          .name = fmt::format("{} {}", test.at("q").get<std::string>(), test.value("sub", "")),
                          .text = test.at("wgsl")};
  KernelDispatch& dispatch = program.dispatch;
  dispatch.entry = test.value("entry", "");
  dispatch.groups = groupsOf(test.at("wgs"));
  RecordedRun run;
  uint64_t left = kMostBufferBytes;
  for (const nlohmann::json& buffer : test.at("bufs")) {
    const uint64_t size = numberOf(buffer, "size", 0, left);
    left -= size;
    dispatch.buffer_sizes.push_back(size);
    run.before.push_back(decoded(buffer.at("in"), size));
    run.after.push_back(decoded(buffer.at("out"), size, run.before.back()));
  }
  for (const nlohmann::json& bind : test.at("binds")) {
    const uint64_t offset = numberOf(bind, "offset", 0, kMostBufferBytes);
    dispatch.bindings.push_back({.group = index(bind.at("group"), "group"),
                                 .binding = index(bind.at("binding"), "binding"),
                                 .buffer = index(bind.at("buf"), "buf"),
                                 .offset = offset,
                                 .size = numberOf(bind, "size", 0, kMostBufferBytes - offset)});
  }
  const nlohmann::json& constants = test.at("constants");
  for (const auto& [name, value] : constants.items())
    program.options.overrides[name] = value.is_boolean() ? value.get<bool>() : value.get<double>();
  program.runs.push_back(std::move(run));
  return program;
}

RecordedProgram readConsensus(const std::string& line) {
  const nlohmann::json test = nlohmann::json::parse(line);
  const std::string name = test.at("f");
  RecordedProgram program{.family = name.substr(0, name.find_last_of('/')), .name = name, .text = test.at("wgsl")};
  const nlohmann::json &binds = test.at("binds"), &fills = test.at("out");
  // Every fill has its own buffers.
  const uint64_t buffers = std::max<uint64_t>(binds.size(), 1) * std::max<uint64_t>(fills.size(), 1);
  const uint64_t size = numberOf(test, "size", 0, kMostBufferBytes / buffers);
  KernelDispatch& dispatch = program.dispatch;
  dispatch.entry = test.at("en");
  for (const nlohmann::json& bind : binds) {
    dispatch.bindings.push_back({.group = index(bind.at(0), "binds"),
                                 .binding = index(bind.at(1), "binds"),
                                 .buffer = dispatch.bindings.size(),
                                 .offset = 0,
                                 .size = size});
    dispatch.buffer_sizes.push_back(size);
  }
  for (const auto& [kind, results] : fills.items()) {
    if (kind.empty()) wrongLine("a fill has no name");
    RecordedRun run{.name = fmt::format("fill {},", kind), .before = {}, .after = {}};
    for (const BufferBinding& binding : dispatch.bindings) {
      run.before.push_back(fill(kind.front(), binding.binding, size));
      const auto result = results.find(fmt::format("{},{}", binding.group, binding.binding));
      run.after.push_back(result == results.end() ? run.before.back() : decoded(*result, size, run.before.back()));
    }
    program.runs.push_back(std::move(run));
  }
  program.options.overrides = overridesOf(program.text);
  return program;
}

}  // namespace lockstep::conformance
