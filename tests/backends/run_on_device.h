// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/dispatch.h"

namespace lockstep::testing {

/// The words that one workgroup of a kernel of kernel IR leaves in binding 1, of `count` words, with `x` in binding 0.
inline std::vector<uint32_t> runOnDevice(std::string_view text, const std::string& device, std::span<const float> x, size_t count) {
  const size_t read = x.size_bytes(), written = count * sizeof(uint32_t);
  std::vector<Bytes> buffers{Bytes(read), Bytes(written)};
  std::memcpy(buffers[0].data(), x.data(), read);
  const KernelDispatch dispatch{
      .module = kernel::parse(text).orThrow(),
      .entry = {},
      .groups = {1, 1, 1},
      .bindings = {{.group = 0, .binding = 0, .buffer = 0, .size = read}, {.group = 0, .binding = 1, .buffer = 1, .size = written}},
      .buffer_sizes = {read, written}};
  const std::unique_ptr<Backend> backend = openDevice(chooseDevice(device).orThrow().info).orThrow();
  (void)runDispatch(*backend, makeProgram(dispatch).orThrow(), buffers).orThrow();
  std::vector<uint32_t> words(count);
  std::memcpy(words.data(), buffers[1].data(), written);
  return words;
}

}  // namespace lockstep::testing
