// SPDX-License-Identifier: Apache-2.0
// Time and planned memory of a training step of a small residual network (64 images of 3 x 32 x 32, a stem and three blocks of 64, 128 and
// 256 channels, Adam) or of ResNet-50 (32 images of 3 x 224 x 224, 1000 classes; He et al. 2016).
// usage: bench_resnet [--short] [--fifty] [--profile] [DEVICE...]   prints one line per device and precision, of a short one on CPUs, and
// on request where the time goes; peer_resnet.py [--fifty] is the same in PyTorch.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include "backends/backend.h"
#include "bench/training_step.h"
#include "frontend/lockstep.h"

namespace {

struct Size {
  int64_t batch, image, classes;
  bool is_fifty;
};
constexpr Size kSmall{64, 32, 10, false}, kFifty{32, 224, 1000, true}, kShort{4, 16, 10, false};

/// A convolution without offset, and a norm over the batch.
struct Normed : ls::Module {
  Normed(ls::Module& parent, std::string name, int64_t in, int64_t out, int64_t kernel, int64_t stride = 1)
      : Module(parent, std::move(name)),
        conv(*this, "conv", in, out, kernel, {.stride = stride, .padding = kernel / 2, .bias = false, .init = ls::init::kaiming_normal()}),
        norm(*this, "norm", out) {}
  ls::Tensor operator()(ls::Tensor x) const { return norm(conv(x)); }
  ls::nn::Conv2d conv;
  ls::nn::BatchNorm norm;
};

/// Two convolutions of 3 x 3, or one between two of 1 x 1, beside the image itself, which a convolution of 1 x 1 fits to the result.
struct Residual : ls::Module {
  Residual(ls::Module& parent, std::string name, int64_t in, int64_t width, int64_t out, int64_t stride, bool is_narrow)
      : Module(parent, std::move(name)) {
    if (is_narrow) {
      path.push_back(std::make_unique<Normed>(*this, "in", in, width, 1));
      path.push_back(std::make_unique<Normed>(*this, "mid", width, width, 3, stride));
      path.push_back(std::make_unique<Normed>(*this, "out", width, out, 1));
    } else {
      path.push_back(std::make_unique<Normed>(*this, "in", in, width, 3, stride));
      path.push_back(std::make_unique<Normed>(*this, "out", width, out, 3));
    }
    if (in != out || stride != 1) shortcut = std::make_unique<Normed>(*this, "shortcut", in, out, 1, stride);
  }
  ls::Tensor operator()(ls::Tensor x) const {
    ls::Tensor y = x;
    for (const auto& each : path) y = &each == &path.back() ? (*each)(y) : ls::relu((*each)(y));
    return ls::relu(y + (shortcut ? (*shortcut)(x) : x));
  }
  std::vector<std::unique_ptr<Normed>> path;
  std::unique_ptr<Normed> shortcut;
};

struct ResNet : ls::Module {
  explicit ResNet(const Size& s) : size(s), stem(*this, "stem", 3, 64, s.is_fifty ? 7 : 3, s.is_fifty ? 2 : 1) {
    int64_t in = 64;
    const auto add = [&](int64_t width, int64_t out, int64_t stride) {
      blocks.push_back(std::make_unique<Residual>(*this, fmt::format("block{}", blocks.size()), in, width, out, stride, s.is_fifty));
      in = out;
    };
    if (s.is_fifty) {
      const std::array<int64_t, 4> depths{3, 4, 6, 3};
      for (size_t stage = 0; stage < depths.size(); ++stage)
        for (int64_t i = 0; i < depths[stage]; ++i) add(int64_t{64} << stage, int64_t{256} << stage, i == 0 && stage > 0 ? 2 : 1);
    } else {
      for (const int64_t width : {64, 128, 256}) add(width, width, width == 64 ? 1 : 2);
    }
    classes = std::make_unique<ls::nn::Linear>(*this, "classes", in, s.classes);
  }
  ls::Tensor operator()(ls::Tensor x) const {
    x = ls::relu(stem(x));
    if (size.is_fifty) x = ls::max_pool2d(x, 3, {.stride = 2, .padding = 1});
    for (const auto& block : blocks) x = (*block)(x);
    return (*classes)(ls::flatten(ls::global_avg_pool2d(x), 1));
  }
  Size size;
  Normed stem;
  std::vector<std::unique_ptr<Residual>> blocks;
  std::unique_ptr<ls::nn::Linear> classes;
};

void report(const Size& size, const std::string& device, ls::Precision precision, bool with_profile) {
  ls::CompileSpec<ResNet> spec;
  spec.inputs = {{"x", ls::f32(size.batch, 3, size.image, size.image)}, {"y", ls::i32(size.batch)}};
  spec.loss = [](const ResNet& model, const ls::Inputs& in) { return ls::cross_entropy(model(in["x"]), in["y"]); };
  spec.optimizer = ls::adam({.lr = 1e-3});
  spec.precision = precision;
  spec.seed = 1;
  spec.device = device;
  spec.make = [size] { return std::make_unique<ResNet>(size); };
  ls::Trainer trainer = ls::compile(std::move(spec));
  ls::Random random(1, 2);
  std::vector<float> x(static_cast<size_t>(size.batch * 3 * size.image * size.image));
  std::vector<int32_t> y(static_cast<size_t>(size.batch));
  std::ranges::generate(x, [&] { return static_cast<float>(random.uniform(-1, 1)); });
  std::ranges::generate(y, [&] { return static_cast<int32_t>(random.uniform(0, static_cast<double>(size.classes))); });
  const auto batch = [&](size_t) { return ls::Batch{{"x", x}, {"y", y}}; };
  bench::reportStep(trainer, device, precision, batch, 5, with_profile);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> devices(arguments + 1, arguments + count);
  const bool is_short = std::erase(devices, "--short") > 0;
  const bool is_fifty = std::erase(devices, "--fifty") > 0;
  const bool with_profile = std::erase(devices, "--profile") > 0;
  if (devices.empty()) devices = {"auto"};
  try {
    for (const std::string& device : devices) {
      const bool is_cpu = lockstep::chooseDevice(device).orThrow().info.profile.style == lockstep::program::ExecutionStyle::Cpu;
      const Size& size = is_short || is_cpu ? kShort : is_fifty ? kFifty : kSmall;
      for (const ls::Precision& precision : {ls::Precision{}, ls::mixed(ls::bf16)}) report(size, device, precision, with_profile);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
