// SPDX-License-Identifier: Apache-2.0
// Two contents of one variable of a kernel, number by number: floats as floats, wherever they are in arrays, structs and vectors.
#pragma once

#include <string>

#include "backends/dispatch.h"
#include "ir/kernel/module.h"
#include "tools/verify/array_compare.h"

namespace lockstep::tools {

/// What a float may differ by. Integers must be equal. Of f16, which has 10 bits of fraction, relative tolerances above 0 count as at least
/// 2^-7 (of_largest: 2^-10).
struct FloatTolerance {
  double relative = 0;    ///< of the number
  double of_typical = 0;  ///< of the root mean square of all numbers of its member, where that is more than `relative` of the number
  double of_largest = 0;  ///< of the largest of them, in addition
  double absolute = 0;    ///< in addition
};

struct BufferDifference {
  ArrayDifference numbers;  ///< elements are numbers: components of vectors, members of structs; ulps of an f16 are its own
  std::string element;      ///< the worst one: "[3].velocity.y"
};

/// Both are of one size. Padding may differ.
BufferDifference compareBuffers(const kernel::Module& module, const kernel::GlobalVariable& variable, const Bytes& got, const Bytes& want,
                                const FloatTolerance& tolerance);

}  // namespace lockstep::tools
