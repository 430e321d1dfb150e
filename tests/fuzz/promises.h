// SPDX-License-Identifier: Apache-2.0
// What the entries have in common.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "ir/support/result.h"

namespace lockstep::fuzz {

inline std::string_view textOf(std::span<const std::byte> input) { return {reinterpret_cast<const char*>(input.data()), input.size()}; }

inline void require(bool holds, std::string_view promise) {
  if (!holds) throw std::logic_error(std::string(promise));
}

inline void requireDiagnostic(const Diagnostic& diagnostic) {
  require(!diagnostic.code.empty() && !diagnostic.message.empty(), "a diagnostic has a code and a message");
  (void)toString(diagnostic);
}

/// The answer of a reader or validator: a refusal says why.
template <class T>
void requireAnswer(const Result<T>& result) {
  if (result.ok()) return;
  require(!result.diagnostics().empty(), "a refusal has a diagnostic");
  for (const Diagnostic& diagnostic : result.diagnostics()) requireDiagnostic(diagnostic);
}

/// Prints of values rather than values, because NaN differs from itself.
template <class Value, class Parse>
void requireStableText(const Value& value, const Parse& parse) {
  const std::string text = print(value);
  const auto again = parse(text);
  require(again.ok(), "a printed text parses");
  require(print(*again) == text, "print after parse changes nothing");
}

}  // namespace lockstep::fuzz
