// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/rounding_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/support/ulp.h"

namespace lockstep::tools {
namespace {

constexpr std::string_view kUnstable = "a device may choose differently here";

std::string ulps(double count) { return std::isinf(count) ? "any number of" : fmt::format("{:.2g}", count); }

}  // namespace

std::vector<RankedElement> rankErrors(const RoundingBounds& bounds, const Bytes& bytes, size_t most) {
  const auto worse = [](const RankedElement& a, const RankedElement& b) {
    return std::pair(a.error_ulp, a.bound_ulp) > std::pair(b.error_ulp, b.bound_ulp);
  };
  std::vector<RankedElement> elements;
  for (size_t word = 0; word < bounds.values.size() && 4 * word + 4 <= bytes.size(); ++word) {
    const double exact = bounds.values[word];
    if (std::isnan(exact)) continue;
    float value = 0;
    std::memcpy(&value, bytes.data() + 4 * word, sizeof value);
    if (static_cast<double>(value) == exact && bounds.bounds[word] == 0) continue;
    const double ulp = ulpOf(exact);
    RankedElement element{.word = word,
                          .value = static_cast<double>(value),
                          .exact = exact,
                          .error_ulp = std::abs(static_cast<double>(value) - exact) / ulp,
                          .bound_ulp = static_cast<double>(bounds.bounds[word]) / ulp,
                          .where = bounds.places[bounds.origins[word]]};
    // There may be millions of words.
    if (elements.size() == most && !worse(element, elements.back())) continue;
    elements.insert(std::ranges::upper_bound(elements, element, worse), std::move(element));
    if (elements.size() > most) elements.pop_back();
  }
  return elements;
}

io::Json roundingJson(const KernelResult& result, const kernel::Module& module) {
  io::Json list = io::Json::array();
  for (const auto& [slot, bounds] : result.rounding) {
    io::Json elements = io::Json::array();
    for (const RankedElement& one : rankErrors(bounds, result.bytes.at(slot), 10)) {
      elements.add(io::Json::object()
                       .add("word", one.word)
                       .add("value", one.value)
                       .add("exact", one.exact)
                       .add("error_ulp", one.error_ulp)
                       .add("bound_ulp", std::isinf(one.bound_ulp) ? io::Json() : io::Json(one.bound_ulp))
                       .add("file", one.where.file)
                       .add("line", one.where.line)
                       .add("column", one.where.column));
    }
    const kernel::GlobalVariable* variable = findVariable(module, slot);
    list.add(io::Json::object()
                 .add("slot", toString(slot))
                 .add("name", variable == nullptr ? std::string() : variable->name)
                 .add("worst", elements));
  }
  return list;
}

io::Json unstableChoicesJson(const std::vector<RoundingBounds::Choice>& choices) {
  io::Json list = io::Json::array();
  for (const RoundingBounds::Choice& choice : choices) {
    list.add(io::Json::object()
                 .add("file", choice.where.file)
                 .add("line", choice.where.line)
                 .add("column", choice.where.column)
                 .add("message", kUnstable)
                 .add("count", choice.count)
                 .add("invocation", choice.invocation));
  }
  return list;
}

void printRounding(const KernelResult& result, const kernel::Module& module) {
  for (const auto& [slot, bounds] : result.rounding) {
    const std::vector<RankedElement> worst = rankErrors(bounds, result.bytes.at(slot), 3);
    if (worst.empty()) continue;
    const kernel::GlobalVariable* variable = findVariable(module, slot);
    fmt::print(stderr, "rounding of {} {}:\n", toString(slot), variable == nullptr ? "" : variable->name);
    for (const RankedElement& one : worst) {
      fmt::print(stderr, "  word {} is {:.9g}, exactly {:.9g}: {} ulp off, a device may be {} ulp off", one.word, one.value, one.exact,
                 ulps(one.error_ulp), ulps(one.bound_ulp));
      if (one.where.line != 0) fmt::print(stderr, "; most of it from {}:{}:{}", one.where.file, one.where.line, one.where.column);
      fmt::print(stderr, "\n");
    }
  }
  for (const RoundingBounds::Choice& choice : result.unstable) {
    fmt::print(stderr, "{}:{}:{}: {}, {} {}; first in {}\n", choice.where.file, choice.where.line, choice.where.column, kUnstable,
               choice.count, choice.count == 1 ? "time" : "times", choice.invocation);
  }
}

}  // namespace lockstep::tools
