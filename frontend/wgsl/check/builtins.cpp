// SPDX-License-Identifier: Apache-2.0
#include "frontend/wgsl/check/builtins.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace lockstep::wgsl {
namespace {

constexpr std::array kBuiltins = std::to_array<BuiltinInfo>({
#define LS_WGSL_BUILTIN(name, text, signature, op, uniformity) {text, Signature::signature, kernel::Op::op, Uniformity::uniformity},
#include "frontend/wgsl/check/builtins.def"
#undef LS_WGSL_BUILTIN
});

constexpr std::array kUnsupported = std::to_array<std::string_view>({
    "bufferArrayView",
    "bufferLength",
    "bufferView",
});

}  // namespace

const BuiltinInfo& info(Builtin builtin) { return kBuiltins[static_cast<size_t>(builtin)]; }

std::optional<Builtin> findBuiltinFunction(std::string_view name) {
  static const std::unordered_map<std::string_view, Builtin> kByName = [] {
    std::unordered_map<std::string_view, Builtin> names;
    for (size_t i = 0; i < kBuiltins.size(); ++i) names.emplace(kBuiltins[i].text, static_cast<Builtin>(i));
    return names;
  }();
  const auto row = kByName.find(name);
  return row == kByName.end() ? std::nullopt : std::optional(row->second);
}

std::vector<std::string_view> builtinNames() {
  std::vector<std::string_view> names;
  for (const BuiltinInfo& row : kBuiltins) names.push_back(row.text);
  return names;
}

bool isUnsupportedBuiltin(std::string_view name) {
  return name.starts_with("texture") || std::find(kUnsupported.begin(), kUnsupported.end(), name) != kUnsupported.end();
}

PackFormat packFormat(Builtin builtin) {
  std::string_view name = info(builtin).text;
  name.remove_prefix(name.starts_with("un") ? 6 : 4);
  PackFormat format;
  format.lanes = static_cast<uint32_t>(name[0] - '0');
  format.lane = name.ends_with("float")   ? PackFormat::Lane::Half
                : name.ends_with("snorm") ? PackFormat::Lane::Snorm
                : name.ends_with("unorm") ? PackFormat::Lane::Unorm
                : name.starts_with("4xI") ? PackFormat::Lane::Signed
                                          : PackFormat::Lane::Unsigned;
  format.clamp = name.ends_with("Clamp");
  return format;
}

}  // namespace lockstep::wgsl
