// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/array_text.h"

#include <fmt/format.h>

#include "ir/support/text.h"

namespace lockstep::tools {

void printArray(const std::string& name, const io::Array& array) {
  fmt::print("{}: {}\n", name, io::describe(array));
  constexpr size_t kPerLine = 8;
  for (size_t i = 0; i < array.elementCount(); ++i) {
    const double value = array.at(i);
    const std::string text = io::isFloat(array.type) ? formatFloat(static_cast<float>(value)) : fmt::format("{:.0f}", value);
    fmt::print("{}{}", i % kPerLine == 0 ? (i == 0 ? "  " : "\n  ") : " ", text);
  }
  fmt::print("\n");
}

io::Json arrayJson(const std::string& name, const io::Array& array, const io::Json& file) {
  io::Json shape = io::Json::array(), values = io::Json::array();
  for (const int64_t extent : array.shape) shape.add(extent);
  for (const double value : array.toDoubles()) values.add(value);
  return io::Json::object()
      .add("name", name)
      .add("dtype", toString(array.type))
      .add("shape", shape)
      .add("values", values)
      .add("file", file);
}

}  // namespace lockstep::tools
