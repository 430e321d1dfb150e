// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/output_distance.h"

#include <algorithm>
#include <cmath>

#include "tools/verify/golden_compare.h"
#include "tools/verify/replay.h"

namespace lockstep::tools {
namespace {

constexpr double kLeastNumber = 1e-3;

}  // namespace

OutputDistance distanceOf(const io::TensorFile& got, const io::TensorFile& want) {
  OutputDistance worst;
  for (const auto& [name, expected] : want.tensors) {
    const io::Array* found = got.find(name);
    if (found == nullptr) continue;
    const std::vector<double> wanted = expected.toDoubles();
    double one = distance(found->toDoubles(), wanted, 1).rel_l2;
    if (wanted.size() == 1 && wanted[0] != 0) one *= std::min(1.0, std::abs(wanted[0]) / kLeastNumber);
    if (std::isnan(one)) one = INFINITY;
    if (one <= worst.relative) continue;
    worst = {.relative = one, .name = name};
  }
  return worst;
}

Result<OutputDistance> distanceTogether(const KernelCheck& check, const io::TensorFile& inputs, const detail::Device& device) {
  LS_TRY(const Replayed together, runStage(check.program(), inputs, device));
  return distanceOf(together.outputs, check.outputs());
}

}  // namespace lockstep::tools
