// SPDX-License-Identifier: Apache-2.0
#include "passes/schedule/kernel_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/graph/text.h"

namespace lockstep::passes {

using program::KernelId;
using program::SymbolicKernel;

namespace {

/// A profile says which calls a kernel computes.
void addLines(std::vector<Location>& lines, const std::vector<Location>& more) {
  for (const Location& line : more) {
    if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  }
}

}  // namespace

KernelId KernelTable::add(SymbolicKernel kernel) {
  // Two kernels are one when all that emit reads is equal.
  std::string text = print(kernel.plan) + "\n" + print(kernel.body);
  auto [found, inserted] = by_text_.try_emplace(std::move(text), KernelId(kernels_.size()));
  if (inserted) {
    kernels_.push_back({fmt::format("k{}_{}", kernels_.size(), nameOf(kernel.plan)), std::move(kernel)});
  } else {
    addLines(std::get<SymbolicKernel>(kernels_[found->second.index()].code).body.locations, kernel.body.locations);
  }
  return found->second;
}

KernelId KernelTable::add(const std::string& label, kernel::Module module) {
  auto [found, inserted] = by_text_.try_emplace(print(module), KernelId(kernels_.size()));
  if (inserted) {
    kernels_.push_back({fmt::format("k{}_{}", kernels_.size(), label), std::move(module)});
  } else {
    addLines(std::get<kernel::Module>(kernels_[found->second.index()].code).locations, module.locations);
  }
  return found->second;
}

}  // namespace lockstep::passes
