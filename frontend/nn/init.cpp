// SPDX-License-Identifier: Apache-2.0
#include "frontend/nn/init.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "frontend/trace/throw_error.h"

namespace lockstep {

namespace {

using detail::rejectAt;

double checked(std::string_view what, double value, const Where& where) {
  if (!std::isfinite(value) || value < 0) {
    rejectAt(where, "init.number", fmt::format("{} is {}, but must be finite and not negative", what, value),
             "give a finite number of 0 or more");
  }
  return value;
}

Initializer make(Initializer::Kind kind, double scale, Initializer::Fan fan = Initializer::Fan::None) {
  Initializer made;
  made.kind = kind;
  made.scale = scale;
  made.fan = fan;
  return made;
}

Initializer between(Initializer::Kind kind, double low, double high, const Where& where) {
  if (!std::isfinite(low) || !std::isfinite(high) || !(low < high))
    rejectAt(where, "init.range", fmt::format("{} to {} is not a range", low, high), "give two finite numbers, the smaller one first");
  if (kind != Initializer::Kind::Uniform && low <= 0)
    rejectAt(where, "init.range", fmt::format("{} to {} has no logarithms", low, high), "give positive numbers");
  Initializer made = make(kind, 1);
  made.low = low;
  made.high = high;
  return made;
}

}  // namespace

namespace init {

using Kind = Initializer::Kind;
using Fan = Initializer::Fan;

Initializer randn(double scale, Where where) { return make(Kind::Normal, checked("scale", scale, where)); }
Initializer truncated_normal(double scale, double limit, Where where) {
  Initializer made = make(Kind::TruncatedNormal, checked("scale", scale, where));
  if (!(limit >= 0.1))
    rejectAt(where, "init.range", fmt::format("the limit is {}, but must be at least 0.1", limit),
             "give the standard deviations beyond which a value is drawn again, 2 for example");
  made.low = -limit;
  made.high = limit;
  return made;
}
Initializer uniform(double low, double high, Where where) { return between(Kind::Uniform, low, high, where); }
Initializer log_of_uniform(double low, double high, Where where) { return between(Kind::LogOfUniform, low, high, where); }
Initializer before_softplus(double low, double high, Where where) { return between(Kind::BeforeSoftplus, low, high, where); }
Initializer constant(double value, Where where) {
  if (!std::isfinite(value)) rejectAt(where, "init.number", fmt::format("the constant is {}", value), "give a finite number");
  return make(Kind::Constant, value);
}
Initializer zeros() { return constant(0); }
Initializer ones() { return constant(1); }
Initializer kaiming_normal(double gain, Where where) { return make(Kind::Normal, checked("gain", gain, where), Fan::In); }
// A uniform number in (-1, 1) has the variance 1/3.
Initializer kaiming_uniform(double gain, Where where) {
  return make(Kind::Uniform, checked("gain", gain, where) * std::sqrt(3.0), Fan::In);
}
Initializer xavier_normal(double gain, Where where) { return make(Kind::Normal, checked("gain", gain, where), Fan::Mean); }
Initializer xavier_uniform(double gain, Where where) {
  return make(Kind::Uniform, checked("gain", gain, where) * std::sqrt(3.0), Fan::Mean);
}
Initializer orthogonal(double gain, Where where) { return make(Kind::Orthogonal, checked("gain", gain, where)); }
Initializer literal(std::vector<float> values) {
  Initializer made = make(Kind::Literal, 1);
  made.literal = std::move(values);
  return made;
}

}  // namespace init

bool decaysByDefault(const Initializer& initializer) { return initializer.kind != Initializer::Kind::Constant; }

namespace random {

namespace {

std::array<uint32_t, 4> words(uint64_t seed, uint32_t stream, uint64_t element, uint32_t attempt) {
  return philox::words({static_cast<uint32_t>(element), static_cast<uint32_t>(element >> 32), stream, attempt},
                       {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}
/// 53 random bits.
double bits(uint32_t high, uint32_t low) { return static_cast<double>((uint64_t{high} << 21) ^ (low >> 11)); }

}  // namespace

double normal(uint64_t seed, uint32_t stream, uint64_t element, uint32_t attempt) {
  std::array<uint32_t, 4> drawn = words(seed, stream, element, attempt);
  // The first one in (0, 1], so that its logarithm is finite.
  double u1 = (bits(drawn[0], drawn[1]) + 1) * 0x1p-53, u2 = bits(drawn[2], drawn[3]) * 0x1p-53;
  return std::sqrt(-2 * std::log(u1)) * std::cos(2 * std::numbers::pi * u2);
}

double uniform(uint64_t seed, uint32_t stream, uint64_t element) {
  std::array<uint32_t, 4> drawn = words(seed, stream, element, 0);
  return bits(drawn[0], drawn[1]) * 0x1p-53;
}

}  // namespace random

namespace {

double fanScale(Initializer::Fan fan, Fans fans) {
  switch (fan) {
    case Initializer::Fan::None:
      return 1;
    case Initializer::Fan::In:
      return 1 / std::sqrt(static_cast<double>(fans.in));
    case Initializer::Fan::Mean:
      return 1 / std::sqrt(static_cast<double>(fans.in + fans.out) / 2);
  }
  internalError("unknown fan");
}

/// Row r of `width` random normal numbers for each r, made orthonormal one after another (Gram and Schmidt; twice, which is enough for full
/// accuracy).
std::vector<double> orthonormalRows(size_t rows, size_t width, uint64_t seed, uint32_t index) {
  std::vector<double> q(rows * width);
  for (size_t i = 0; i < q.size(); ++i) q[i] = random::normal(seed, index, i);
  for (size_t r = 0; r < rows; ++r) {
    double* row = &q[r * width];
    for (int pass = 0; pass < 2; ++pass) {
      for (size_t before = 0; before < r; ++before) {
        double dot = 0;
        for (size_t i = 0; i < width; ++i) dot += row[i] * q[before * width + i];
        for (size_t i = 0; i < width; ++i) row[i] -= dot * q[before * width + i];
      }
    }
    double squares = 0;
    for (size_t i = 0; i < width; ++i) squares += row[i] * row[i];
    for (size_t i = 0; i < width; ++i) row[i] /= std::sqrt(squares);
  }
  return q;
}

std::vector<float> orthogonalValues(double gain, const graph::Shape& shape, uint64_t seed, uint32_t index) {
  auto count = static_cast<size_t>(shape.elementCount()), height = static_cast<size_t>(shape.extent(0)), width = count / height;
  bool flat = height <= width;
  std::vector<double> q = orthonormalRows(std::min(height, width), std::max(height, width), seed, index);
  std::vector<float> values(count);
  for (size_t r = 0; r < height; ++r) {
    for (size_t c = 0; c < width; ++c) values[r * width + c] = static_cast<float>(gain * (flat ? q[r * width + c] : q[c * height + r]));
  }
  return values;
}

}  // namespace

std::vector<float> initialValues(const Initializer& initializer, const graph::Shape& shape, Fans fans, uint64_t seed, uint32_t index) {
  size_t count = static_cast<size_t>(shape.elementCount());
  double scale = initializer.scale * fanScale(initializer.fan, fans);
  auto each = [&](const std::function<double(uint64_t)>& draw) {
    std::vector<float> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(scale * draw(i));
    return values;
  };
  switch (initializer.kind) {
    case Initializer::Kind::Normal:
      return each([&](uint64_t i) { return random::normal(seed, index, i); });
    case Initializer::Kind::TruncatedNormal:
      return each([&](uint64_t i) {
        for (uint32_t attempt = 0;; ++attempt) {
          double x = random::normal(seed, index, i, attempt);
          if (x >= initializer.low && x <= initializer.high) return x;
        }
      });
    case Initializer::Kind::Uniform:
      return each([&](uint64_t i) { return initializer.low + (initializer.high - initializer.low) * random::uniform(seed, index, i); });
    case Initializer::Kind::LogOfUniform:
      return each(
          [&](uint64_t i) { return std::log(initializer.low + (initializer.high - initializer.low) * random::uniform(seed, index, i)); });
    case Initializer::Kind::BeforeSoftplus:
      return each([&](uint64_t i) {
        const double logs = std::log(initializer.high / initializer.low),
                     step = initializer.low * std::exp(logs * random::uniform(seed, index, i));
        return step + std::log(-std::expm1(-step));  // log(e^step - 1), which does not overflow
      });
    case Initializer::Kind::Constant:
      return each([](uint64_t) { return 1.0; });
    case Initializer::Kind::Orthogonal:
      return orthogonalValues(scale, shape, seed, index);
    case Initializer::Kind::Literal:
      return initializer.literal;
  }
  internalError("unknown initializer");
}

}  // namespace lockstep
