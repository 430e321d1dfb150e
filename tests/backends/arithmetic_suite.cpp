// SPDX-License-Identifier: Apache-2.0
// Every operator and builtin over edge values, against scalar C++ that shares nothing with any backend.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "tests/backends/conformance.h"

namespace lockstep::conformance {
namespace {

using kernel::Builder;
using kernel::Op;
using kernel::Scalar;
using Args = std::array<uint32_t, 4>;

double f(uint32_t bits) { return static_cast<double>(floatOf(bits)); }
int32_t s(uint32_t bits) { return static_cast<int32_t>(bits); }
uint32_t u(int64_t value) { return static_cast<uint32_t>(value); }
uint32_t b(bool value) { return value ? 1 : 0; }
uint32_t F(double value) { return bitsOf(static_cast<float>(value)); }
float g(uint32_t bits) { return floatOf(bits); }

const Words kIntegers{0,          1,          2,          3,          5,          7,          31,         32,         33,
                      100,        255,        65535,      65536,      1000003,    0x7ffffffe, 0x7fffffff, 0x80000000, 0x80000001,
                      0xfffffffe, 0xffffffff, 0xfffffff9, 0xffff0000, 0x55555555, 0xaaaaaaaa, 0x00ff00ff, 0xdeadbeef};
const Words kBits{0, 1, 7, 16, 31, 32, 33, 0xffffffff};
const Words kBools{0, 1};

Words floats() {
  Words words = wordsOf({0.0f,        -0.0f,         1.0f,          -1.0f,          0.5f,   -0.5f,    1.5f,        2.5f,
                         -2.5f,       3.5f,          0.25f,         0.1f,           -0.3f,  3.14159f, -7.0f,       10.0f,
                         100.25f,     -1000.5f,      1e-3f,         -1e-6f,         1e10f,  -1e20f,   8388607.5f,  8388609.0f,
                         16777216.0f, 2147483648.0f, 4294967040.0f, -2147483904.0f, 1e-30f, 3e38f,    0.99999994f, 1.0000001f,
                         0.70710677f, 20.0f,         -20.0f,        88.0f,          -87.0f, 0.02f,    1e5f,        123456.7f});
  // Subnormals, infinities, NaN: compared on exact backends only.
  for (uint32_t bits : {0x00000001u, 0x80000001u, 0x007fffffu, 0x00800000u, 0x7f800000u, 0xff800000u, 0x7fc00000u}) words.push_back(bits);
  return words;
}

struct OpCase {
  Op op;
  Scalar type;                      ///< of the first operand
  std::vector<const Words*> extra;  ///< values of the further operands (empty entry count = unary)
  std::vector<Scalar> extra_types;
  Scalar result;
  std::function<uint32_t(const Args&)> exact;  ///< the result's bits (bools as 0 or 1), or
  std::function<double(const Args&)> real;     ///< the real result, with
  std::function<double(const Args&)> bound{};  ///< WGSL's absolute error bound for it
  /// On backends that are not exact: whether a result is one of several that WGSL admits.
  std::function<bool(const Args&, uint32_t)> admits{};
};

double ulp(double x) {
  float value = std::max(std::abs(static_cast<float>(x)), std::numeric_limits<float>::min());
  if (!std::isfinite(value)) return std::numeric_limits<double>::infinity();
  return static_cast<double>(std::nextafter(value, std::numeric_limits<float>::infinity())) - static_cast<double>(value);
}

std::string nameOf(const OpCase& c) { return fmt::format("{}.{}", kernel::info(c.op).text, kernel::toString(c.type)); }

/// out[i] = op(in0[i], in1[i], ...); bools go through u32.
kernel::Module moduleOf(const OpCase& c, uint32_t count) {
  Builder builder;
  auto buffer = [&](const std::string& name, Scalar scalar, uint32_t binding, bool written) {
    scalar = scalar == Scalar::Bool ? Scalar::U32 : scalar;
    return builder.global({.name = name,
                           .value = {},
                           .type = builder.types().array(builder.types().scalar(scalar), 0),
                           .space = kernel::AddressSpace::Storage,
                           .access = written ? kernel::Access::ReadWrite : kernel::Access::Read,
                           .group = 0,
                           .binding = binding,
                           .initializer = {}});
  };
  std::vector<Scalar> types{c.type};
  types.insert(types.end(), c.extra_types.begin(), c.extra_types.end());
  kernel::ValueId out = buffer("out", c.result, 0, true);
  std::vector<kernel::ValueId> in;
  for (uint32_t k = 0; k < types.size(); ++k) in.push_back(buffer(fmt::format("in{}", k), types[k], k + 1, false));
  kernel::FunctionId main = builder.function("main", builder.types().voidType());
  kernel::ValueId gid = builder.parameter(main, "gid", builder.types().vector(Scalar::U32, 3), kernel::Builtin::GlobalInvocationId);
  builder.setWorkgroupSize(main, {64, 1, 1});
  builder.enterFunction(main);
  builder.setFloatMode(kernel::FloatMode::Strict);
  kernel::ValueId i = builder.extract(gid, 0);
  builder.ifThen(builder.make(Op::Lt, {i, builder.u32(count)}), [&] {
    std::vector<kernel::ValueId> operands;
    for (size_t k = 0; k < types.size(); ++k) {
      kernel::ValueId value = builder.load(builder.access(in[k], {i}));
      if (types[k] == Scalar::Bool) value = builder.convert(builder.types().boolean(), value);
      operands.push_back(value);
    }
    kernel::TypeId type = builder.types().scalar(c.result);
    kernel::ValueId result = builder.makeAs(c.op, type, operands);
    if (c.result == Scalar::Bool) result = builder.convert(builder.types().u32(), result);
    builder.store(builder.access(out, {i}), result);
  });
  return builder.take();
}

bool isSpecial(uint32_t bits) {
  uint32_t magnitude = bits & 0x7fffffffu;
  return magnitude >= 0x7f800000u || (magnitude != 0 && magnitude < 0x00800000u);
}

using Run = std::function<std::vector<Words>(const kernel::Module&, const std::vector<Words>&, std::array<uint32_t, 3>)>;

/// Runs a case and compares every result.
class Checker {
 public:
  Checker(Run run, bool exact) : run_(std::move(run)), exact_(exact) {}

  void operator()(const OpCase& c) const {
    Words firsts = c.type == Scalar::F32 ? floats() : c.type == Scalar::Bool ? kBools : kIntegers;
    std::vector<Args> cases;
    auto fill = [&](auto& self, Args args, size_t k) -> void {
      if (k == c.extra.size()) {
        cases.push_back(args);
        return;
      }
      for (uint32_t value : *c.extra[k]) {
        args[k + 1] = value;
        self(self, args, k + 1);
      }
    };
    for (uint32_t first : firsts) fill(fill, {first, 0, 0, 0}, 0);
    std::vector<Words> buffers(2 + c.extra.size(), Words(cases.size()));
    for (size_t k = 0; k < cases.size(); ++k)
      for (size_t operand = 0; operand + 1 < buffers.size(); ++operand) buffers[operand + 1][k] = cases[k][operand];
    uint32_t groups = static_cast<uint32_t>(cases.size() + 63) / 64;
    std::vector<Words> out = run_(moduleOf(c, static_cast<uint32_t>(cases.size())), buffers, {groups, 1, 1});
    if (testing::Test::HasFailure()) return;
    for (size_t k = 0; k < cases.size(); ++k) compare(c, cases[k], out[0][k]);
  }

  [[nodiscard]] bool exact() const { return exact_; }

 private:
  void compare(const OpCase& c, const Args& args, uint32_t got) const {
    bool exact = exact_, is_float = c.result == Scalar::F32;
    bool special = c.type == Scalar::F32 && isSpecial(args[0]);
    for (size_t k = 0; k < c.extra_types.size(); ++k) special = special || (c.extra_types[k] == Scalar::F32 && isSpecial(args[k + 1]));
    if (special && !exact) return;
    std::string what = fmt::format("{}({:#x} {:#x} {:#x})", nameOf(c), args[0], args[1], args[2]);
    if (c.admits && !exact) {
      EXPECT_TRUE(c.admits(args, got)) << what << " = " << floatOf(got);
      return;
    }
    if (c.real) {
      double wanted = c.real(args);
      float rounded = static_cast<float>(wanted);
      if (std::isnan(wanted) || std::isinf(rounded) || isSpecial(bitsOf(rounded))) {
        if (!exact) return;
        if (std::isnan(wanted)) {
          EXPECT_TRUE(std::isnan(floatOf(got))) << what << " = " << floatOf(got);
        } else if (std::isinf(rounded)) {
          EXPECT_EQ(got, bitsOf(rounded)) << what;
        } else {
          EXPECT_NEAR(floatOf(got), wanted, 1.5e-45) << what;
        }
        return;
      }
      double allowed = exact ? 0.75 * ulp(wanted) : c.bound ? c.bound(args) : 2.5 * ulp(wanted);
      EXPECT_LE(std::abs(f(got) - wanted), allowed) << what << " = " << floatOf(got) << ", wanted " << wanted;
      return;
    }
    uint32_t wanted = c.exact(args);
    if (!is_float) {
      EXPECT_EQ(got, wanted) << what;
      return;
    }
    if (!exact && isSpecial(wanted)) return;
    if (std::isnan(floatOf(wanted))) {
      EXPECT_TRUE(std::isnan(floatOf(got))) << what << " = " << floatOf(got);
    } else if (exact) {
      EXPECT_EQ(got, wanted) << what << " = " << floatOf(got) << ", wanted " << floatOf(wanted);
    } else {
      EXPECT_EQ(floatOf(got), floatOf(wanted)) << what;
    }
  }

  Run run_;
  bool exact_;
};

OpCase unary(Op op, Scalar type, std::function<uint32_t(const Args&)> exact, Scalar result) {
  return {op, type, {}, {}, result, std::move(exact), {}};
}
OpCase binary(Op op, Scalar type, std::function<uint32_t(const Args&)> exact, Scalar result) {
  static const Words kFloats = floats();
  const Words* second = type == Scalar::F32 ? &kFloats : type == Scalar::Bool ? &kBools : &kIntegers;
  return {op, type, {second}, {type}, result, std::move(exact), {}};
}
OpCase realUnary(Op op, const std::function<double(double)>& real, const std::function<double(double)>& bound) {
  return {op,
          Scalar::F32,
          {},
          {},
          Scalar::F32,
          {},
          [real](const Args& a) { return real(f(a[0])); },
          [bound](const Args& a) { return bound(f(a[0])); }};
}

uint32_t divide(int64_t a, int64_t d) { return u(d == 0 || (a == INT32_MIN && d == -1) ? a : a / d); }
uint32_t remainder(int64_t a, int64_t d) { return u(d == 0 || (a == INT32_MIN && d == -1) ? 0 : a % d); }

TEST_P(Conformance, arithmetic_integers) {
  Checker check([this](const auto& m, const auto& in, auto groups) { return run(m, in, groups); }, GetParam().exact);
  constexpr Scalar I = Scalar::I32, U = Scalar::U32;
  for (Scalar t : {I, U}) {
    check(binary(Op::Add, t, [](const Args& a) { return a[0] + a[1]; }, t));
    check(binary(Op::Sub, t, [](const Args& a) { return a[0] - a[1]; }, t));
    check(binary(Op::Mul, t, [](const Args& a) { return u(int64_t(s(a[0])) * s(a[1])); }, t));
    check(binary(Op::And, t, [](const Args& a) { return a[0] & a[1]; }, t));
    check(binary(Op::Or, t, [](const Args& a) { return a[0] | a[1]; }, t));
    check(binary(Op::Xor, t, [](const Args& a) { return a[0] ^ a[1]; }, t));
    check(unary(Op::Complement, t, [](const Args& a) { return ~a[0]; }, t));
    check({Op::Shl, t, {&kBits}, {U}, t, [](const Args& a) { return u(int64_t(a[0]) << (a[1] % 32)); }, {}});
  }
  check(unary(Op::Neg, I, [](const Args& a) { return u(-int64_t(s(a[0]))); }, I));
  check(unary(Op::Abs, I, [](const Args& a) { return u(std::abs(int64_t(s(a[0])))); }, I));
  check(unary(Op::Abs, U, [](const Args& a) { return a[0]; }, U));
  check(unary(Op::Sign, I, [](const Args& a) { return u(s(a[0]) > 0 ? 1 : s(a[0]) < 0 ? -1 : 0); }, I));
  check(binary(Op::Div, I, [](const Args& a) { return divide(s(a[0]), s(a[1])); }, I));
  check(binary(Op::Div, U, [](const Args& a) { return divide(a[0], a[1]); }, U));
  check(binary(Op::Rem, I, [](const Args& a) { return remainder(s(a[0]), s(a[1])); }, I));
  check(binary(Op::Rem, U, [](const Args& a) { return remainder(a[0], a[1]); }, U));
  check({Op::Shr, I, {&kBits}, {U}, I, [](const Args& a) { return u(int64_t(s(a[0])) >> (a[1] % 32)); }, {}});
  check({Op::Shr, U, {&kBits}, {U}, U, [](const Args& a) { return u(int64_t(a[0]) >> (a[1] % 32)); }, {}});
  check(binary(Op::Min, I, [](const Args& a) { return u(std::min(s(a[0]), s(a[1]))); }, I));
  check(binary(Op::Max, I, [](const Args& a) { return u(std::max(s(a[0]), s(a[1]))); }, I));
  check(binary(Op::Min, U, [](const Args& a) { return std::min(a[0], a[1]); }, U));
  check(binary(Op::Max, U, [](const Args& a) { return std::max(a[0], a[1]); }, U));
  check(
      {Op::Clamp, I, {&kBits, &kIntegers}, {I, I}, I, [](const Args& a) { return u(std::min(std::max(s(a[0]), s(a[1])), s(a[2]))); }, {}});
  check({Op::Clamp, U, {&kBits, &kIntegers}, {U, U}, U, [](const Args& a) { return std::min(std::max(a[0], a[1]), a[2]); }, {}});
}

TEST_P(Conformance, arithmetic_integer_bits) {
  Checker check([this](const auto& m, const auto& in, auto groups) { return run(m, in, groups); }, GetParam().exact);
  constexpr Scalar U = Scalar::U32;
  auto top = [](uint32_t x) {
    uint32_t bit = ~0u;
    for (uint32_t k = 0; k < 32; ++k)
      if ((x >> k & 1u) != 0) bit = k;
    return bit;
  };
  auto bottom = [](uint32_t x) {
    for (uint32_t k = 0; k < 32; ++k)
      if ((x >> k & 1u) != 0) return k;
    return ~0u;
  };
  for (Scalar t : {Scalar::I32, U}) {
    bool is_signed = t == Scalar::I32;
    check(unary(Op::CountOneBits, t, [](const Args& a) { return static_cast<uint32_t>(std::popcount(a[0])); }, t));
    check(unary(Op::CountLeadingZeros, t, [](const Args& a) { return static_cast<uint32_t>(std::countl_zero(a[0])); }, t));
    check(unary(Op::CountTrailingZeros, t, [](const Args& a) { return static_cast<uint32_t>(std::countr_zero(a[0])); }, t));
    check(unary(Op::FirstTrailingBit, t, [=](const Args& a) { return bottom(a[0]); }, t));
    check(unary(Op::FirstLeadingBit, t, [=](const Args& a) { return top(is_signed && s(a[0]) < 0 ? ~a[0] : a[0]); }, t));
    check(unary(
        Op::ReverseBits, t,
        [](const Args& a) {
          uint32_t out = 0;
          for (uint32_t k = 0; k < 32; ++k) out |= (a[0] >> k & 1u) << (31 - k);
          return out;
        },
        t));
    check({Op::ExtractBits,
           t,
           {&kBits, &kBits},
           {U, U},
           t,
           [=](const Args& a) {
             uint64_t o = std::min(a[1], 32u), c = std::min<uint64_t>(a[2], 32 - o);
             if (c == 0) return 0u;
             uint64_t value = (uint64_t(a[0]) >> o) & ((uint64_t(1) << c) - 1);
             bool negative = is_signed && (value >> (c - 1) & 1u) != 0;
             return static_cast<uint32_t>(negative ? value | ~((uint64_t(1) << c) - 1) : value);
           },
           {}});
    check({Op::InsertBits,
           t,
           {&kIntegers, &kBits, &kBits},
           {t, U, U},
           t,
           [](const Args& a) {
             uint64_t o = std::min(a[2], 32u), c = std::min<uint64_t>(a[3], 32 - o);
             uint64_t mask = ((uint64_t(1) << c) - 1) << o;
             return static_cast<uint32_t>((a[0] & ~mask) | ((uint64_t(a[1]) << o) & mask));
           },
           {}});
  }
}

TEST_P(Conformance, dot_products_of_packed_integers) {
  Checker check([this](const auto& m, const auto& in, auto groups) { return run(m, in, groups); }, GetParam().exact);
  constexpr Scalar I = Scalar::I32, U = Scalar::U32;
  const auto sum = [](const Args& a, auto byteOf) {
    uint32_t made = 0;
    for (uint32_t bit = 0; bit < 32; bit += 8) made += static_cast<uint32_t>(byteOf(a[0] >> bit) * byteOf(a[1] >> bit));
    return made;
  };
  check({Op::Dot4I8Packed,
         U,
         {&kIntegers},
         {U},
         I,
         [=](const Args& a) { return sum(a, [](uint32_t word) { return int32_t{static_cast<int8_t>(word)}; }); },
         {}});
  check({Op::Dot4U8Packed, U, {&kIntegers}, {U}, U, [=](const Args& a) { return sum(a, [](uint32_t word) { return word & 255u; }); }, {}});
}

TEST_P(Conformance, arithmetic_comparisons_and_selection) {
  Checker check([this](const auto& m, const auto& in, auto groups) { return run(m, in, groups); }, GetParam().exact);
  constexpr Scalar B = Scalar::Bool, I = Scalar::I32, U = Scalar::U32, R = Scalar::F32;
  struct Row {
    Op op;
    std::function<bool(double, double)> compare;
  };
  const Row rows[] = {{Op::Eq, std::equal_to<>()},   {Op::Ne, std::not_equal_to<>()}, {Op::Lt, std::less<>()},
                      {Op::Le, std::less_equal<>()}, {Op::Gt, std::greater<>()},      {Op::Ge, std::greater_equal<>()}};
  for (const Row& row : rows) {
    auto compare = row.compare;
    check(binary(row.op, I, [=](const Args& a) { return b(compare(s(a[0]), s(a[1]))); }, B));
    check(binary(row.op, U, [=](const Args& a) { return b(compare(a[0], a[1])); }, B));
    check(binary(row.op, R, [=](const Args& a) { return b(compare(f(a[0]), f(a[1]))); }, B));
  }
  check(binary(Op::Eq, B, [](const Args& a) { return b(a[0] == a[1]); }, B));
  check(binary(Op::Ne, B, [](const Args& a) { return b(a[0] != a[1]); }, B));
  check(binary(Op::And, B, [](const Args& a) { return a[0] & a[1]; }, B));
  check(binary(Op::Or, B, [](const Args& a) { return a[0] | a[1]; }, B));
  check(unary(Op::Not, B, [](const Args& a) { return 1u - a[0]; }, B));
  check(unary(Op::All, B, [](const Args& a) { return a[0]; }, B));
  check(unary(Op::Any, B, [](const Args& a) { return a[0]; }, B));
  check({Op::Select, U, {&kIntegers, &kBools}, {U, B}, U, [](const Args& a) { return a[2] != 0 ? a[1] : a[0]; }, {}});
}

TEST_P(Conformance, arithmetic_exact_floats) {
  Checker check([this](const auto& m, const auto& in, auto groups) { return run(m, in, groups); }, GetParam().exact);
  constexpr Scalar R = Scalar::F32;
  check(binary(Op::Add, R, [](const Args& a) { return bitsOf(g(a[0]) + g(a[1])); }, R));
  check(binary(Op::Sub, R, [](const Args& a) { return bitsOf(g(a[0]) - g(a[1])); }, R));
  check(binary(
      Op::Mul, R,
      [exact = check.exact()](const Args& a) {
        // A product below the normal numbers may be flushed before it would round up to the smallest one; NaN is not compared then.
        double product = std::abs(f(a[0]) * f(a[1]));
        return !exact && product > 0 && product < 0x1p-126 ? 0x7fc00000u : bitsOf(g(a[0]) * g(a[1]));
      },
      R));
  check(unary(Op::Neg, R, [](const Args& a) { return a[0] ^ 0x80000000u; }, R));
  check(unary(Op::Abs, R, [](const Args& a) { return a[0] & 0x7fffffffu; }, R));
  check(unary(Op::Floor, R, [](const Args& a) { return bitsOf(std::floor(g(a[0]))); }, R));
  check(unary(Op::Ceil, R, [](const Args& a) { return bitsOf(std::ceil(g(a[0]))); }, R));
  check(unary(Op::Trunc, R, [](const Args& a) { return bitsOf(std::trunc(g(a[0]))); }, R));
  check(unary(Op::Round, R, [](const Args& a) { return bitsOf(std::nearbyint(g(a[0]))); }, R));
  check(unary(Op::Sign, R, [](const Args& a) { return F(g(a[0]) > 0 ? 1 : g(a[0]) < 0 ? -1 : 0); }, R));
  check(unary(
      Op::Saturate, R, [](const Args& a) { return bitsOf(std::isnan(g(a[0])) ? 0.0f : std::min(std::max(g(a[0]), 0.0f), 1.0f)); }, R));
  check(binary(Op::Step, R, [](const Args& a) { return F(g(a[0]) <= g(a[1]) ? 1 : 0); }, R));
  // The number when one operand is NaN; otherwise the first operand unless the second one wins.
  check(binary(Op::Max, R, [=](const Args& a) { return std::isnan(g(a[0])) ? a[1] : g(a[0]) < g(a[1]) ? a[1] : a[0]; }, R));
  check(binary(Op::Min, R, [=](const Args& a) { return std::isnan(g(a[0])) ? a[1] : g(a[1]) < g(a[0]) ? a[1] : a[0]; }, R));
  auto halfStep = [](double magnitude) {
    bool normal = std::isfinite(magnitude) && magnitude >= 0x1p-14;
    return normal ? std::ldexp(1.0, std::ilogb(magnitude) - 10) : 0x1p-24;
  };
  OpCase quantize = unary(
      Op::QuantizeToF16, R,
      [=](const Args& a) {
        double x = f(a[0]), m = std::abs(x), step = halfStep(m);
        if (std::isnan(x)) return 0x7fc00000u;
        return F(std::copysign(m >= 65520 ? HUGE_VAL : std::nearbyint(m / step) * step, x));
      },
      R);
  // Rounded down or up; a subnormal half may be flushed, and what is beyond the halves is open.
  quantize.admits = [=](const Args& a, uint32_t got) {
    double x = f(a[0]), m = std::abs(x), steps = x / halfStep(m), result = f(got) / halfStep(m);
    return (m != 0 && m < 0x1p-14) || m > 65504 || result == std::floor(steps) || result == std::ceil(steps);
  };
  check(quantize);
}

TEST_P(Conformance, arithmetic_conversions) {
  Checker check([this](const auto& m, const auto& in, auto groups) { return run(m, in, groups); }, GetParam().exact);
  constexpr Scalar B = Scalar::Bool, I = Scalar::I32, U = Scalar::U32, R = Scalar::F32;
  // NaN gives the low bound on exact backends and is not compared on others.
  check(unary(
      Op::Convert, R, [](const Args& a) { return u(f(a[0]) >= -2147483648.0 ? int64_t(std::min(f(a[0]), 2147483520.0)) : INT32_MIN); }, I));
  check(unary(Op::Convert, R, [](const Args& a) { return u(f(a[0]) >= 0 ? int64_t(std::min(f(a[0]), 4294967040.0)) : 0); }, U));
  check(unary(Op::Convert, R, [](const Args& a) { return b(f(a[0]) != 0); }, B));
  check(unary(Op::Convert, I, [](const Args& a) { return b(a[0] != 0); }, B));
  check(unary(Op::Convert, B, [](const Args& a) { return a[0]; }, I));
  check(unary(Op::Convert, B, [](const Args& a) { return F(a[0]); }, R));
  check(unary(Op::Convert, I, [](const Args& a) { return a[0]; }, U));
  for (Scalar t : {I, U}) {
    auto value = [t](const Args& a) { return t == I ? static_cast<double>(s(a[0])) : static_cast<double>(a[0]); };
    check({Op::Convert, t, {}, {}, R, {}, value, [value](const Args& a) { return ulp(value(a)); }});
  }
  check(unary(Op::Bitcast, U, [](const Args& a) { return a[0]; }, I));
  check(unary(Op::Bitcast, R, [](const Args& a) { return a[0]; }, U));
}

TEST_P(Conformance, arithmetic_rounded_floats) {
  Checker check([this](const auto& m, const auto& in, auto groups) { return run(m, in, groups); }, GetParam().exact);
  constexpr Scalar R = Scalar::F32;
  static const Words kSecond = wordsOf({1.0f, -1.0f, 3.0f, 0.1f, -7.5f, 1e10f, 1e-10f, 0.0f, 2.0f, 0.5f});
  OpCase division{Op::Div, R, {&kSecond}, {R}, R, {}, [](const Args& a) { return f(a[0]) / f(a[1]); }};
  check(division);
  OpCase rem{Op::Rem, R, {&kSecond}, {R}, R, {}, [](const Args& a) { return std::fmod(f(a[0]), f(a[1])); }};
  // x - y * trunc(x / y): the quotient of a device may be off, so only small quotients are compared there.
  rem.bound = [](const Args& a) {
    double q = std::abs(f(a[0]) / f(a[1]));
    return q < 1000 && std::abs(q - std::nearbyint(q)) > 1e-3 ? 4 * ulp(f(a[0])) + q * ulp(f(a[1])) : HUGE_VAL;
  };
  if (check.exact()) {
    rem.real = nullptr;
    rem.exact = [](const Args& a) {
      double x = f(a[0]), y = f(a[1]);
      if (std::isinf(y) && std::isfinite(x)) return bitsOf(g(a[0]));
      return F(x - y * std::trunc(x / y));
    };
  }
  check(rem);
  check(realUnary(Op::Sqrt, [](double x) { return std::sqrt(x); }, [](double x) { return 4 * ulp(std::sqrt(x)); }));
  // Two rounded operations on exact backends.
  OpCase rsqrt = realUnary(Op::InverseSqrt, [](double x) { return 1 / std::sqrt(x); }, [](double x) { return 2 * ulp(1 / std::sqrt(x)); });
  if (check.exact()) {
    rsqrt.real = nullptr;
    rsqrt.exact = [](const Args& a) { return bitsOf(1.0f / std::sqrt(g(a[0]))); };
  }
  check(rsqrt);
  check(realUnary(
      Op::Fract, [](double x) { return static_cast<double>(static_cast<float>(x - std::floor(x))); }, [](double) { return 1e-6; }));
  static const Words kThird = wordsOf({0.0f, 1.0f, -0.3f, 1e6f});
  OpCase fma{Op::Fma, R, {&kSecond, &kThird}, {R, R}, R, {}, [](const Args& a) { return std::fma(f(a[0]), f(a[1]), f(a[2])); }};
  fma.bound = [](const Args& a) { return ulp(f(a[0]) * f(a[1])) + ulp(f(a[2])) + ulp(f(a[0]) * f(a[1]) + f(a[2])); };
  check(fma);
}

TEST_P(Conformance, arithmetic_transcendental_functions) {
  Checker check([this](const auto& m, const auto& in, auto groups) { return run(m, in, groups); }, GetParam().exact);
  auto eUlp = [](double (*fn)(double)) { return [fn](double x) { return (3 + 2 * std::abs(x)) * ulp(fn(x)); }; };
  auto logBound = [](double (*fn)(double)) {
    return [fn](double x) { return x >= 0.5 && x <= 2 ? std::ldexp(1.0, -21) : 3 * ulp(fn(x)); };
  };
  auto trig = [](double x) { return std::abs(x) <= M_PI ? std::ldexp(1.0, -11) : HUGE_VAL; };
  check(realUnary(Op::Exp, [](double x) { return std::exp(x); }, eUlp([](double x) { return std::exp(x); })));
  check(realUnary(Op::Exp2, [](double x) { return std::exp2(x); }, eUlp([](double x) { return std::exp2(x); })));
  check(realUnary(Op::Log, [](double x) { return std::log(x); }, logBound([](double x) { return std::log(x); })));
  check(realUnary(Op::Log2, [](double x) { return std::log2(x); }, logBound([](double x) { return std::log2(x); })));
  check(realUnary(Op::Sin, [](double x) { return std::sin(x); }, trig));
  check(realUnary(Op::Cos, [](double x) { return std::cos(x); }, trig));
  check(realUnary(Op::Tan, [](double x) { return std::tan(x); }, [](double x) { return std::abs(x) < 1 ? 0.01 : HUGE_VAL; }));
  check(realUnary(Op::Asin, [](double x) { return std::asin(x); }, [](double) { return 1e-3; }));
  check(realUnary(Op::Acos, [](double x) { return std::acos(x); }, [](double) { return 1e-3; }));
  check(realUnary(Op::Atan, [](double x) { return std::atan(x); }, [](double x) { return 4096 * ulp(std::atan(x)); }));
  check(realUnary(Op::Sinh, [](double x) { return std::sinh(x); }, [](double x) { return 1e-5 + 1e-4 * std::abs(std::sinh(x)); }));
  check(realUnary(Op::Cosh, [](double x) { return std::cosh(x); }, [](double x) { return 1e-4 * std::cosh(x); }));
  check(realUnary(Op::Tanh, [](double x) { return std::tanh(x); }, [](double x) { return std::abs(x) < 40 ? 2e-5 : HUGE_VAL; }));
  check(realUnary(Op::Asinh, [](double x) { return std::asinh(x); }, [](double x) { return std::abs(x) < 1e3 ? 1e-3 : HUGE_VAL; }));
  check(realUnary(Op::Acosh, [](double x) { return std::acosh(x); }, [](double x) { return x < 1e5 ? 2e-3 : HUGE_VAL; }));
  check(realUnary(Op::Atanh, [](double x) { return std::atanh(x); }, [](double x) { return std::abs(x) < 0.9 ? 1e-4 : HUGE_VAL; }));
}

TEST_P(Conformance, arithmetic_functions_of_two_angles_or_powers) {
  Checker check([this](const auto& m, const auto& in, auto groups) { return run(m, in, groups); }, GetParam().exact);
  constexpr Scalar R = Scalar::F32;
  static const Words kSecond = wordsOf({1.0f, -1.0f, 3.0f, 0.1f, -7.5f, 0.5f, 2.0f});
  OpCase pow{
      Op::Pow, R, {&kSecond}, {R}, R, {}, [](const Args& a) { return g(a[0]) < 0 ? std::nan("") : std::pow(f(a[0]) + 0.0, f(a[1])); }};
  pow.bound = [](const Args& a) {
    double x = f(a[0]), y = f(a[1]), result = std::pow(x, y);
    return x <= 0 ? HUGE_VAL : (8 + 4 * std::abs(y * std::log2(x)) + 8 * std::abs(y)) * ulp(result) * 4;
  };
  check(pow);
  OpCase atan2{Op::Atan2, R, {&kSecond}, {R}, R, {}, [](const Args& a) { return std::atan2(f(a[0]), f(a[1])); }};
  atan2.bound = [](const Args& a) { return f(a[0]) == 0 ? HUGE_VAL : 4096 * ulp(std::atan2(f(a[0]), f(a[1]))); };
  check(atan2);
}

}  // namespace
}  // namespace lockstep::conformance
