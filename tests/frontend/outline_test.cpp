// SPDX-License-Identifier: Apache-2.0
#include "frontend/trace/model_outline.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "frontend/nn/nn.h"
#include "frontend/ops/ops.h"
#include "frontend/train/compiled.h"

namespace lockstep {
namespace {

struct Residual : Module {
  nn::Linear up{*this, "up", 4, 8}, down{*this, "down", 8, 4};
  Parameter scale{*this, "scale", {4}};
  Tensor operator()(Tensor x) const { return (x + down(relu(up(x)))) * (scale * 2); }
};

TEST(Outline, has_modules_joints_and_the_flow_between_them) {
  const CompiledProgram program = trace(CompileSpec<Residual>{
      .inputs = {{"x", f32(2, 4)}, {"y", f32(2, 4)}},
      .loss = [](const Residual& model, const Inputs& in) { return mean(square(model(in["x"]) - in["y"])); },
  });
  const ModelOutline& outline = program.facts.outline;
  std::vector<std::string> boxes;
  for (const ModelOutline::Box& box : outline.boxes)
    boxes.push_back(box.name + "|" + box.op + "|" + box.type + "|" + std::to_string(box.parameters));
  EXPECT_EQ(boxes, (std::vector<std::string>{"x|input|f32[2,4]|0", "y|input|f32[2,4]|0", "up|matmul|f32[2,8]|40", "down|matmul|f32[2,4]|36",
                                             "|add|f32[2,4]|0", "scale|mul|f32[2,4]|4", "|sub|f32[2,4]|0", "loss|output|f32[]|0"}));
  using Edges = std::vector<std::pair<uint32_t, uint32_t>>;
  EXPECT_EQ(outline.edges, (Edges{{0, 2}, {0, 4}, {1, 6}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}}));
}

TEST(Outline, temporaries_lie_in_their_arena_and_share_bytes_only_when_they_are_apart) {
  const CompiledProgram program = trace(CompileSpec<Residual>{
      .inputs = {{"x", f32(512, 4)}},
      .loss = [](const Residual& model, const Inputs& in) { return mean(square(model(in["x"]))); },
  });
  const std::vector<PlannedBuffer>& buffers = program.facts.temporaries;
  ASSERT_GT(buffers.size(), 3u);
  uint64_t end = 0;
  for (const PlannedBuffer& a : buffers) {
    end = std::max(end, a.offset + a.bytes);
    EXPECT_LE(a.first_level, a.last_level) << a.name;
    EXPECT_LT(a.last_level, program.facts.levels) << a.name;
    for (const PlannedBuffer& b : buffers) {
      const bool apart = &a == &b || a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset || a.last_level < b.first_level ||
                         b.last_level < a.first_level;
      EXPECT_TRUE(apart) << a.name << " and " << b.name;
    }
  }
  EXPECT_LE(end, program.facts.workspace_bytes);
}

}  // namespace
}  // namespace lockstep
