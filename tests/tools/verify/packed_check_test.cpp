// SPDX-License-Identifier: Apache-2.0
// Programs with packed tensors on two backends: what lies in a word is compared element by element.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/fault.h"
#include "backends/reference/reference.h"
#include "frontend/train/templates.h"
#include "ir/graph/builder.h"
#include "passes/pipeline.h"
#include "runtime/memory_array.h"
#include "tests/frontend/io/scratch.h"
#include "tests/tools/cli/process.h"
#include "tools/verify/kernel_check.h"
#include "tools/verify/replay.h"
#include "tools/verify/reproduction.h"

namespace lockstep::tools {
namespace {

using graph::DType;
using graph::OutputKind;
using graph::TensorType;

constexpr int64_t kLength = 257;

/// y = exp(x) of floats of a type, and n = x as an integer of another one.
program::Program program(DType floats, DType integers) {
  graph::Builder b;
  const auto input = b.make("input", {}, {{"name", "x"}, {"dtype", floats}, {"shape", std::vector<int64_t>{kLength}}});
  const auto wide = b.make("cast", {input}, {{"dtype", DType::F32}});
  b.output(OutputKind::Result, "y", b.make("cast", {b.make("exp", {wide})}, {{"dtype", floats}}));
  b.output(OutputKind::Result, "n", b.make("cast", {b.mul(wide, 50)}, {{"dtype", integers}}));
  passes::CompileOptions options;
  options.templates = detail::templateSource();
  return passes::compile(b.graph(), options).orThrow().program;
}

io::TensorFile inputs(DType floats) {
  std::vector<double> x;
  for (int64_t i = 0; i < kLength; ++i) x.push_back(static_cast<double>(i) / 128);
  return {.tensors = {{"x", detail::encodeArray({floats, graph::Shape{kLength}}, x)}}, .metadata = {}};
}

class PackedCheck : public ::testing::TestWithParam<DType> {
 protected:
  std::optional<KernelDifference> run(const std::string& fault) {
    const std::unique_ptr<Backend> judge = makeReference(), device = withFault(makeReference(), parseFault(fault).orThrow());
    KernelCheck check = KernelCheck::make(program(GetParam(), DType::I8), inputs(GetParam())).orThrow();
    std::optional<KernelDifference> found = check.run(*judge, *device).orThrow();
    closest_ = check.counts().closest;
    elements_ = check.counts().elements;
    return found;
  }
  double closest_ = 0;
  size_t elements_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Types, PackedCheck, ::testing::Values(DType::F16, DType::BF16),
                         [](const auto& info) { return std::string(toString(info.param)); });

TEST_P(PackedCheck, elements_and_no_words_are_counted) {
  EXPECT_FALSE(run("log+1ulp").has_value());
  // 257 and one that nothing uses, 257 and three.
  EXPECT_EQ(elements_, 258u + 260u);
  EXPECT_EQ(closest_, 0);
}

TEST_P(PackedCheck, a_rounding_to_the_neighbour_is_within_the_bound) {
  // A sixteenth of a unit in the last place of the type, so that some elements are rounded the other way.
  const bool is_half = GetParam() == DType::F16;
  EXPECT_FALSE(run(is_half ? "exp+500ulp" : "exp+4000ulp").has_value());
  EXPECT_GT(closest_, 0);
  EXPECT_LE(closest_, 1);
}

TEST_P(PackedCheck, what_is_further_off_is_named_with_its_element) {
  const std::optional<KernelDifference> found = run(GetParam() == DType::F16 ? "exp+40000ulp" : "exp+300000ulp");
  ASSERT_TRUE(found.has_value());
  EXPECT_GE(found->numbers.ulps, 4u);
  EXPECT_LE(found->numbers.ulps, 5u);
  EXPECT_EQ(found->element, "y[" + std::to_string(found->numbers.worst) + "]");
  EXPECT_NEAR(found->numbers.want, std::exp(static_cast<double>(found->numbers.worst) / 128), 0.02 * found->numbers.want);
}

TEST_P(PackedCheck, the_folder_shows_the_difference_again) {
  const std::string fault = GetParam() == DType::F16 ? "exp+40000ulp" : "exp+300000ulp";
  const std::optional<KernelDifference> found = run(fault);
  ASSERT_TRUE(found.has_value());
  const testing::ScratchDirectory scratch("packed_difference");
  const std::filesystem::path folder = scratch / "difference";
  ASSERT_TRUE(writeReproduction(folder, *found, "reference:fault=" + fault, "elements\n").ok());
  const auto shell = [&](const std::string& arguments) {
    const int raw = std::system(("LOCKSTEP=" LOCKSTEP_TOOL " sh " + (folder / "run.sh").string() + arguments + " >/dev/null 2>&1").c_str());
    return WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
  };
  EXPECT_EQ(shell(""), 5);
  EXPECT_EQ(shell(" reference"), 0);
}

TEST_P(PackedCheck, a_stage_runs_again_on_its_inputs) {
  const detail::Device device = detail::openChosenDevice("reference");
  const Replayed first = runStage(program(GetParam(), DType::U8), inputs(GetParam()), device).orThrow();
  for (int64_t i = 0; i < kLength; ++i) {
    const double x = static_cast<double>(i) / 128;
    EXPECT_EQ(first.outputs.find("result.n")->at(static_cast<size_t>(i)), std::trunc(x * 50)) << i;
  }
}

}  // namespace
}  // namespace lockstep::tools
