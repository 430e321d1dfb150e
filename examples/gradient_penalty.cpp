// SPDX-License-Identifier: Apache-2.0
// A loss with a gradient in it: the critic of a Wasserstein GAN with gradient penalty (Gulrajani et al., 2017). The critic finds the
// function of slope 1 whose means on two sets of points differ most; that difference is their Wasserstein distance (Kantorovich and
// Rubinstein, 1958). Here the sets are rings of radius 1 and 2, so their distance is 1, and the critic's result is known too: with a
// slope s it gains s - kPenalty (s - 1)^2, which is most at s = 1 + 1 / (2 kPenalty).
#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <numbers>
#include <random>
#include <vector>

#include "frontend/lockstep.h"

constexpr int64_t kBatch = 256;
constexpr double kPenalty = 10;

struct Critic : ls::Module {
  ls::nn::Linear l1{*this, "l1", 2, 64, {.init = ls::init::kaiming_normal()}};
  ls::nn::Linear l2{*this, "l2", 64, 64, {.init = ls::init::kaiming_normal()}};
  ls::nn::Linear l3{*this, "l3", 64, 1, {.init = ls::init::kaiming_normal()}};
  /// Points [B, 2] -> scores [B, 1]. Smooth, so that the penalty has a gradient everywhere.
  ls::Tensor operator()(ls::Tensor x) const { return l3(ls::silu(l2(ls::silu(l1(x))))); }
};

/// How far the slopes of the critic are from 1, at points between the two sets.
ls::Tensor penalty(const Critic& critic, const ls::Tensor& outer, const ls::Tensor& inner) {
  ls::Tensor share = ls::uniform({kBatch, 1});
  ls::Tensor between = inner + share * (outer - inner);
  ls::Tensor slope = ls::grad(ls::sum(critic(between)), {between}).front();  // [B, 2]: each score depends on its own point only
  ls::Tensor steepness = ls::sqrt(ls::sum(ls::square(slope), 1) + 1e-12);
  return ls::mean(ls::square(steepness - 1.0));
}

std::vector<float> ring(double radius, std::mt19937& random) {
  std::vector<float> points;
  for (int64_t i = 0; i < kBatch; ++i) {
    const double angle = std::uniform_real_distribution<double>(0, 2 * std::numbers::pi)(random);
    points.push_back(static_cast<float>(radius * std::cos(angle)));
    points.push_back(static_cast<float>(radius * std::sin(angle)));
  }
  return points;
}

/// Takes the number of steps; fails when the result is then off by more than a tenth.
int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 600;
  auto trainer = ls::compile<Critic>({
      .inputs = {{"outer", ls::f32(kBatch, 2)}, {"inner", ls::f32(kBatch, 2)}},
      .loss =
          [](const Critic& critic, const ls::Inputs& in) {
            ls::Tensor above = ls::mean(critic(in["outer"]));
            ls::Tensor distance = ls::capture("distance", above - ls::mean(critic(in["inner"])));
            return kPenalty * penalty(critic, in["outer"], in["inner"]) - distance;
          },
      .optimizer = ls::adam({.lr = ls::schedule::linear({.peak = 3e-3, .final = 0, .steps = steps}), .beta1 = 0.5, .beta2 = 0.9}),
      .seed = 42,
  });
  fmt::print("training on {}\n", trainer.facts().device_name);

  std::mt19937 random(42);
  float distance = 0;
  for (int step = 1; step <= steps; ++step) {
    const std::vector<float> outer = ring(2, random), inner = ring(1, random);
    const ls::StepResult result = trainer.step({{"outer", outer}, {"inner", inner}}, {.captures = true});
    distance = result.or_throw().captures.get("distance").floats().front();
    if (step % 100 == 0) fmt::print("step {} loss {:.3f} distance {:.3f}\n", step, result.loss, distance);
  }
  return std::abs(distance - (1 + 1 / (2 * kPenalty))) < 0.1 ? 0 : 1;
}
