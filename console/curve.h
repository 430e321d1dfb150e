// SPDX-License-Identifier: Apache-2.0
// A curve drawn with the dots of Braille characters.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace lockstep::console {

/// `rows` lines of `columns` characters: the values from left to right, several that share a dot averaged, between the smallest and the
/// largest of them. The axis is logarithmic when all are positive and more than ten times apart; the first and the last line begin with
/// their ends of the axis, which takes ten of the columns. Values that are not finite leave a gap. No lines for no finite value.
std::vector<std::string> drawCurve(std::span<const float> values, int columns, int rows);

/// One line of at most `columns` blocks of eight heights: the last values, between the smallest and the largest of them. A value that is
/// not finite leaves a gap.
std::string sparkline(std::span<const double> values, size_t columns);

}  // namespace lockstep::console
