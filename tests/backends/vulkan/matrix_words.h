// SPDX-License-Identifier: Apache-2.0
// What a validator would check of modules with cooperative matrices, as far as we do it ourselves: the SPIRV-Tools that we build with know
// none of these instructions. Not checked: types of operands, dominance, and whatever the extension says of both.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

namespace lockstep::vulkan {

/// Empty when the instructions fill the module, no id is defined twice, those on matrices have as many words as they take, and a module
/// with matrices declares the extension, its capability and the Vulkan memory model; else the first problem.
inline std::string checkMatrixWords(std::span<const uint32_t> words) {
  struct Shape {
    uint32_t least, most;  ///< words
    uint32_t result;       ///< which word is the result; 0: none
  };
  const std::map<uint32_t, Shape> shapes{{4456, {7, 7, 1}}, {4457, {5, 8, 2}}, {4458, {4, 7, 0}}, {4459, {6, 7, 2}}};
  if (words.size() < 5 || words[0] != 0x07230203u) return "no SPIR-V";
  std::set<uint32_t> ids, capabilities;
  std::set<uint32_t> models;
  bool has_matrices = false;
  size_t at = 5;
  while (at < words.size()) {
    const uint32_t count = words[at] >> 16, op = words[at] & 0xffffu;
    if (count == 0 || at + count > words.size()) return "instruction " + std::to_string(op) + " does not fit";
    if (op == 17) capabilities.insert(words[at + 1]);
    if (op == 14) models.insert(words[at + 2]);
    if (const auto shape = shapes.find(op); shape != shapes.end()) {
      has_matrices = true;
      if (count < shape->second.least || count > shape->second.most)
        return "instruction " + std::to_string(op) + " has " + std::to_string(count) + " words";
      if (shape->second.result != 0) {
        const uint32_t id = words[at + shape->second.result];
        if (id == 0 || id >= words[3]) return "an id is out of bounds";
        if (!ids.insert(id).second) return "an id is defined twice";
      }
    }
    at += count;
  }
  if (!has_matrices) return "no matrix";
  if (!capabilities.contains(6022)) return "no capability CooperativeMatrixKHR";
  if (!capabilities.contains(5345) || models != std::set<uint32_t>{3}) return "not the Vulkan memory model";
  return {};
}

}  // namespace lockstep::vulkan
