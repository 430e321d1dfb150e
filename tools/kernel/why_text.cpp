// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/why_text.h"

#include <fmt/format.h>

namespace lockstep::tools {

io::Json whyJson(const std::vector<WhyLine>& lines) {
  io::Json list = io::Json::array();
  for (const WhyLine& line : lines) {
    list.add(io::Json::object()
                 .add("depth", line.depth)
                 .add("file", line.where.file)
                 .add("line", line.where.line)
                 .add("column", line.where.column)
                 .add("text", line.text));
  }
  return list;
}

void printWhy(const std::vector<WhyLine>& lines) {
  for (const WhyLine& line : lines) {
    const std::string where = line.where.line == 0 ? "" : fmt::format("{}:{}:{}: ", line.where.file, line.where.line, line.where.column);
    fmt::print("{:{}}{}{}\n", "", 2 * line.depth, where, line.text);
  }
}

}  // namespace lockstep::tools
