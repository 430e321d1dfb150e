// SPDX-License-Identifier: Apache-2.0
// How far a device may be from the judge: what WGSL's accuracy of each operation adds up to in this kernel on these inputs, which the
// reference computes beside its results (SanitizeChecks::errors).
#include <cmath>

#include "backends/sanitize.h"
#include "tools/kernel/kernel_run.h"
#include "tools/verify/kernel_check.h"

namespace lockstep::tools {

namespace {

/// Of elements of 16 bits no bound is kept beyond the word that they share, so each has the tolerance of a whole array, and both devices
/// round what they store.
std::vector<double> storedBounds(const io::Array& want, graph::DType dtype) {
  const std::vector<double> values = want.toDoubles();
  if (!graph::isFloat(dtype)) return std::vector<double>(values.size(), 0);
  std::vector<double> bounds = relativeBounds(values, kUnboundedTolerance);
  for (size_t i = 0; i < bounds.size(); ++i) bounds[i] += 2 * storageRounding(dtype, std::abs(values[i]) + bounds[i]);
  return bounds;
}

}  // namespace

Result<DispatchBounds> boundsOf(const JudgedDispatch& run) {
  LS_TRY(const SanitizeChecks checks, parseSanitizeChecks("error", true));
  const std::unique_ptr<Backend> backend = openSanitizer({.checks = checks});
  LS_TRY(const program::ValidProgram program, makeProgram(run.dispatch));
  LS_TRY(PreparedDispatch prepared, PreparedDispatch::make(*backend, program));
  std::vector<Bytes> buffers = run.before;
  LS_CHECK(prepared.run(buffers));
  std::vector<RoundingBounds> known;
  for (size_t i = 0; i < buffers.size(); ++i) known.push_back(prepared.bounds(i));

  DispatchBounds all;
  for (const RoundingBounds::Choice& choice : prepared.takeUnstableChoices()) all.unstable_choices += choice.count;
  for (size_t i = 0; i < run.dispatch.bindings.size(); ++i) {
    const BufferBinding& binding = run.dispatch.bindings[i];
    const io::Array want = run.elementsOf(run.want, i);
    if (run.isPacked(i)) {
      all.elements.push_back(storedBounds(want, run.types[i]));
      continue;
    }
    // Where the reference does not say, as of bits that became a float, a device has the tolerance of a whole array.
    std::vector<double>& bounds = all.elements.emplace_back(relativeBounds(want, kUnboundedTolerance));
    if (want.type != io::ElementType::F32) continue;
    const RoundingBounds& rounding = known[binding.buffer];
    for (size_t k = 0; k < bounds.size(); ++k) {
      const size_t word = binding.offset / sizeof(uint32_t) + k;
      if (word >= rounding.values.size() || std::isnan(rounding.values[word])) continue;
      // The bound is one on the distance from the real number, and the judge has rounded, too.
      const double own = std::abs(want.at(k) - rounding.values[word]);
      bounds[k] = static_cast<double>(rounding.bounds[word]) + (std::isfinite(own) ? own : 0);
    }
  }
  return all;
}

}  // namespace lockstep::tools
