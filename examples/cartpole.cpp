// SPDX-License-Identifier: Apache-2.0
// Balancing a pole on a cart (Barto, Sutton and Anderson, 1983) with REINFORCE: one step of training for each round of 16 games.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "examples/models/samples.h"
#include "examples/recipes.h"
#include "frontend/data/random.h"
#include "frontend/io/plot.h"
#include "frontend/ops/ops.h"

namespace lockstep::examples {
namespace {

constexpr size_t kGames = 16, kLongest = 200, kSlots = kGames * kLongest;
constexpr double kDiscount = 0.99;

struct Cart {
  std::array<double, 4> state{};  ///< position, its speed, angle of the pole, its speed: SI units
  bool fallen = false;

  /// One fiftieth of a second with a force of 10 N to the right or to the left; explicit Euler with the speeds from before.
  void push(bool right) {
    constexpr double kGravity = 9.8, kPole = 0.1, kTotal = 1.1, kHalf = 0.5, kTime = 0.02;
    auto& [x, speed, angle, turn] = state;
    const double sine = std::sin(angle), cosine = std::cos(angle);
    const double common = ((right ? 10.0 : -10.0) + kPole * kHalf * turn * turn * sine) / kTotal;
    const double turning = (kGravity * sine - cosine * common) / (kHalf * (4.0 / 3 - kPole * cosine * cosine / kTotal));
    const double pushing = common - kPole * kHalf * turning * cosine / kTotal;
    state = {x + kTime * speed, speed + kTime * pushing, angle + kTime * turn, turn + kTime * turning};
    fallen = std::abs(state[0]) > 2.4 || std::abs(state[2]) > 12 * M_PI / 180;
  }
};

class Cartpole : public Experiment {
 public:
  explicit Cartpole(const ExperimentOptions& options)
      : seed_(options.seed),
        trainer_(compile(options.with(cartpoleSpec()))),
        policy_(trainer_.attach({.inputs = {{"states", f32(kGames, 4)}},
                                 .forward = [](const Policy& model, const Inputs& in) { return softmax(model(in["states"])); }})) {}

  Trainer& trainer() override { return trainer_; }

  Batch batch(uint64_t step) override {
    play(step);
    return {{"states", states_}, {"actions", actions_}, {"rewards", rewards_}};
  }

  Metrics measure() override {
    const size_t window = std::min<size_t>(lengths_.size(), 5);
    return {{"mean_length", std::accumulate(lengths_.end() - static_cast<ptrdiff_t>(window), lengths_.end(), 0.0) /
                                static_cast<double>(std::max<size_t>(window, 1))}};
  }

  std::vector<Exhibit> exhibits() override {
    io::Series series{.name = "mean length", .x = {}, .y = lengths_};
    for (size_t i = 0; i < lengths_.size(); ++i) series.x.push_back(static_cast<double>(i + 1));
    return {{"lengths", io::plot({series}, {.title = "cartpole", .x_label = "round", .y_label = "steps", .log_y = false})}};
  }

 private:
  /// Sixteen games side by side with the policy as it is; fills states_, actions_ and rewards_, which are 0 after a game's end.
  void play(uint64_t round) {
    Random random(seed_, round);
    std::array<Cart, kGames> carts{};
    for (Cart& cart : carts) std::ranges::generate(cart.state, [&] { return random.uniform(-0.05, 0.05); });
    states_.assign(kSlots * 4, 0);
    actions_.assign(kSlots, 0);
    rewards_.assign(kSlots, 0);
    std::array<size_t, kGames> length{};
    std::vector<float> now(kGames * 4);
    for (size_t time = 0; time < kLongest && !std::ranges::all_of(carts, &Cart::fallen); ++time) {
      for (size_t game = 0; game < kGames; ++game) std::ranges::copy(carts[game].state, now.begin() + static_cast<ptrdiff_t>(4 * game));
      const ForwardResult chances = policy_.run({{"states", now}});
      for (size_t game = 0; game < kGames; ++game) {
        const bool right = random.uniform() < chances.output.floats()[2 * game + 1];
        if (carts[game].fallen) continue;
        const size_t slot = game * kLongest + time;
        std::ranges::copy(carts[game].state, states_.begin() + static_cast<ptrdiff_t>(4 * slot));
        actions_[slot] = right ? 1 : 0;
        length[game] = time + 1;
        carts[game].push(right);
      }
    }
    lengths_.push_back(std::accumulate(length.begin(), length.end(), 0.0) / kGames);
    normalise(length);
  }

  /// What was still to come, discounted, with mean 0 and deviation 1 over all steps that were played.
  void normalise(const std::array<size_t, kGames>& length) {
    double count = 0, sum = 0, squares = 0;
    for (size_t game = 0; game < kGames; ++game) {
      double to_come = 0;
      for (size_t time = length[game]; time-- > 0;) {
        to_come = 1 + kDiscount * to_come;
        rewards_[game * kLongest + time] = static_cast<float>(to_come);
        count += 1;
        sum += to_come;
        squares += to_come * to_come;
      }
    }
    const double mean = sum / count, deviation = std::sqrt(std::max(0.0, squares / count - mean * mean)) + 1e-8;
    for (size_t game = 0; game < kGames; ++game) {
      for (size_t time = 0; time < length[game]; ++time) {
        float& reward = rewards_[game * kLongest + time];
        reward = static_cast<float>((reward - mean) / deviation);
      }
    }
  }

  uint64_t seed_;
  ModelTrainer<Policy> trainer_;
  Forward policy_;
  std::vector<float> states_, rewards_;
  std::vector<int32_t> actions_;
  std::vector<double> lengths_;  ///< mean over the games of each round
};

}  // namespace

Recipe cartpole() {
  return {.name = "cartpole",
          .summary = "a policy learns to balance a pole",
          .steps = 120,
          .report_every = 10,
          .measure_every = 10,
          .chunk = 1,
          .goal = {"mean_length", Goal::Kind::AtLeast, 190, 120},
          .make = make_experiment<Cartpole>};
}

}  // namespace lockstep::examples
