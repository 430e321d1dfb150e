// SPDX-License-Identifier: Apache-2.0
// A step on two backends, kernel by kernel: what is found, what it is called, and that its folder shows it again.
#include "tools/verify/kernel_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backends/fault.h"
#include "backends/reference/reference.h"
#include "frontend/io/npy.h"
#include "tests/tools/cli/process.h"
#include "tests/tools/verify/small_step.h"
#include "tools/verify/array_compare.h"
#include "tools/verify/command_origins.h"
#include "tools/verify/golden_compare.h"
#include "tools/verify/output_distance.h"
#include "tools/verify/reproduction.h"

namespace lockstep::tools {
namespace {

io::Array floats(std::vector<float> values) { return io::Array::fromFloats({static_cast<int64_t>(values.size())}, values); }

TEST(ArrayCompare, distances_are_in_floats_between) {
  EXPECT_EQ(ulpsBetween(1.0f, 1.0f), 0u);
  EXPECT_EQ(ulpsBetween(0.0f, -0.0f), 0u);
  EXPECT_EQ(ulpsBetween(1.0f, std::nextafter(1.0f, 2.0f)), 1u);
  EXPECT_EQ(ulpsBetween(std::numeric_limits<float>::denorm_min(), -std::numeric_limits<float>::denorm_min()), 2u);
  EXPECT_EQ(ulpsBetween(NAN, NAN), 0u);
  EXPECT_EQ(ulpsBetween(NAN, 1.0f), std::numeric_limits<uint64_t>::max());
}

TEST(ArrayCompare, the_element_that_is_farthest_beyond_its_bound_counts) {
  const io::Array want = floats({1, 100, 3, NAN}), got = floats({1.5f, 101, 3, NAN});
  const ArrayDifference found = compareArrays(got, want, std::vector<double>{0.1, 10, 0, 0});
  EXPECT_EQ(found.worst, 0u);
  EXPECT_EQ(found.beyond, 1u);
  EXPECT_EQ(found.different, 2u);
  EXPECT_EQ(toText(found, "y[0]"), "y[0] is 1.5 instead of 1 (4194304 ulp, allowed 0.1); 1 of 4 elements is beyond its bound");
  EXPECT_TRUE(compareArrays(got, want, std::vector<double>{0.5, 1, 0, 0}).within());
}

TEST(ArrayCompare, what_is_not_finite_must_be_the_same) {
  const io::Array want = floats({INFINITY, NAN, 1});
  const std::vector<double> wide{1e30, 1e30, 1e30};
  EXPECT_TRUE(compareArrays(want, want, wide).equal());
  EXPECT_EQ(compareArrays(floats({-INFINITY, NAN, 1}), want, wide).worst, 0u);
  EXPECT_EQ(compareArrays(floats({INFINITY, 1, 1}), want, wide).worst, 1u);
  EXPECT_EQ(compareArrays(floats({INFINITY, NAN, NAN}), want, wide).beyond, 1u);
}

TEST(ArrayCompare, bounds_follow_the_element_or_the_whole_and_integers_have_none) {
  const std::vector<double> bounds = relativeBounds(floats({0, 3, 4, INFINITY}), 0.1);
  EXPECT_NEAR(bounds[0], 0.1 * std::sqrt(25.0 / 3), 1e-12);
  EXPECT_DOUBLE_EQ(bounds[2], 0.4);
  EXPECT_EQ(bounds[3], 0);
  EXPECT_EQ(relativeBounds(io::Array::fromInts({2}, std::vector<int32_t>{7, 8}), 0.1), (std::vector<double>{0, 0}));
}

std::unique_ptr<Backend> wrong(const std::string& fault) { return withFault(makeReference(), parseFault(fault).orThrow()); }

class KernelByKernel : public ::testing::Test {
 protected:
  KernelCheck check() { return KernelCheck::make(program(), step_.inputs()).orThrow(); }
  program::Program program() { return std::get<program::Program>(step_.stage("-kernels.program")); }
  std::optional<KernelDifference> run(Backend& device) {
    KernelCheck one = check();
    return one.run(*judge_, device).orThrow();
  }
  testing::SmallStep step_;
  std::unique_ptr<Backend> judge_ = makeReference();
};

TEST_F(KernelByKernel, a_backend_agrees_with_itself_run_after_run) {
  KernelCheck one = check();
  const std::unique_ptr<Backend> other = makeReference({.max_threads = 1});
  for (int round = 0; round < 3; ++round) EXPECT_FALSE(one.run(*judge_, *other).orThrow().has_value());
  EXPECT_EQ(one.counts().dispatches, 3 * program().commands.size());
  EXPECT_GT(one.counts().elements, 100u);
  EXPECT_EQ(one.counts().closest, 0);
}

TEST_F(KernelByKernel, a_wrong_builtin_is_named_with_its_kernel_op_line_and_element) {
  const std::unique_ptr<Backend> off = wrong("exp+3000ulp");
  const std::optional<KernelDifference> found = run(*off);
  ASSERT_TRUE(found.has_value());
  EXPECT_GT(found->numbers.beyond, 0u);
  // 3000 ulp, as the writes of the kernel itself: nothing added up.
  EXPECT_GE(found->numbers.ulps, 2900u);
  const program::Program p = program();
  EXPECT_NE(p.commands[found->command].label.find("exp"), std::string::npos) << p.commands[found->command].label;
  const CommandOrigin origin = originsFrom(step_.dump(), p)[found->command];
  ASSERT_FALSE(origin.ops.empty());
  const auto exp = std::ranges::find(origin.ops, "exp", &OpOrigin::op);
  ASSERT_NE(exp, origin.ops.end());
  EXPECT_TRUE(exp->where.file.ends_with("small_step.h")) << exp->where.file;
  EXPECT_EQ(exp->where.line, static_cast<uint32_t>(testing::kExpLine));
  const auto& action = std::get<program::Dispatch>(p.commands[found->command].action);
  EXPECT_NE(origin.makerOf(action.bindings[found->binding].buffer), nullptr);
  EXPECT_EQ(found->element.find('['), p[action.bindings[found->binding].buffer].name.size()) << found->element;
}

TEST_F(KernelByKernel, errors_below_the_bound_pass_and_those_above_do_not) {
  // exp may be off by 3 + 2|x| ulp; what it feeds into one kernel with it only makes that more.
  const std::unique_ptr<Backend> near = wrong("exp+2ulp"), far = wrong("exp+60ulp");
  EXPECT_FALSE(run(*near).has_value());
  EXPECT_TRUE(run(*far).has_value());
}

TEST_F(KernelByKernel, parameters_are_named_where_a_flat_state_differs) {
  const std::unique_ptr<Backend> off = wrong("sqrt+500000ulp");
  const std::optional<KernelDifference> found = run(*off);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->element.starts_with("first.") || found->element.starts_with("second.")) << found->element;
}

/// y = exp(x) - 1 near 0, of which exp's rounding is most. WGSL allows it 3 + 2|x| ulp.
TEST(NumericBound, errors_just_above_wgsls_accuracy_are_caught_and_those_just_below_are_not) {
  constexpr std::string_view kText = R"(lockstep.kernel 1
var @x: array<f32, 4> {access = read, binding = 0, group = 0, space = storage}
var @y: array<f32, 4> {access = read_write, binding = 1, group = 0, space = storage}

fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [4, 1, 1]} {
  %0: ptr<storage, f32, read> = access @x, %i
  %1: f32 = load %0
  %2: f32 = exp %1
  %3: f32 = sub %2, 1f
  %4: ptr<storage, f32, read_write> = access @y, %i
  store %4, %3
  return
}
)";
  const std::unique_ptr<Backend> judge = makeReference();
  const auto judged = [&](const std::string& fault) {
    JudgedDispatch run;
    run.dispatch = {.module = kernel::parse(kText).orThrow(),
                    .entry = {},
                    .groups = {1, 1, 1},
                    .bindings = {{.group = 0, .binding = 0, .buffer = 0, .size = 16}, {.group = 0, .binding = 1, .buffer = 1, .size = 16}},
                    .buffer_sizes = {16, 16}};
    const std::vector<float> x{1e-4f, 2e-4f, -1e-4f, 3e-4f};
    run.before = {Bytes(16), Bytes(16)};
    std::memcpy(run.before[0].data(), x.data(), 16);
    run.want = run.got = run.before;
    const program::ValidProgram program = makeProgram(run.dispatch).orThrow();
    (void)runDispatch(*judge, program, run.want).orThrow();
    const std::unique_ptr<Backend> off = wrong(fault);
    (void)runDispatch(*off, program, run.got).orThrow();
    const std::vector<double> bounds = boundsOf(run).orThrow().elements[1];
    const auto array = [&](const Bytes& bytes) { return io::Array{io::ElementType::F32, {4}, bytes}; };
    return compareArrays(array(run.got[1]), array(run.want[1]), bounds);
  };
  for (const char* fault : {"exp+1ulp", "exp+2ulp", "exp-2ulp"}) EXPECT_TRUE(judged(fault).within()) << fault << toText(judged(fault), "y");
  for (const char* fault : {"exp+5ulp", "exp-5ulp", "exp+500ulp"})
    EXPECT_FALSE(judged(fault).within()) << fault << toText(judged(fault), "y");
  const ArrayDifference small = judged("exp+2ulp");
  EXPECT_GT(std::abs(small.got - small.want), kUnboundedTolerance * std::abs(small.want)) << "a tolerance would have refused it";
}

/// y = exp(x) < 1 ? 5 : 7. At x = 0 rounding decides, elsewhere it does not.
TEST(NumericBound, what_follows_from_a_choice_that_rounding_decides_has_no_bound) {
  constexpr std::string_view kText = R"(lockstep.kernel 1
var @x: array<f32, 4> {access = read, binding = 0, group = 0, space = storage}
var @y: array<f32, 4> {access = read_write, binding = 1, group = 0, space = storage}

fn @main(%i: u32 {builtin = local_invocation_index}) {workgroup_size = [4, 1, 1]} {
  %0: ptr<storage, f32, read> = access @x, %i
  %1: f32 = load %0
  %2: f32 = exp %1
  %3: bool = lt %2, 1f
  %4: f32 = select 7f, 5f, %3
  %5: ptr<storage, f32, read_write> = access @y, %i
  store %5, %4
  return
}
)";
  const KernelDispatch dispatch{
      .module = kernel::parse(kText).orThrow(),
      .entry = {},
      .groups = {1, 1, 1},
      .bindings = {{.group = 0, .binding = 0, .buffer = 0, .size = 16}, {.group = 0, .binding = 1, .buffer = 1, .size = 16}},
      .buffer_sizes = {16, 16}};
  const std::unique_ptr<Backend> judge = makeReference(), off = wrong("exp-1ulp");
  const auto differs = [&](const std::vector<float>& x, Backend& device, size_t chosen) {
    io::Array words = io::Array::zeros(io::ElementType::U32, {4});
    std::memcpy(words.data.data(), x.data(), 16);
    KernelCheck check = KernelCheck::make(*makeProgram(dispatch).orThrow(), {.tensors = {{"buffer0", words}}, .metadata = {}}).orThrow();
    const bool found = check.run(*judge, device).orThrow().has_value();
    EXPECT_EQ(check.counts().chosen, chosen);
    return found;
  };
  EXPECT_FALSE(differs({0, 1, -1, 2}, *off, 1));
  const std::unique_ptr<Backend> far = wrong("exp-9999999ulp");
  EXPECT_TRUE(differs({0, 0.25f, 0.125f, 0.5f}, *far, 0)) << "one choice is unstable and all four came out differently";
}

TEST_F(KernelByKernel, the_folder_shows_the_difference_again) {
  const std::unique_ptr<Backend> off = wrong("exp+3000ulp");
  const std::optional<KernelDifference> found = run(*off);
  ASSERT_TRUE(found.has_value());
  const std::filesystem::path folder = step_ / "difference";
  ASSERT_TRUE(writeReproduction(folder, *found, "reference:fault=exp+3000ulp", "words\n").ok());
  for (const char* name : {"kernel.kir", "kernel.wgsl", "before_0.npy", "run.sh", "difference.txt"})
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  const auto shell = [&](const std::string& arguments) {
    const int raw = std::system(
        ("LOCKSTEP=" LOCKSTEP_TOOL " sh " + (folder / "run.sh").string() + arguments + " >" + (folder / "out").string() + " 2>&1").c_str());
    return WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
  };
  EXPECT_EQ(shell(""), 5) << *io::readTextFile(folder / "out");
  const std::string said = *io::readTextFile(folder / "out");
  EXPECT_NE(said.find("[" + std::to_string(found->numbers.worst) + "] is "), std::string::npos) << said;
  EXPECT_NE(said.find(std::to_string(found->numbers.beyond) + " of " + std::to_string(found->numbers.elements)), std::string::npos) << said;
  EXPECT_EQ(shell(" reference"), 0) << *io::readTextFile(folder / "out");
  EXPECT_NE(io::readTextFile(folder / "out")->find("is equal to"), std::string::npos);
}

/// Runs the last command of a program of several first.
class TooEarly : public Backend {
 public:
  [[nodiscard]] const DeviceInfo& device() const override { return backend_->device(); }
  Result<std::shared_ptr<Memory>> allocate(uint64_t bytes) override { return backend_->allocate(bytes); }
  Result<std::unique_ptr<Executable>> compile(const program::ValidProgram& program) override {
    program::Program wrong = *program;
    if (wrong.commands.size() > 1) {
      std::rotate(wrong.commands.begin(), wrong.commands.end() - 1, wrong.commands.end());
      for (size_t i = 0; i < wrong.commands.size(); ++i) wrong.commands[i].level = static_cast<uint32_t>(i);
    }
    LS_TRY(const program::ValidProgram valid, program::validate(std::move(wrong)));
    return backend_->compile(valid);
  }

 private:
  std::unique_ptr<Backend> backend_ = makeReference();
};

TEST_F(KernelByKernel, kernels_that_are_right_alone_and_in_the_wrong_order_are_wrong_together) {
  KernelCheck one = check();
  detail::Device device = detail::openChosenDevice("reference");
  EXPECT_FALSE(one.run(*judge_, *device.backend).orThrow().has_value());
  EXPECT_EQ(distanceTogether(one, step_.inputs(), device).orThrow().relative, 0);
  KernelCheck other = check();
  device.backend = std::make_shared<TooEarly>();
  EXPECT_FALSE(other.run(*judge_, *device.backend).orThrow().has_value());
  const OutputDistance together = distanceTogether(other, step_.inputs(), device).orThrow();
  EXPECT_GT(together.relative, 0.01);
  EXPECT_TRUE(together.name.starts_with("next_state.")) << together.name;
}

TEST_F(KernelByKernel, inputs_of_another_program_are_refused) {
  io::TensorFile inputs = step_.inputs();
  inputs.tensors.erase("x");
  const auto made = KernelCheck::make(program(), inputs);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.diagnostics().front().code, "replay.input");
}

}  // namespace
}  // namespace lockstep::tools
