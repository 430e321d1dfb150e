// SPDX-License-Identifier: Apache-2.0
#include "frontend/nn/weight_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/support/diagnostic.h"

namespace lockstep::nn {
namespace {

using graph::DType;

struct FormatRow {
  std::string_view name;
  WeightFormat format;
};
constexpr std::array kFormats{FormatRow{"f32", {}},
                              FormatRow{"f16", {.kind = WeightKind::F16}},
                              FormatRow{"bf16", {.kind = WeightKind::BF16}},
                              FormatRow{"int8", {.kind = WeightKind::Int8}},
                              FormatRow{"int4", {.kind = WeightKind::Int4, .group = 32}},
                              FormatRow{"int4:128", {.kind = WeightKind::Int4, .group = 128}}};

/// By WeightKind.
struct KindRow {
  int64_t bits = 0;
  DType dtype = DType::F32, scale = DType::F32;
};
// A scale of 16 bits is an eighth of the numbers of a group of 32; one of f32 for a row is nothing beside it.
constexpr std::array<KindRow, 5> kKinds{{{.dtype = DType::F32},
                                         {.dtype = DType::F16},
                                         {.dtype = DType::BF16},
                                         {.bits = 8, .dtype = DType::U32},
                                         {.bits = 4, .dtype = DType::U32, .scale = DType::BF16}}};

const KindRow& rowOf(const WeightFormat& format) { return kKinds[static_cast<size_t>(format.kind)]; }

int64_t roundedUp(int64_t count, int64_t size) { return count / size + (count % size != 0 ? 1 : 0); }

}  // namespace

Result<WeightFormat> WeightFormat::parse(std::string_view text) {
  const auto* found = std::ranges::find(kFormats, text, &FormatRow::name);
  if (found != kFormats.end()) return found->format;
  return fail("weight_format.name", fmt::format("'{}' is no format of weights", text), {}, fmt::format("it is {}", kWeightFormats));
}

int64_t WeightFormat::bits() const { return rowOf(*this).bits; }
graph::DType WeightFormat::dtype() const { return rowOf(*this).dtype; }

std::string toString(const WeightFormat& format) {
  const auto* found = std::ranges::find(kFormats, format, &FormatRow::format);
  return found != kFormats.end() ? std::string(found->name) : fmt::format("int{}:{}", format.bits(), format.group);
}

QuantizedRows quantizedRows(const WeightFormat& format, int64_t length) {
  if (format.bits() == 0) internalError("rows of a format without whole numbers");
  const int64_t group = format.group > 0 ? std::min(format.group, length) : length;
  return {.words = roundedUp(length, 32 / format.bits()), .groups = roundedUp(length, group), .group = group, .scale = rowOf(format).scale};
}

}  // namespace lockstep::nn
