// SPDX-License-Identifier: Apache-2.0
// Workspaces that are larger than one allocation.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/graph/builder.h"
#include "passes/pipeline.h"
#include "passes/plan/plan_buffers.h"

namespace lockstep {
namespace {

/// Chains side by side, each value of which is a buffer: of 256 KiB, and in one chain of 768 KiB.
program::Program scheduled() {
  graph::Builder b;
  for (int chain = 0; chain < 5; ++chain) {
    const int64_t size = chain == 3 ? 196608 : 65536;
    graph::ValueId x =
        b.make("input", {}, {{"name", fmt::format("x{}", chain)}, {"shape", std::vector<int64_t>{size}}, {"dtype", graph::DType::F32}});
    for (int i = 0; i < 4; ++i) x = b.make("flip", {b.make("exp", {x})}, {{"axes", std::vector<int64_t>{0}}});
    b.output(graph::OutputKind::Result, fmt::format("y{}", chain), x);
  }
  passes::CompileOptions options;
  options.disabled = {"fuse"};
  return passes::compile(b.take(), options).orThrow().program;
}

TEST(ArenaLimit, arenas_hold_no_more_unless_a_buffer_does) {
  const program::Program program = scheduled();
  for (const bool share : {true, false}) {
    for (const uint64_t limit : {uint64_t{300'001}, uint64_t{1} << 20}) {
      const program::Program planned = passes::planBuffers(program, {.share = share, .arena_limit = limit}).orThrow();
      size_t arenas = 0;
      for (const program::Arena& arena : planned.arenas) {
        if (arena.role != program::ArenaRole::Workspace) continue;
        ++arenas;
        EXPECT_LE(arena.size, std::max(limit, uint64_t{786432})) << arena.name;
      }
      EXPECT_GT(arenas, 1u);
      for (const program::Buffer& buffer : planned.buffers) {
        if (buffer.role != program::ArenaRole::Workspace) continue;
        EXPECT_EQ(buffer.offset % 256, 0u);
        EXPECT_LE(buffer.offset + buffer.size, planned[buffer.arena].size);
      }
      EXPECT_TRUE(program::validateStructure(planned).ok());
    }
  }
}

}  // namespace
}  // namespace lockstep
