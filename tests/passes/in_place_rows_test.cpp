// SPDX-License-Identifier: Apache-2.0
// Results of rows in the bytes of an operand: how many tensors that saves, and that no invocation reads what another one has written.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "frontend/train/graph_runner.h"
#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "tests/differential/compare.h"
#include "tests/passes/gpu_profile.h"
#include "tests/passes/profiled_device.h"

namespace lockstep {
namespace {

using namespace graph;

constexpr int64_t kInner = 8;

struct Sizes {
  int64_t rows, classes;
};

ValueId input(Builder& b, const std::string& name, DType dtype, std::vector<int64_t> shape) {
  return b.make("input", {}, {{"name", name}, {"dtype", dtype}, {"shape", std::move(shape)}});
}

/// cross_entropy of a linear layer, whose logits nobody else reads.
Graph classifier(const Sizes& sizes) {
  Builder b;
  const ValueId x = input(b, "x", DType::F32, {sizes.rows, kInner}), w = input(b, "w", DType::F32, {kInner, sizes.classes});
  const ValueId y = input(b, "y", DType::I32, {sizes.rows});
  b.output(OutputKind::Loss, "loss", b.make("cross_entropy", {b.make("matmul", {x, w}), y}, {{"reduction", std::string("mean")}}));
  return b.take();
}

/// Of rows whose element is picked out at the place `y` and goes into all elements of the result: not in place.
Graph pickedForAll(const Sizes& sizes) {
  Builder b;
  const ValueId x = input(b, "x", DType::F32, {sizes.rows, kInner}), w = input(b, "w", DType::F32, {kInner, sizes.classes});
  const ValueId y = input(b, "y", DType::I32, {sizes.rows, 1});
  const ValueId logits = b.make("matmul", {x, w}), p = b.make("softmax", {logits});
  const ValueId own = b.make("take_along_axis", {logits, y}, {{"axis", int64_t{1}}});
  b.output(OutputKind::Loss, "loss",
           b.sum(b.sum(b.mul(p, b.make("tanh", {b.sub(logits, b.broadcastTo(own, Shape(b.shapeOf(logits))))})), 1, false), 0, false));
  return b.take();
}

/// Picks out of other rows than those that the softmax and the largest elements are of.
Graph pickedElsewhere(const Sizes& sizes) {
  Builder b;
  const ValueId x = input(b, "x", DType::F32, {sizes.classes, kInner}), w = input(b, "w", DType::F32, {kInner, sizes.classes});
  const ValueId y = input(b, "y", DType::I32, {sizes.classes, 1});
  const ValueId logits = b.make("matmul", {x, w}), p = b.make("softmax", {logits});
  const auto pick = [&](ValueId from, ValueId place) { return b.make("take_along_axis", {from, place}, {{"axis", int64_t{1}}}); };
  const ValueId largest = b.reshape(b.make("argmax", {p}, {{"axis", int64_t{1}}}), Shape{sizes.classes, 1});
  const ValueId turned = b.make("roll", {largest}, {{"axis", int64_t{0}}, {"shift", int64_t{1}}});
  const ValueId all = b.add(b.add(pick(b.swapLastAxes(p), y), pick(p, turned)), b.mul(pick(p, largest), 3.0));
  b.output(OutputKind::Loss, "loss", b.sum(b.sum(b.mul(all, all), 1, false), 0, false));
  return b.take();
}

/// A factor per row that all lanes of the row read after its sum, where one of them stores a value per row. With `spreads` it goes into all
/// elements, too.
Graph factorPerRow(const Sizes& sizes, bool spreads) {
  Builder b;
  const ValueId x = input(b, "x", DType::F32, {sizes.rows, kInner}), w = input(b, "w", DType::F32, {kInner, sizes.classes});
  const ValueId other = input(b, "other", DType::F32, {kInner, 5});
  const ValueId rows = b.make("sigmoid", {b.make("matmul", {x, w})});
  const ValueId factor = b.sum(b.make("sigmoid", {b.make("matmul", {x, other})}), 1, true);
  const ValueId scaled = b.mul(b.mul(b.sum(rows, 1, true), 1.0 / static_cast<double>(sizes.classes)), factor);
  ValueId all = b.make("roll", {scaled}, {{"axis", int64_t{0}}, {"shift", int64_t{1}}});
  if (spreads) {
    const Shape shape(b.shapeOf(rows));
    all = b.mul(b.make("sigmoid", {b.mul(rows, b.broadcastTo(scaled, shape))}), b.broadcastTo(all, shape));
  }
  b.output(OutputKind::Loss, "loss", b.sum(b.sum(all, 1, false), 0, false));
  return b.take();
}

LeafValues leavesOf(const Graph& graph, int64_t classes) {
  LeafValues leaves;
  for (const NodeId id : graph.body().nodes) {
    if (leafKind(graph[id]) != LeafKind::Input) continue;
    const TensorType& type = graph.typeOf(graph[id].results[0]);
    Tensor values{type, {}};
    for (int64_t i = 0; i < type.shape.elementCount(); ++i)
      values.data.push_back(type.dtype == DType::I32 ? static_cast<double>((i * 7919) % classes)
                                                     : static_cast<double>(static_cast<float>(std::sin(0.37 * static_cast<double>(i)))));
    leaves.emplace(*leafName(graph[id]), std::move(values));
  }
  return leaves;
}

/// Different bytes that tensors of this many elements have.
size_t placesOf(const Graph& graph, int64_t elements, const program::DeviceProfile& profile) {
  passes::CompileOptions options;
  options.profile = profile;
  options.templates = detail::templateSource();
  options.keep_gradients = true;
  options.wrt = {"w"};
  const passes::Compiled compiled = passes::compile(graph, options).orThrow();
  std::set<std::pair<uint32_t, uint64_t>> places;
  for (const program::Buffer& buffer : compiled.program.buffers) {
    if (buffer.type.shape.elementCount() == elements) places.emplace(buffer.arena.value, buffer.offset);
  }
  return places.size();
}

constexpr Sizes kSizes[] = {{37, 131}, {515, 64}, {33, 1031}, {9, 4099}, {3, 70001}, {67, 9}};

TEST(InPlaceRows, gradient_of_logits_takes_their_bytes) {
  for (const char* name : {"portable", "cpu"}) {
    for (const Sizes& sizes : kSizes) {
      EXPECT_EQ(placesOf(classifier(sizes), sizes.rows * sizes.classes, program::findProfile(name).orThrow()), 1U)
          << name << " " << sizes.rows << " x " << sizes.classes;
    }
  }
}

TEST(InPlaceRows, are_right) {
  for (const std::string device : {"reference", "vulkan"}) {
    if (!chooseDevice(device).ok()) continue;
    const detail::Device own = detail::openChosenDevice(device), portable = portableDevice(device);
    for (const Sizes& sizes : kSizes) {
      for (const auto& graph : {classifier(sizes), factorPerRow(sizes, true), pickedForAll(sizes),
                                pickedElsewhere({0, std::min<int64_t>(sizes.classes, 131)})}) {
        const LeafValues leaves = leavesOf(graph, std::min<int64_t>(sizes.classes, 131));
        const std::vector<Tensor> want = runGraph(graph, leaves, {.gradients = true, .wrt = {"w", "x"}});
        for (const detail::Device* opened : {&own, &portable}) {
          const std::vector<Tensor> got =
              runGraph(graph, leaves, {.device = device, .opened = opened, .gradients = true, .wrt = {"w", "x"}});
          expectClose(got, want, 1e-5, fmt::format("{} {} {} x {}", device, opened->chosen.info.profile.name, sizes.rows, sizes.classes));
        }
      }
    }
  }
}

/// One lane picks the logit of the class while others are ready to store gradients, or stores a value of the row; surplus rows of a
/// workgroup repeat the last one.
TEST(InPlaceRows, have_no_race) {
  for (program::DeviceProfile profile : {program::findProfile("portable").orThrow(), program::findProfile("cpu").orThrow(), gpuProfile()}) {
    profile.max_workgroup_bytes = 32768;
    const detail::Device device = profiledDevice("sanitizer:race,memory", profile);
    for (const Sizes& sizes : {kSizes[0], kSizes[1], kSizes[2], Sizes{67, 9}, Sizes{512, 64}}) {
      for (const Graph& graph : {classifier(sizes), factorPerRow(sizes, true), factorPerRow(sizes, false)}) {
        for (const bool gradients : {false, true}) {
          (void)runGraph(
              graph, leavesOf(graph, sizes.classes),
              {.device = "sanitizer:race,memory", .opened = &device, .gradients = gradients, .wrt = {"w"}, .disable = {"chainRows"}});
        }
      }
    }
    for (const Finding& finding : *device.findings) ADD_FAILURE() << profile.name << " " << toString(finding);
  }
}

}  // namespace
}  // namespace lockstep
