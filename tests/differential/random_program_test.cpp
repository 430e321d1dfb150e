// SPDX-License-Identifier: Apache-2.0
// Random programs agree between the f64 evaluator, the reference and Vulkan, fused and not, with shared memory and without, and as they are
// planned for GPUs. RC_PARAMS sets how many and from which seed: RC_PARAMS="max_success=10000 seed=1" random_program_test.
#include <fmt/ranges.h>
#include <rapidcheck.h>

#include <map>

#include "frontend/train/graph_runner.h"
#include "tests/differential/compare.h"
#include "tests/differential/random_program.h"
#include "tests/passes/gpu_profile.h"
#include "tests/passes/profiled_device.h"

namespace lockstep {
namespace {

/// Chains of up to a dozen f32 ops: their roundings add up, and sums cancel.
constexpr double kTolerance = 1e-4;

/// Largest difference, in units of the largest expected value (at least 1, the scale of the inputs).
double distance(const std::vector<graph::Tensor>& got, const std::vector<graph::Tensor>& want) {
  double worst = 0;
  for (size_t n = 0; n < want.size(); ++n) {
    double scale = 1;
    for (double value : want[n].data) scale = std::max(scale, std::abs(value));
    for (size_t i = 0; i < want[n].data.size(); ++i) {
      double difference = std::abs(got[n].data[i] - want[n].data[i]) / scale;
      if (!(difference <= worst)) worst = std::isnan(difference) ? HUGE_VAL : difference;
    }
  }
  return worst;
}

/// The reference with plans that no CPU gets: those of a large GPU, and of any GPU.
const std::map<std::string, detail::Device>& plannedDevices() {
  static const std::map<std::string, detail::Device> all = [] {
    program::DeviceProfile large = gpuProfile();
    large.parallel_units = 132;
    return std::map<std::string, detail::Device>{{"as a large GPU", profiledDevice("reference", large)},
                                                 {"as any GPU", portableDevice("reference")}};
  }();
  return all;
}

std::vector<graph::Tensor> runOn(const RandomProgram& program, const std::string& device, std::vector<std::string> disable = {}) {
  const auto planned = plannedDevices().find(device);
  return runGraph(program.graph, program.leaves,
                  {.device = planned != plannedDevices().end() ? "reference" : device,
                   .opened = planned != plannedDevices().end() ? &planned->second : openedDevice(device),
                   .gradients = !program.wrt.empty(),
                   .wrt = program.wrt,
                   .disable = std::move(disable)});
}

void check(const RandomProgram& program, const std::vector<graph::Tensor>& want, const std::string& device, const std::string& left_out) {
  std::vector<std::string> disable;
  if (!left_out.empty()) disable.push_back(left_out);
  const std::vector<graph::Tensor> got = runOn(program, device, disable);
  if (double far = distance(got, want); !(far <= kTolerance)) {
    std::string values;
    for (size_t n = 0; n < want.size(); ++n) {
      if (distance({got[n]}, {want[n]}) > kTolerance)
        values += fmt::format("result {}: got {} want {}\n", n, fmt::join(got[n].data, " "), fmt::join(want[n].data, " "));
    }
    RC_FAIL(fmt::format("{}{}{} is {} away from the evaluator:\n{}{}", device, left_out.empty() ? "" : " without ", left_out, far, values,
                        print(program.graph)));
  }
}

RandomProgram anyProgram() {
  const auto choices = *rc::gen::resize(60, rc::gen::container<std::vector<uint32_t>>(rc::gen::inRange<uint32_t>(0, 1u << 16)));
  const auto seed = *rc::gen::inRange<uint32_t>(0, 1u << 16);
  return makeRandomProgram(choices, seed);
}

void agreesAsPlannedForGpus() {
  const RandomProgram program = anyProgram();
  const std::vector<graph::Tensor> want = runOn(program, "evaluate");
  for (const auto& [name, device] : plannedDevices()) check(program, want, name, "");
}

void agreesEverywhere() {
  const RandomProgram program = anyProgram();
  std::vector<graph::Tensor> want = runOn(program, "evaluate");
  for (const std::string& device : devicesUnderTest()) {
    check(program, want, device, "");
    check(program, want, device, "fuse");
  }
  // Sharing memory changes no bit.
  std::vector<graph::Tensor> pooled = runOn(program, "reference"), unpooled = runOn(program, "reference", {"planBuffers"});
  for (size_t n = 0; n < pooled.size(); ++n) RC_ASSERT(pooled[n].data == unpooled[n].data);
}

TEST(RandomPrograms, agree_as_planned_for_gpus) {
  EXPECT_TRUE(rc::check("random programs agree as planned for GPUs", agreesAsPlannedForGpus));
}
TEST(RandomPrograms, agree_everywhere) { EXPECT_TRUE(rc::check("random programs agree", agreesEverywhere)); }

}  // namespace
}  // namespace lockstep
