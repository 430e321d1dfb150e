// SPDX-License-Identifier: Apache-2.0
// Subgroup matrices. Operands are small integers, so that every device gives the same sums.
#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <span>

#include <fmt/format.h>

#include "ir/support/narrow_float.h"
#include "tests/backends/conformance.h"

namespace lockstep::conformance {
namespace {

constexpr uint32_t kInvocations = 64, kMostSubgroups = 16;

struct Shape {
  uint32_t m, n, k;
};

/// A matrix in memory: rows x columns of one component, lines one after another with room between them.
struct Stored {
  uint32_t rows = 0, columns = 0;
  bool column_major = false;
  uint32_t stride = 0;  ///< components from one line to the next
  uint32_t first = 0;   ///< component where the matrix starts
  [[nodiscard]] uint32_t at(uint32_t row, uint32_t column) const {
    return first + (column_major ? column * stride + row : row * stride + column);
  }
  [[nodiscard]] uint32_t size() const { return at(rows - 1, columns - 1) + 1; }
};

Stored stored(uint32_t rows, uint32_t columns, bool column_major, uint32_t gap) {
  return {
      .rows = rows, .columns = columns, .column_major = column_major, .stride = (column_major ? rows : columns) + gap, .first = 2 * gap};
}

/// From -8 to 8, no pattern that a transposed or shifted matrix would share.
int32_t elementOf(uint32_t matrix, uint32_t row, uint32_t column) {
  return static_cast<int32_t>((row * 7 + column * 13 + row * column * 3 + matrix * 5) % 17) - 8;
}

Words filled(const Stored& matrix, uint32_t number, std::string_view component, float scale = 1) {
  const bool halves = component != "f32";
  Words words((matrix.size() + 16) / (halves ? 2 : 1) + 16);
  for (uint32_t r = 0; r < matrix.rows; ++r) {
    for (uint32_t c = 0; c < matrix.columns; ++c) {
      const float value = static_cast<float>(elementOf(number, r, c)) * scale;
      const uint32_t at = matrix.at(r, c);
      if (!halves) {
        words[at] = bitsOf(value);
        continue;
      }
      const uint32_t bits = component == "bf16" ? bitsOf(value) >> 16 : uint32_t{doubleToHalf(static_cast<double>(value))};
      words[at / 2] |= bits << (at % 2 * 16);
    }
  }
  return words;
}

std::string major(const Stored& matrix) { return matrix.column_major ? " {column_major = true}" : ""; }

/// The element type of the arrays that hold this component, and how many components an element has.
struct Element {
  std::string_view type;
  uint32_t components;
};

std::string head(std::string_view component, const Element& element) {
  return fmt::format(R"({}enable subgroup_matrices
enable subgroups
var @a: array<{}> {{access = read, binding = 0, group = 0, space = storage}}
var @b: array<{}> {{access = read, binding = 1, group = 0, space = storage}}
var @out: array<f32> {{access = read_write, binding = 2, group = 0, space = storage}}
)",
                     component == "f16" ? "enable f16\n" : "", element.type, element.type);
}

/// Whether the device has what the test needs.
bool canRun(const Backend& backend, std::string_view component) {
  const program::DeviceProfile& profile = backend.device().profile;
  const bool sized = profile.fixed_subgroups || backend.device().kind == DeviceKind::Reference;
  return profile.subgroups && sized && (component != "f16" || profile.f16);
}

/// What each subgroup leaves in its 1024 numbers of the output.
std::vector<float> firstOf(const std::vector<Words>& out) {
  std::vector<float> made;
  if (!out.empty()) {
    for (const uint32_t word : out[2]) made.push_back(floatOf(word));
  }
  return made;
}

/// result = 3 * (a * b) + 1 + a * b, all through loads, products, sums and scales, by way of workgroup memory or straight from storage.
void checkProduct(Backend& backend, const Shape& shape, std::string_view component, const Element& element, bool a_columns, bool b_columns,
                  bool shared) {
  SCOPED_TRACE(fmt::format("{} {}x{}x{} in {}{}{}{}", component, shape.m, shape.n, shape.k, element.type, a_columns ? ", a by columns" : "",
                           b_columns ? ", b by columns" : "", shared ? ", shared" : ""));
  const uint32_t gap = 2 * element.components;
  const Stored a = stored(shape.m, shape.k, a_columns, gap), b = stored(shape.k, shape.n, b_columns, gap);
  const Stored c = stored(shape.m, shape.n, b_columns, 0);
  const std::string left = fmt::format("subgroup_matrix_left<{}, {}, {}>", component, shape.k, shape.m);
  const std::string right = fmt::format("subgroup_matrix_right<{}, {}, {}>", component, shape.n, shape.k);
  const std::string sum = fmt::format("subgroup_matrix_result<f32, {}, {}>", shape.n, shape.m);
  const uint32_t per = element.components;
  const uint32_t shared_elements = (a.size() + 16) / per;
  std::string text = head(component, element);
  if (shared) text += fmt::format("var @tile: array<{}, {}> {{space = workgroup}}\n", element.type, shared_elements);
  text += fmt::format(
      "fn @main(%lid: u32 {{builtin = local_invocation_index}}, %sub: u32 {{builtin = subgroup_id}}) {{workgroup_size = [{}, 1, 1]}} {{\n",
      kInvocations);
  if (shared) {
    text += fmt::format(R"(  %p: ptr<function, u32> = var
  store %p, %lid
  loop {{
    %i: u32 = load %p
    %end: bool = ge %i, {}u
    if %end {{
      break
    }}
    %from: ptr<storage, {}, read> = access @a, %i
    %x: {} = load %from
    %to: ptr<workgroup, {}> = access @tile, %i
    store %to, %x
  }} continuing {{
    %j: u32 = load %p
    %next: u32 = add %j, {}u
    store %p, %next
  }}
  workgroup_barrier
)",
                        shared_elements, element.type, element.type, element.type, kInvocations);
  }
  text += fmt::format(R"(  %ma: {} = subgroup_matrix_load {}, {}u, {}u{}
  %mb: {} = subgroup_matrix_load @b, {}u, {}u{}
  %pc: ptr<function, array<{}, 2>> = var
  %p0: ptr<function, {}> = access %pc, 0u
  %zero: {} = load %p0
  %once: {} = subgroup_matrix_multiply_accumulate %ma, %mb, %zero
  %p1: ptr<function, {}> = access %pc, 1u
  %three: {} = subgroup_matrix_scale %once, 3.0f
  store %p1, %three
  %ones: {} = construct 1.0f
  %more: {} = load %p1
  %sum: {} = subgroup_matrix_add %more, %ones
  %again: {} = subgroup_matrix_multiply_accumulate %ma, %mb, %sum
  %at: u32 = mul %sub, 1024u
  subgroup_matrix_store @out, %at, %again, {}u{}
}}
)",
                      left, shared ? "@tile" : "@a", a.first / per, a.stride / per, major(a), right, b.first / per, b.stride / per,
                      major(b), sum, sum, sum, sum, sum, sum, sum, sum, sum, sum, c.stride, major(c));
  const Result<std::vector<Words>> ran = runText(
      backend, text, {filled(a, 1, component), filled(b, 2, component), Words(kMostSubgroups * 1024, bitsOf(-12345.0f))}, {1, 1, 1});
  ASSERT_TRUE(ran.ok()) << toString(ran.diagnostics()) << text;
  const std::vector<float> got = firstOf(*ran);
  const uint32_t size = backend.device().kind == DeviceKind::Reference ? 0 : backend.device().profile.subgroup_size;
  const uint32_t subgroups = size == 0 ? 2 : kInvocations / size;
  for (uint32_t s = 0; s < subgroups; ++s) {
    for (uint32_t m = 0; m < shape.m; ++m) {
      for (uint32_t n = 0; n < shape.n; ++n) {
        int32_t want = 0;
        for (uint32_t k = 0; k < shape.k; ++k) want += elementOf(1, m, k) * elementOf(2, k, n);
        ASSERT_EQ(got[s * 1024 + c.at(m, n)], static_cast<float>(4 * want + 1)) << "subgroup " << s << ", row " << m << ", column " << n;
      }
    }
    ASSERT_EQ(got[s * 1024 + shape.m * shape.n], -12345.0f) << "nothing is stored beyond the matrix";
  }
}

TEST_P(Conformance, matrix_products_of_each_component_and_layout) {
  struct Kind {
    std::string_view component;
    Element element;
  };
  const std::vector<Kind> kinds{{"f16", {"vec4<u32>", 8}},  {"f16", {"u32", 2}}, {"f16", {"f16", 1}},       {"bf16", {"vec4<u32>", 8}},
                                {"bf16", {"vec2<u32>", 4}}, {"f32", {"f32", 1}}, {"f32", {"vec4<f32>", 4}}, {"f32", {"vec4<u32>", 4}}};
  for (const Kind& kind : kinds) {
    if (!canRun(*backend_, kind.component)) continue;
    for (const bool a_columns : {false, true}) {
      for (const bool b_columns : {false, true}) {
        checkProduct(*backend_, {16, 16, 16}, kind.component, kind.element, a_columns, b_columns, a_columns == b_columns);
      }
    }
  }
}

TEST_P(Conformance, matrix_products_of_other_shapes) {
  if (!canRun(*backend_, "f16")) GTEST_SKIP() << "no f16, or subgroups of no fixed size";
  for (const Shape& shape : {Shape{8, 8, 8}, Shape{16, 8, 16}, Shape{8, 16, 16}, Shape{32, 16, 8}, Shape{16, 16, 32}}) {
    checkProduct(*backend_, shape, "f16", {"vec2<u32>", 4}, false, false, true);
    checkProduct(*backend_, shape, "f32", {"f32", 1}, true, false, false);
  }
}

/// Each invocation multiplies the elements that it holds by numbers of their rows and columns, and stores them by those.
void checkElements(Backend& backend, uint32_t rows, uint32_t columns, uint32_t subgroup) {
  SCOPED_TRACE(fmt::format("{}x{} in subgroups of {}", rows, columns, subgroup));
  const uint32_t held = rows * columns / subgroup;
  std::string text =
      fmt::format(R"(enable subgroup_matrices
enable subgroups
var @in: array<f32> {{access = read, binding = 0, group = 0, space = storage}}
var @out: array<f32> {{access = read_write, binding = 1, group = 0, space = storage}}
fn @main(%sub: u32 {{builtin = subgroup_id}}) {{subgroup_size = {}, workgroup_size = [64, 1, 1]}} {{
  %first: u32 = mul %sub, {}u
  %m: subgroup_matrix_result<f32, {}, {}> = subgroup_matrix_load @in, 0u, {}u
  %pm: ptr<function, array<subgroup_matrix_result<f32, {}, {}>, 2>> = var
  %p1: ptr<function, subgroup_matrix_result<f32, {}, {}>> = access %pm, 1u
  store %p1, %m
  %pe: ptr<function, u32> = var
  loop {{
    %e: u32 = load %pe
    %end: bool = ge %e, {}u
    if %end {{
      break
    }}
    %row: u32 = subgroup_matrix_row %m, %e
    %column: u32 = subgroup_matrix_column %m, %e
    %line: u32 = mul %row, {}u
    %flat: u32 = add %line, %column
    %place: u32 = add %first, %flat
    %px: ptr<function, f32> = access %pm, 1u, %e
    %x: f32 = load %px
    %factor: f32 = convert %row
    %scaled: f32 = mul %x, %factor
    store %px, %scaled
    %all: subgroup_matrix_result<f32, {}, {}> = load %p1
    %y: f32 = extract %all, %e
    %po: ptr<storage, f32, read_write> = access @out, %place
    store %po, %y
  }} continuing {{
    %j: u32 = load %pe
    %next: u32 = add %j, 1u
    store %pe, %next
  }}
}}
)",
                  subgroup, rows * columns, columns, rows, columns, columns, rows, columns, rows, held, columns, columns, rows);
  std::vector<float> in;
  for (uint32_t i = 0; i < rows * columns; ++i) in.push_back(static_cast<float>(i * 3 + 1));
  const uint32_t subgroups = 64 / subgroup;
  const Result<std::vector<Words>> ran = runText(backend, text, {wordsOf(in), Words(subgroups * rows * columns + 1, 7)}, {1, 1, 1});
  ASSERT_TRUE(ran.ok()) << toString(ran.diagnostics()) << text;
  for (uint32_t i = 0; i < subgroups * rows * columns; ++i) {
    const uint32_t at = i % (rows * columns);
    ASSERT_EQ(floatOf((*ran)[1][i]), in[at] * static_cast<float>(at / columns)) << i;
  }
  ASSERT_EQ((*ran)[1].back(), 7u);
}

TEST_P(Conformance, matrix_elements_are_where_rows_and_columns_say) {
  if (!canRun(*backend_, "f32")) GTEST_SKIP() << "subgroups of no fixed size";
  const bool reference = backend_->device().kind == DeviceKind::Reference;
  const uint32_t own = backend_->device().profile.subgroup_size;
  for (const uint32_t subgroup : reference ? std::vector<uint32_t>{4, 8, 16, 32, 64} : std::vector<uint32_t>{own}) {
    checkElements(*backend_, 16, 16, subgroup);
    checkElements(*backend_, 16, 8, subgroup);
  }
}

/// The largest element and the sum of each row, and half a product with the identity: what the matrix becomes as a left operand.
void checkRows(Backend& backend, std::string_view component, uint32_t subgroup) {
  SCOPED_TRACE(fmt::format("{} in subgroups of {}", component, subgroup));
  const std::string text = fmt::format(R"({}enable subgroup_matrices
enable subgroups
var @in: array<f32> {{access = read, binding = 0, group = 0, space = storage}}
var @unit: array<u32> {{access = read, binding = 1, group = 0, space = storage}}
var @out: array<f32> {{access = read_write, binding = 2, group = 0, space = storage}}
fn @main(%sub: u32 {{builtin = subgroup_id}}) {{subgroup_size = {}, workgroup_size = [64, 1, 1]}} {{
  %m: subgroup_matrix_result<f32, 16, 16> = subgroup_matrix_load @in, 0u, 16u
  %most: subgroup_matrix_result<f32, 16, 16> = subgroup_matrix_row_max %m
  %sum: subgroup_matrix_result<f32, 16, 16> = subgroup_matrix_row_sum %m
  %left: subgroup_matrix_left<{}, 16, 16> = subgroup_matrix_convert %m
  %right: subgroup_matrix_right<{}, 16, 16> = subgroup_matrix_load @unit, 0u, 8u
  %again: subgroup_matrix_result<f32, 16, 16> = subgroup_matrix_multiply_accumulate %left, %right, zero<subgroup_matrix_result<f32, 16, 16>>
  %first: u32 = mul %sub, 768u
  %second: u32 = add %first, 256u
  %third: u32 = add %first, 512u
  subgroup_matrix_store @out, %first, %most, 16u
  subgroup_matrix_store @out, %second, %sum, 16u
  subgroup_matrix_store @out, %third, %again, 16u
}}
)",
                                       component == "f16" ? "enable f16\n" : "", subgroup, component, component);
  std::vector<float> in;
  Words unit(128);
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t row = i / 16, column = i % 16;
    // The fraction is lost in f16 and bf16, upwards or downwards.
    in.push_back(static_cast<float>(elementOf(1, row, column)) + std::ldexp(static_cast<float>((row + column) % 8), -12));
    if (row == column) unit[i / 2] |= (component == "bf16" ? 0x3f80u : 0x3c00u) << (i % 2 * 16);
  }
  const float step = component == "f16" ? 0x1p-10f : 0x1p-7f;  // of the larger ones among the neighbours in 16 bits
  const uint32_t subgroups = 64 / subgroup;
  const Result<std::vector<Words>> ran = runText(backend, text, {wordsOf(in), unit, Words(subgroups * 768 + 1, 7)}, {1, 1, 1});
  ASSERT_TRUE(ran.ok()) << toString(ran.diagnostics()) << text;
  for (uint32_t i = 0; i < subgroups * 256; ++i) {
    const uint32_t s = i / 256, row = i % 256 / 16, at = s * 768 + i % 256;
    const auto line = std::span(in).subspan(size_t{row} * 16, 16);
    double sum = 0;
    for (const float x : line) sum += static_cast<double>(x);
    ASSERT_EQ(floatOf((*ran)[2][at]), std::ranges::max(line)) << i;
    ASSERT_NEAR(static_cast<double>(floatOf((*ran)[2][at + 256])), sum, 1e-4) << i;
    const float narrow = floatOf((*ran)[2][at + 512]), exact = in[i % 256];
    ASSERT_LE(std::fabs(narrow - exact), step * std::fabs(exact)) << i;
    const bool is_whole = exact == std::floor(exact);
    ASSERT_TRUE(!is_whole || narrow == exact) << i;
  }
  ASSERT_EQ((*ran)[2].back(), 7u);
}

TEST_P(Conformance, matrix_rows_are_reduced_and_results_become_operands) {
  const bool reference = backend_->device().kind == DeviceKind::Reference;
  const uint32_t own = backend_->device().profile.subgroup_size;
  for (const std::string_view component : {"f16", "bf16"}) {
    if (!canRun(*backend_, component)) continue;
    for (const uint32_t subgroup : reference ? std::vector<uint32_t>{4, 8, 16, 32, 64} : std::vector<uint32_t>{own})
      checkRows(*backend_, component, subgroup);
  }
}

/// Sums of many products: what the units lose stays below what f32 with truncation would.
TEST_P(Conformance, matrix_sums_are_near_those_of_f64) {
  if (!canRun(*backend_, "f16")) GTEST_SKIP() << "no f16, or subgroups of no fixed size";
  constexpr uint32_t kDepth = 512;
  const std::string text =
      head("f16", {"vec4<u32>", 8}) + fmt::format(R"(fn @main(%sub: u32 {{builtin = subgroup_id}}) {{workgroup_size = [64, 1, 1]}} {{
  %pc: ptr<function, subgroup_matrix_result<f32, 16, 16>> = var
  %pk: ptr<function, u32> = var
  loop {{
    %k: u32 = load %pk
    %end: bool = ge %k, {}u
    if %end {{
      break
    }}
    %ka: u32 = mul %k, 2u
    %kb: u32 = mul %k, 32u
    %a: subgroup_matrix_left<f16, 16, 16> = subgroup_matrix_load @a, %ka, {}u
    %b: subgroup_matrix_right<f16, 16, 16> = subgroup_matrix_load @b, %kb, 2u
    %c: subgroup_matrix_result<f32, 16, 16> = load %pc
    %d: subgroup_matrix_result<f32, 16, 16> = subgroup_matrix_multiply_accumulate %a, %b, %c
    store %pc, %d
  }} continuing {{
    %j: u32 = load %pk
    %next: u32 = add %j, 1u
    store %pk, %next
  }}
  %at: u32 = mul %sub, 256u
  %done: subgroup_matrix_result<f32, 16, 16> = load %pc
  subgroup_matrix_store @out, %at, %done, 16u
}}
)",
                                                  kDepth / 16, kDepth / 8);
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  const auto draw = [&] {
    Words words(16 * kDepth / 2);
    for (uint32_t& word : words) word = uint32_t{doubleToHalf(normal(random))} | uint32_t{doubleToHalf(normal(random))} << 16;
    return words;
  };
  const auto half = [](const Words& words, uint32_t k) {
    return static_cast<double>(halfToFloat(static_cast<uint16_t>(words[k / 2] >> (k % 2 * 16))));
  };
  const Words a = draw(), b = draw();
  const std::vector<float> got = firstOf(run(text, {a, b, Words(kMostSubgroups * 256)}));
  ASSERT_FALSE(got.empty());
  for (uint32_t m = 0; m < 16; ++m) {
    for (uint32_t n = 0; n < 16; ++n) {
      double want = 0, size = 0;
      for (uint32_t k = 0; k < kDepth; ++k) {
        const double term = half(a, m * kDepth + k) * half(b, k * 16 + n);
        want += term;
        size += std::fabs(term);
      }
      EXPECT_NEAR(static_cast<double>(got[m * 16 + n]), want, size * 4e-6) << m << ", " << n;
    }
  }
}

}  // namespace
}  // namespace lockstep::conformance
