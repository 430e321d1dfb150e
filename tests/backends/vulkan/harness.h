// SPDX-License-Identifier: Apache-2.0
// Runs kernels and programs on the Vulkan device of the tests, with the validation layer on where it is installed.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/vulkan/vulkan.h"

namespace lockstep::vulkan::testing {

using Words = std::vector<uint32_t>;

/// The device of the tests, kept open; null when there is none.
Backend* device();

/// Another backend on the same device; null when there is none.
std::unique_ptr<Backend> open();

/// Skips (with LOCKSTEP_ALLOW_NO_VULKAN=1) or fails when there is no device.
class VulkanTest : public ::testing::Test {
 protected:
  void SetUp() override;
};

/// Builds programs by hand: arenas of every role named as the role, buffers of u32 words in the order of their making.
class ProgramBuilder {
 public:
  program::BufferId buffer(program::ArenaRole role, uint64_t words, std::string name = "b");
  program::KernelId kernel(const std::string& text);
  void constant(program::BufferId buffer, Words words);
  void dispatch(uint32_t level, program::KernelId kernel, const std::vector<program::BufferId>& bindings,
                std::array<uint32_t, 3> groups = {1, 1, 1});
  void copy(uint32_t level, program::BufferId source, program::BufferId target);
  void fill(uint32_t level, program::BufferId target, uint32_t pattern);
  /// Offset in bytes of a buffer in its arena.
  [[nodiscard]] uint64_t offset(program::BufferId buffer) const { return program_[buffer].offset; }
  [[nodiscard]] uint64_t arenaBytes(program::ArenaRole role) const;
  /// The validated program; a failure fails the test.
  program::ValidProgram take() const;
  program::Program& program() { return program_; }

 private:
  [[nodiscard]] program::Range whole(program::BufferId buffer, kernel::Access access) const;
  program::Program program_;
};

/// Runs one entry point; binding i is buffers[i], which holds what the kernel left there afterwards.
void runKernel(const std::string& text, std::array<uint32_t, 3> groups, std::vector<Words>& buffers);

/// A kernel of workgroup size 64 that computes out[i] from a[i], b[i] and c[i]. `body` reads %a, %b and %c and defines %r of type `result`.
Words mapWords(const std::string& type, const std::string& result, const std::string& body, Words a, Words b = {}, Words c = {});

inline uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }
inline uint32_t bits(int32_t value) { return static_cast<uint32_t>(value); }
Words words(const std::vector<float>& values);
Words words(const std::vector<int32_t>& values);
std::vector<float> floats(const Words& words);

inline std::span<const std::byte> bytes(const Words& words) { return std::as_bytes(std::span(words)); }

/// Throws when the result is a failure.
template <class T>
void must(Result<T> result) {
  (void)std::move(result).orThrow();
}

Words toWords(const std::vector<std::byte>& bytes);

}  // namespace lockstep::vulkan::testing
