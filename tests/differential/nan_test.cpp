// SPDX-License-Identifier: Apache-2.0
// No op loses a NaN (but reduce_max_number, which has to): every case of every op, forward and gradient, with NaNs among its numbers, on
// each device beside the f64 evaluator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "frontend/train/graph_runner.h"
#include "tests/differential/compare.h"
#include "tests/ir/ops/op_case.h"

namespace lockstep {
namespace {

using graph::testing::buildCase;
using graph::testing::CaseGraph;
using graph::testing::NamedCase;
using graph::testing::namedCases;
using graph::testing::weightedSum;

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<size_t> floatOperands(const graph::OpCase& op_case) {
  std::vector<size_t> operands;
  for (size_t i = 0; i < op_case.operands.size(); ++i) {
    if (op_case.operands[i].type.dtype == graph::DType::F32) operands.push_back(i);
  }
  return operands;
}

/// Ops that multiply by the zeros of their padding or mask, where the evaluator leaves the product out: 0 times NaN is one more NaN. A
/// causal convolution is one of them where it has too many taps for a map. And scans for which a rate that is NaN makes all gradients of a
/// chunk NaN, where the last step alone does without it.
bool mayHaveMore(const NamedCase& named) {
  constexpr std::string_view kOps[] = {"conv",
                                       "conv_transpose",
                                       "softmax_causal",
                                       "scaled_dot_product_attention",
                                       "attention_gradient",
                                       "cached_attention",
                                       "selective_scan",
                                       "selective_scan_gradient",
                                       "scan_chunk_gradient",
                                       "scan_chunk_gradient_states",
                                       "ssd"};
  return named.name().starts_with("causal_conv1d_many_taps") || std::ranges::find(kOps, *named.op->name) != std::end(kOps);
}

/// NaN where the evaluator has it, and the same numbers elsewhere.
void expectSame(const std::vector<graph::Tensor>& got, const std::vector<graph::Tensor>& want, bool may_have_more,
                const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t output = 0; output < want.size(); ++output) {
    for (size_t i = 0; i < want[output].data.size(); ++i) {
      const double number = got[output].data[i], wanted = static_cast<double>(static_cast<float>(want[output].data[i]));
      if (std::isnan(number) && (std::isnan(wanted) || may_have_more)) continue;
      ASSERT_TRUE(number == wanted || std::abs(number - wanted) <= 1e-3 * std::max(1.0, std::abs(wanted)))
          << fmt::format("{}: element {} of output {} is {}, wanted {}", what, i, output, number, wanted);
    }
  }
}

struct OnDevice {
  std::string what;  ///< "gradients on vulkan"
  CompiledGraph graph;
};

/// One case, compiled for each device: forward, and if it has gradients those of what it makes.
class CompiledCase {
 public:
  explicit CompiledCase(const NamedCase& named) : named_(named), made_(buildCase(*named.op, named.op_case)) {
    graph::Builder forward(made_.builder.graph());
    for (size_t i = 0; i < made_.results.size(); ++i) forward.output(graph::OutputKind::Result, "y" + std::to_string(i), made_.results[i]);
    forward_.emplace(forward.graph());
    const bool has_templates = std::holds_alternative<graph::TemplateLowering>(*named.op->lower);
    for (const std::string& device : devicesUnderTest()) {
      forward_on_.push_back({"results on " + device, CompiledGraph(forward.graph(), {.device = device, .opened = openedDevice(device)})});
      if (!has_templates) continue;
      const detail::Device gpu = asGpu(*openedDevice(device));
      forward_on_.push_back(
          {fmt::format("results on {} as a GPU", device), CompiledGraph(forward.graph(), {.device = device, .opened = &gpu})});
    }

    if (std::holds_alternative<graph::NotDifferentiable>(*named.op->gradient)) return;
    if (made_.builder.typeOf(made_.results[0]).dtype != graph::DType::F32) return;
    std::mt19937 random(2);
    made_.builder.output(graph::OutputKind::Loss, "loss", weightedSum(made_.builder, made_.results[0], "weight", made_.leaves, random));
    GraphRunOptions options{.gradients = true};
    for (size_t i : floatOperands(named.op_case)) options.wrt.push_back("operand" + std::to_string(i));
    gradients_.emplace(made_.builder.graph(), options);
    for (const std::string& device : devicesUnderTest()) {
      options.device = device;
      options.opened = openedDevice(device);
      gradients_on_.push_back({"gradients on " + device, CompiledGraph(made_.builder.graph(), options)});
    }
  }

  /// With every seventh element of one operand replaced by these in turn.
  void check(size_t operand, const std::vector<double>& replacements) {
    graph::LeafValues leaves = made_.leaves;
    std::vector<double>& data = leaves.at("operand" + std::to_string(operand)).data;
    for (size_t i = data.size() / 3, n = 0; i < data.size(); i += 7, ++n) data[i] = replacements[n % replacements.size()];
    const bool may_have_more = mayHaveMore(named_);
    const std::string what = fmt::format("{} with {} in operand {}", named_.name(), fmt::join(replacements, " and "), operand);

    const std::vector<graph::Tensor> want = forward_->run(leaves);
    for (OnDevice& on : forward_on_) expectSame(on.graph.run(leaves), want, may_have_more, fmt::format("{}: {}", what, on.what));
    if (!gradients_) return;
    const std::vector<graph::Tensor> wanted = gradients_->run(leaves);
    for (OnDevice& on : gradients_on_) {
      std::vector<graph::Tensor> got = on.graph.run(leaves);
      got.front() = wanted.front();  // the loss: a sum that cancels
      expectSame(got, wanted, may_have_more, fmt::format("{}: {}", what, on.what));
    }
  }

 private:
  const NamedCase& named_;
  CaseGraph made_;
  std::optional<CompiledGraph> forward_, gradients_;  ///< in f64
  std::vector<OnDevice> forward_on_, gradients_on_;
};

class NaN : public testing::TestWithParam<NamedCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, NaN, testing::ValuesIn(namedCases([](const graph::OpDef&) { return true; })),
                         [](const auto& info) { return info.param.name(); });

TEST_P(NaN, passes_through_every_op) {
  // The sign of a NaN means nothing, but decides where its bits lie among those of numbers.
  CompiledCase compiled(GetParam());
  for (size_t operand : floatOperands(GetParam().op_case)) compiled.check(operand, {kNaN, -kNaN});
}

TEST_P(NaN, is_not_lost_beside_infinities) {
  const graph::OpCase& op_case = GetParam().op_case;
  if (op_case.tolerance > 0) return;  // only of what chooses or moves elements is it certain what an infinity becomes
  CompiledCase compiled(GetParam());
  for (size_t operand : floatOperands(op_case)) {
    compiled.check(operand, {kInfinity, -kInfinity});
    compiled.check(operand, {-kInfinity, kNaN, kInfinity, -kNaN});
  }
}

}  // namespace
}  // namespace lockstep
