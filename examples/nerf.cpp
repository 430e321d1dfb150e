// SPDX-License-Identifier: Apache-2.0
// A picture as a function of position: a network of 10 627 numbers learns 64 x 64 pixels from random samples of them.
#include <algorithm>
#include <array>
#include <cmath>

#include "examples/models/samples.h"
#include "examples/recipes.h"
#include "frontend/data/random.h"
#include "frontend/io/plot.h"

namespace lockstep::examples {
namespace {

constexpr int kSide = 64;
constexpr size_t kPixels = kSide * kSide, kBatch = 1024;

/// A radial gradient from orange to slate with our name on it.
io::Image picture() {
  constexpr std::array<double, 3> kInner{249, 115, 22}, kOuter{30, 41, 59};
  io::Image image(kSide, kSide, {0, 0, 0});
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const double share = std::clamp((std::hypot(x + 0.5 - kSide / 2.0, y + 0.5 - kSide / 2.0) - 4) / (0.7 * kSide - 4), 0.0, 1.0);
      io::Color color{};
      for (size_t c = 0; c < 3; ++c) color[c] = static_cast<uint8_t>(std::lround(kInner[c] + share * (kOuter[c] - kInner[c])));
      image.set(x, y, color);
    }
  }
  io::drawText(image, (kSide - io::textWidth("LOCK", 2)) / 2, 14, "LOCK", {255, 255, 255}, 2);
  io::drawText(image, (kSide - io::textWidth("STEP", 2)) / 2, 36, "STEP", {255, 255, 255}, 2);
  return image;
}

/// Of the centre of a pixel, in [-1, 1].
float coordinate(size_t index) { return static_cast<float>((2.0 * static_cast<double>(index) + 1) / kSide - 1); }

class NerfExperiment : public Experiment {
 public:
  explicit NerfExperiment(const ExperimentOptions& options)
      : seed_(options.seed),
        trainer_(compile(options.with(nerfSpec()))),
        whole_(trainer_.attach({.inputs = {{"coordinates", f32(kPixels, 2)}},
                                .forward = [](const Nerf& model, const Inputs& in) { return model(in["coordinates"]); }})),
        target_(picture()) {}

  Trainer& trainer() override { return trainer_; }

  Batch batch(uint64_t step) override {
    Random random(seed_, step);
    coordinates_.clear();
    colours_.clear();
    for (size_t i = 0; i < kBatch; ++i) addPixel(random.below(kPixels));
    return {{"coordinates", coordinates_}, {"colours", colours_}};
  }

  Metrics measure() override {
    const std::vector<double> got = render();
    double error = 0;
    for (size_t i = 0; i < got.size(); ++i) error += std::pow(got[i] - colours_[i], 2) / static_cast<double>(got.size());
    return {{"mse", error}, {"psnr_db", -10 * std::log10(error)}};
  }

  std::vector<Exhibit> exhibits() override {
    constexpr int kScale = 4;
    const std::vector<double> got = render();
    io::Image image((2 * kSide + 1) * kScale, kSide * kScale, {255, 255, 255});
    for (int i = 0; i < static_cast<int>(kPixels); ++i) {
      io::Color color{};
      for (size_t c = 0; c < 3; ++c) color[c] = static_cast<uint8_t>(std::lround(255 * got[3 * static_cast<size_t>(i) + c]));
      const int x = i % kSide, y = i / kSide;
      image.fillRectangle(x * kScale, y * kScale, kScale, kScale, target_.at(x, y));
      image.fillRectangle((kSide + 1 + x) * kScale, y * kScale, kScale, kScale, color);
    }
    return {{"wanted-and-learned", std::move(image)}};
  }

 private:
  void addPixel(size_t pixel) {
    const size_t x = pixel % kSide, y = pixel / kSide;
    coordinates_.insert(coordinates_.end(), {coordinate(x), coordinate(y)});
    for (const uint8_t part : target_.at(static_cast<int>(x), static_cast<int>(y))) colours_.push_back(static_cast<float>(part) / 255);
  }

  /// All pixels; their wanted colours are left in colours_.
  std::vector<double> render() {
    coordinates_.clear();
    colours_.clear();
    for (size_t pixel = 0; pixel < kPixels; ++pixel) addPixel(pixel);
    return whole_.run({{"coordinates", coordinates_}}).output.doubles();
  }

  uint64_t seed_;
  ModelTrainer<Nerf> trainer_;
  Forward whole_;
  io::Image target_;
  std::vector<float> coordinates_, colours_;
};

}  // namespace

Recipe nerf() {
  return {.name = "nerf",
          .alias = "nerf-tiny",
          .summary = "a network learns a picture as a function of position",
          .steps = 1500,
          .report_every = 100,
          .measure_every = 500,
          .chunk = 20,
          .goal = {"loss", Goal::Kind::AtMost, 1e-3, 1000},
          .make = make_experiment<NerfExperiment>};
}

}  // namespace lockstep::examples
