// SPDX-License-Identifier: Apache-2.0
// What the printer, the parser and the validators of the program text share. Not for passes and backends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program/program.h"

namespace lockstep::program {

inline constexpr uint32_t kNestedIndent = 2;  ///< columns, of the text of a kernel

/// In which line of the text each thing stands.
struct TextLines {
  std::vector<uint32_t> arenas, buffers, kernels, commands, inputs, outputs, constants, states, loops;
};
std::string print(const Program& program, TextLines* lines);

/// Collects what is wrong with a program; the lines of the text are looked up only when something is.
class Problems {
 public:
  explicit Problems(const Program& program) : program_(program) {}
  using List = std::vector<uint32_t> TextLines::*;
  void add(List list, size_t index, std::string code, std::string message, std::string remedy = {});
  /// A problem of a nested text or of a kernel: keeps the diagnostic and names the kernel.
  void addKernel(size_t kernel, const std::vector<Diagnostic>& diagnostics);
  [[nodiscard]] bool none() const { return entries_.empty(); }
  /// Success, or the diagnostics with their lines.
  [[nodiscard]] Status status() const;

 private:
  struct Entry {
    Diagnostic diagnostic;
    List list;
    size_t index;
  };
  const Program& program_;
  std::vector<Entry> entries_;
};

/// What a program says of the host's part in a step: how inputs are made, what persists, the learning rate. Ids must be right.
void checkSteps(const Program& program, Problems& problems);

/// How a diagnostic names a command: `command 3 "matmul l1"`.
std::string describe(const Program& program, size_t command);

}  // namespace lockstep::program
