// SPDX-License-Identifier: Apache-2.0
// Which errors of floats are worth a word: those of values that a dispatch wrote to buffers.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "backends/reference/sanitize/shadows.h"
#include "backends/reference/sanitize/watch.h"

namespace lockstep::reference {
namespace {

/// Three digits are left of a value with a larger error.
constexpr double kLost = 1e-3;
/// A sum that lost so many units in the last place, addend by addend, is reported although most of its digits are right.
constexpr double kAbsorbed = 16;
/// One element of so many may lose its digits by chance: a difference with the mean, for example.
constexpr uint64_t kByChance = 64;
/// Nor does an error count that is small beside the largest element: sums of gradients cancel here and there.
constexpr double kBesideLargest = 1e-5;

struct Loss {
  uint64_t count = 0;
  Sighting worst;
};

/// By code and site.
using Losses = std::map<std::pair<FindingCode, uint32_t>, Loss>;

void note(Losses& losses, FindingCode code, uint32_t site, const Sighting& seen) {
  Loss& loss = losses[{code, site}];
  const auto size = [](const Sighting& s) { return std::max(s.bound, std::abs(std::bit_cast<float>(s.result) - s.exact)); };
  if (loss.count++ == 0 || size(seen) > size(loss.worst)) loss.worst = seen;
  loss.worst.code = code;
  loss.worst.site = site;
}

void judge(Losses& losses, const Shadow& shadow, double largest, Sighting seen) {
  const auto result = static_cast<double>(std::bit_cast<float>(shadow.bits));
  const double error = std::abs(result - shadow.value), size = std::abs(shadow.value);
  seen.exact = shadow.value;
  seen.bound = static_cast<double>(shadow.bound);
  seen.result = shadow.bits;
  if (shadow.origin.site() != 0) {
    const bool lost = error > std::max(kLost * size, kBesideLargest * largest);
    if (lost && shadow.origin.kind() == ErrorKind::Cancellation) note(losses, FindingCode::Cancellation, shadow.origin.site(), seen);
    const bool absorbed = std::abs(static_cast<double>(shadow.absorbed)) > kAbsorbed * ulpOf(result);
    if ((lost || absorbed) && shadow.origin.kind() == ErrorKind::Absorption)
      note(losses, FindingCode::Absorption, shadow.origin.site(), seen);
  }
  if (shadow.bound_origin.site() == 0 || seen.bound <= std::max(kLost * std::max(std::abs(result), size), kBesideLargest * largest)) return;
  if (shadow.bound_origin.kind() == ErrorKind::Contraction) note(losses, FindingCode::Contraction, shadow.bound_origin.site(), seen);
  // What is itself so small may become zero without harm.
  if (shadow.bound_origin.kind() == ErrorKind::Flush && std::abs(result) >= kSmallestNormal)
    note(losses, FindingCode::Denormal, shadow.bound_origin.site(), seen);
}

}  // namespace

void findErrors(Watch& watch, uint32_t dispatch, const Bytecode& code, std::span<const BufferView> bindings) {
  for (uint32_t k = 0; k < code.variables.size(); ++k) {
    const Variable& variable = code.variables[k];
    if (variable.home != Home::Buffer || !variable.writable) continue;
    const BufferView& buffer = bindings[variable.binding];
    Losses losses;
    const auto wasWritten = [&](uint32_t word) {
      return buffer.shadows[word].dispatch == dispatch && buffer.shadows[word].bits == buffer.words[word];
    };
    const uint32_t words = buffer.shadows == nullptr ? 0 : buffer.count;
    double largest = 0;
    for (uint32_t word = 0; word < words; ++word)
      if (wasWritten(word)) largest = std::max(largest, std::abs(buffer.shadows[word].value));
    uint64_t written = 0;
    for (uint32_t word = 0; word < words; ++word) {
      if (!wasWritten(word)) continue;
      ++written;
      judge(losses, buffer.shadows[word], largest, {.variable = k, .element = word});
    }
    for (auto& [key, loss] : losses) {
      if (loss.count * kByChance < written) continue;
      loss.worst.warning = true;
      loss.worst.count = loss.count;
      watch.add(loss.worst);
    }
  }
}

}  // namespace lockstep::reference
