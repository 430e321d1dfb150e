// SPDX-License-Identifier: Apache-2.0
// A pass that is wrong on purpose, and a backend that is: which of them is found, with its kernel.
#include "tools/verify/bisect.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/fault.h"
#include "tests/tools/verify/small_step.h"
#include "tools/verify/kernel_check.h"
#include "tools/verify/output_distance.h"
#include "tools/verify/replay.h"

namespace lockstep::tools {
namespace {

bool has(const std::vector<std::string>& names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

class Bisect : public ::testing::Test {
 protected:
  Bisect()
      : form_(step_.stage("-optimizer.located")),
        inputs_(step_.inputs()),
        want_(evaluateStage(std::get<graph::Graph>(form_), inputs_).orThrow()) {}

  /// `spoil` changes what is built: a pass that is wrong.
  BisectRequest request(const std::function<void(BuiltProgram&, const PassChoice&)>& spoil, const std::string& device = "reference") {
    BisectRequest request;
    request.passes = optionalPassesAfter(passes::Stage::Updated);
    request.build = [this, spoil](const PassChoice& choice) -> Result<BuiltProgram> {
      passes::CompileOptions options;
      options.profile = chooseDevice("reference")->info.profile;
      LS_TRY(BuiltProgram built, buildFrom(form_, options, choice));
      if (spoil) spoil(built, choice);
      return built;
    };
    request.measure = [this, device](const program::Program& program) -> Result<double> {
      LS_TRY(const Replayed got, runStage(program, inputs_, detail::openChosenDevice(device)));
      return distanceOf(got.outputs, want_).relative / 1e-4;
    };
    return request;
  }

  static void offByTenPercent(program::Kernel& kernel) {
    for (const kernel::Op op : {kernel::Op::Mul, kernel::Op::Add})
      kernel.code = plantFault(std::get<kernel::Module>(kernel.code), {.op = op, .ulp = 800000, .kernel = {}});
  }
  static size_t kernelWith(const program::Program& program, std::string_view part) {
    const auto found =
        std::ranges::find_if(program.commands, [&](const program::Command& c) { return c.label.find(part) != std::string::npos; });
    return found == program.commands.end() ? SIZE_MAX : std::get<program::Dispatch>(found->action).kernel.index();
  }

  testing::SmallStep step_;
  passes::Form form_;
  io::TensorFile inputs_, want_;
};

TEST_F(Bisect, right_passes_on_a_right_device_have_no_difference) {
  const Bisection found = bisectPasses(request({})).orThrow();
  EXPECT_EQ(found.outcome, Bisection::Outcome::NoDifference);
  EXPECT_EQ(found.trials.size(), 1u);
}

TEST_F(Bisect, each_optional_pass_is_found_when_it_is_the_wrong_one) {
  const std::vector<std::string> names = optionalPassesAfter(passes::Stage::Updated);
  for (const char* expected : {"simplify", "splitReductions", "fuse", "planBuffers", "mergeDispatches", "hoistInvariants", "removeDead"})
    EXPECT_TRUE(has(names, expected)) << expected;
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const auto spoil = [&](BuiltProgram& built, const PassChoice& choice) {
      if (!has(choice.disabled, name)) offByTenPercent(built.program.kernels.front());
    };
    const Bisection found = bisectPasses(request(spoil)).orThrow();
    EXPECT_EQ(found.outcome, Bisection::Outcome::Found);
    EXPECT_EQ(found.pass, name);
    EXPECT_TRUE(found.alone);
    EXPECT_LE(found.trials.size(), 40u);
  }
}

TEST_F(Bisect, the_kernel_that_a_kernel_pass_made_wrong_is_named) {
  for (const char* part : {"exp", "sqrt"}) {
    SCOPED_TRACE(part);
    std::string kernel;
    const auto spoil = [&](BuiltProgram& built, const PassChoice& choice) {
      if (has(choice.disabled, "shareCommon")) return;
      const size_t wrong = kernelWith(built.program, part);
      ASSERT_NE(wrong, SIZE_MAX);
      kernel = built.program.kernels[wrong].name;
      offByTenPercent(built.program.kernels[wrong]);
    };
    const Bisection found = bisectPasses(request(spoil)).orThrow();
    EXPECT_EQ(found.pass, "shareCommon");
    ASSERT_EQ(found.culprits.size(), 1u);
    EXPECT_NE(found.culprits[0].label.find(part), std::string::npos) << found.culprits[0].label;
    EXPECT_FALSE(found.culprits[0].origin.ops.empty());
  }
}

TEST_F(Bisect, the_group_that_fuse_made_wrong_is_named_with_the_users_line) {
  // Wrong wherever a contraction and exp are in one kernel, which only fuse does.
  const auto spoil = [&](BuiltProgram& built, const PassChoice&) {
    for (const program::Command& command : built.program.commands) {
      const auto* dispatch = std::get_if<program::Dispatch>(&command.action);
      if (dispatch == nullptr || command.label.find("matmul") == std::string::npos || command.label.find("exp") == std::string::npos)
        continue;
      offByTenPercent(built.program.kernels[dispatch->kernel.index()]);
    }
  };
  const Bisection found = bisectPasses(request(spoil)).orThrow();
  EXPECT_EQ(found.pass, "fuse");
  EXPECT_TRUE(found.alone);
  ASSERT_FALSE(found.culprits.empty());
  const std::vector<OpOrigin>& ops = found.culprits[0].origin.ops;
  const auto exp = std::ranges::find(ops, "exp", &OpOrigin::op);
  ASSERT_NE(exp, ops.end());
  EXPECT_NE(std::ranges::find(ops, "matmul", &OpOrigin::op), ops.end());
  EXPECT_EQ(exp->where.line, static_cast<uint32_t>(testing::kExpLine));
}

TEST_F(Bisect, a_device_that_is_wrong_in_a_kernel_of_fuse_is_traced_to_fuse) {
  const Bisection found = bisectPasses(request({}, "reference:fault=exp+800000ulp@register_rows")).orThrow();
  EXPECT_EQ(found.outcome, Bisection::Outcome::Found);
  EXPECT_EQ(found.pass, "fuse");
  ASSERT_FALSE(found.culprits.empty());
  EXPECT_NE(found.culprits[0].label.find("exp"), std::string::npos) << found.culprits[0].label;
}

TEST_F(Bisect, a_device_that_is_always_wrong_is_no_pass) {
  BisectRequest always = request({}, "reference:fault=exp+800000ulp");
  always.first_wrong_command = [&](const program::Program& program) -> Result<std::optional<size_t>> {
    LS_TRY(KernelCheck check, KernelCheck::make(program, inputs_));
    const std::unique_ptr<Backend> judge = openDevice(chooseDevice("reference").orThrow().info).orThrow(),
                                   device = openDevice(chooseDevice("reference:fault=exp+800000ulp").orThrow().info).orThrow();
    LS_TRY(const std::optional<KernelDifference> found, check.run(*judge, *device));
    return found ? std::optional(found->command) : std::nullopt;
  };
  const Bisection found = bisectPasses(always).orThrow();
  EXPECT_EQ(found.outcome, Bisection::Outcome::EveryBuild);
  EXPECT_EQ(found.trials.size(), 2u);
  ASSERT_EQ(found.culprits.size(), 1u);
  EXPECT_EQ(found.culprits[0].label, "exp");
}

TEST_F(Bisect, kernel_passes_stay_on_where_a_device_refuses_a_program_without_them) {
  const auto spoil = [&](BuiltProgram& built, const PassChoice& choice) {
    if (!has(choice.disabled, "splitReductions")) offByTenPercent(built.program.kernels.front());
  };
  BisectRequest one = request(spoil);
  one.build = [build = one.build](const PassChoice& choice) -> Result<BuiltProgram> {
    if (has(choice.disabled, "unrollLoops")) return fail("device.loop_limit", "too many rounds");
    return build(choice);
  };
  const Bisection found = bisectPasses(one).orThrow();
  EXPECT_EQ(found.pass, "splitReductions");
  EXPECT_TRUE(found.keeps_kernel_passes);
  EXPECT_EQ(found.trials[1].refused, "device.loop_limit");
}

TEST_F(Bisect, two_wrong_passes_are_not_blamed_on_one_alone) {
  const auto spoil = [&](BuiltProgram& built, const PassChoice& choice) {
    if (!has(choice.disabled, "planBuffers") || !has(choice.disabled, "removeDead")) offByTenPercent(built.program.kernels.front());
  };
  const Bisection found = bisectPasses(request(spoil)).orThrow();
  EXPECT_EQ(found.pass, "planBuffers");
  EXPECT_FALSE(found.alone);
}

TEST_F(Bisect, a_graph_without_its_update_is_no_step) {
  const Result<passes::Stage> stage = stageOf(step_.stage("-trace.graph"));
  ASSERT_FALSE(stage.ok());
  EXPECT_EQ(stage.diagnostics().front().code, "bisect.stage");
  EXPECT_EQ(stageOf(step_.stage("-optimizer.graph")).orThrow(), passes::Stage::Updated);
  EXPECT_EQ(stageOf(step_.stage("-fuse.graph")).orThrow(), passes::Stage::Grouped);
  EXPECT_EQ(stageOf(step_.stage("-schedule.program")).orThrow(), passes::Stage::Scheduled);
}

TEST_F(Bisect, fusing_fewer_nodes_computes_the_same) {
  const BisectRequest plain = request({});
  size_t least = SIZE_MAX, most = 0;
  for (const size_t nodes : {size_t{0}, size_t{10}, size_t{25}, size_t{60}, SIZE_MAX}) {
    const BuiltProgram built = plain.build({.disabled = {}, .fused_nodes = nodes}).orThrow();
    EXPECT_LE(plain.measure(built.program).orThrow(), 1) << nodes;
    least = std::min(least, built.program.commands.size());
    most = std::max(most, built.program.commands.size());
  }
  EXPECT_LT(least, most);
}

}  // namespace
}  // namespace lockstep::tools
