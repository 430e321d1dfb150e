// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/kernel_values.h"

#include <fmt/format.h>

#include "ir/support/text.h"
#include "tools/kernel/scalars.h"

namespace lockstep::tools {
namespace {

using kernel::Scalar;
using kernel::TypeKind;

/// A value at an offset of some bytes, with its parts.
struct View {
  const kernel::TypeTable& types;
  const Bytes& bytes;
  kernel::TypeId type;
  uint64_t offset = 0;

  [[nodiscard]] const kernel::Type& info() const { return types[type]; }
  [[nodiscard]] bool isStruct() const { return info().kind == TypeKind::Struct; }
  [[nodiscard]] bool isNumber() const { return info().kind == TypeKind::Scalar || info().kind == TypeKind::Atomic; }
  [[nodiscard]] bool isTuple() const { return info().kind == TypeKind::Vector || info().kind == TypeKind::Matrix; }

  [[nodiscard]] uint64_t count() const {
    if (isStruct()) return info().members.size();
    if (info().kind == TypeKind::Array && info().count == 0) return (bytes.size() - std::min(offset, bytes.size())) / types.strideOf(type);
    return info().kind == TypeKind::Array ? info().count : info().kind == TypeKind::Matrix ? info().columns : info().rows;
  }
  [[nodiscard]] View part(uint64_t index) const {
    // Element types are in the table as soon as a module has the composite, but for parts of vectors and matrices.
    View view{.types = types, .bytes = bytes, .type = type, .offset = offset};
    if (isStruct()) {
      view.type = info().members[index].type;
      view.offset += info().members[index].offset;
    } else {
      view.type = info().element;
      view.offset += index * types.strideOf(type);
    }
    return view;
  }
};

double numberAt(const Bytes& bytes, uint64_t offset, Scalar scalar) {
  const bool there = offset + kernel::byteSize(scalar) <= bytes.size();
  return there ? numberOf(scalar, bitsAt(bytes, {.scalar = scalar, .offset = offset})) : 0;
}

std::string numberText(double value, Scalar scalar) {
  const bool is_float = scalar == Scalar::F32 || scalar == Scalar::F16;
  return is_float ? formatFloat(static_cast<float>(value)) : fmt::format("{:.0f}", value);
}

/// The numbers of a vector, or of column `column` of a matrix.
std::vector<double> numbersOf(const View& view, uint64_t column) {
  std::vector<double> numbers;
  const uint64_t size = view.info().scalar == Scalar::F16 ? 2 : 4;
  const uint64_t begin = view.offset + (view.info().kind == TypeKind::Matrix ? column * view.types.columnStride(view.type) : 0);
  for (uint64_t i = 0; i < view.info().rows; ++i) numbers.push_back(numberAt(view.bytes, begin + i * size, view.info().scalar));
  return numbers;
}

std::string tupleText(const View& view, uint64_t column) {
  std::string text;
  for (const double number : numbersOf(view, column)) text += (text.empty() ? "" : ", ") + numberText(number, view.info().scalar);
  return "(" + text + ")";
}

std::string valueText(const View& view) {
  if (view.isNumber()) return numberText(numberAt(view.bytes, view.offset, view.info().scalar), view.info().scalar);
  if (view.info().kind == TypeKind::Vector) return tupleText(view, 0);
  std::string text;
  for (uint64_t i = 0; i < view.count(); ++i) {
    if (i > 0) text += ", ";
    if (view.isStruct()) text += view.info().members[i].name + ": ";
    text += view.isTuple() ? tupleText(view, i) : valueText(view.part(i));
  }
  return view.isStruct() ? "{" + text + "}" : "[" + text + "]";
}

io::Json tupleJson(const View& view, uint64_t column) {
  io::Json list = io::Json::array();
  for (const double number : numbersOf(view, column)) list.add(number);
  return list;
}

io::Json toJson(const View& view) {
  if (view.isNumber()) return {numberAt(view.bytes, view.offset, view.info().scalar)};
  if (view.info().kind == TypeKind::Vector) return tupleJson(view, 0);
  io::Json json = view.isStruct() ? io::Json::object() : io::Json::array();
  for (uint64_t i = 0; i < view.count(); ++i) {
    const io::Json part = view.isTuple() ? tupleJson(view, i) : toJson(view.part(i));
    if (view.isStruct()) {
      json.add(view.info().members[i].name, part);
    } else {
      json.add(part);
    }
  }
  return json;
}

}  // namespace

std::string valueLines(const kernel::Module& module, kernel::TypeId type, const Bytes& bytes) {
  const View view{.types = module.types, .bytes = bytes, .type = type};
  if (view.isNumber() || view.isTuple()) return fmt::format("  {}\n", valueText(view));
  std::string text;
  for (uint64_t i = 0; i < view.count(); ++i) {
    const std::string label = view.isStruct() ? view.info().members[i].name + ":" : fmt::format("[{}]", i);
    text += fmt::format("  {} {}\n", label, valueText(view.part(i)));
  }
  return text;
}

io::Json valueJson(const kernel::Module& module, kernel::TypeId type, const Bytes& bytes) {
  return toJson({.types = module.types, .bytes = bytes, .type = type});
}

}  // namespace lockstep::tools
