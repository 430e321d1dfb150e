// SPDX-License-Identifier: Apache-2.0
#include "ir/support/where.h"

#include <mutex>
#include <set>
#include <string>

namespace lockstep {

Where Where::of(std::string_view file, uint32_t line, uint32_t column) {
  // A place is copied into every node of a trace, so it holds a pointer; a program has few files.
  static std::mutex mutex;
  static std::set<std::string, std::less<>> names;
  Where where;
  std::lock_guard lock(mutex);
  auto found = names.find(file);
  if (found == names.end()) found = names.emplace(file).first;
  where.file_ = found->c_str();
  where.line_ = line;
  where.column_ = column;
  return where;
}

}  // namespace lockstep
