// SPDX-License-Identifier: Apache-2.0
#include "tools/language/text_input.h"

#include <iostream>
#include <iterator>

#include "frontend/io/file.h"

namespace lockstep::tools {

Result<std::string> readTextInput(const std::string& path) {
  if (path != "-") return io::readTextFile(path);
  std::string text(std::istreambuf_iterator<char>(std::cin), {});
  if (std::cin.bad()) return fail("file.read", "stdin cannot be read");
  return text;
}

}  // namespace lockstep::tools
