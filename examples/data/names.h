// SPDX-License-Identifier: Apache-2.0
// Names, one letter per token: lists that ship, or a file of one name per line.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::examples {

/// Given names of a to z, in alphabetical order.
std::span<const char* const> givenNames();
/// Forty creatures that were made up for this.
std::span<const char* const> creatureNames();

/// The lines of a file, in small letters, without those that have other characters or a length outside [shortest, longest]; `ours` when the
/// path is empty. Throws Error "data.names" when none is left.
std::vector<std::string> loadNames(const std::string& path, std::span<const char* const> ours, size_t shortest, size_t longest);

/// Inputs of a language model: i32 [names, length] tokens and targets, f32 [names, length] mask, which sums to 1.
struct NameBatch {
  std::vector<int32_t> tokens, targets;
  std::vector<float> mask;
};
/// The sequence of a name is `edge`, its letters ('a' is `first_letter`), `edge` again, and `padding` up to the length.
NameBatch nameBatch(std::span<const std::string> names, size_t length, int32_t first_letter, int32_t edge, int32_t padding);

/// Letters up to the first token that is none.
std::string nameOf(std::span<const int32_t> tokens, int32_t first_letter);

}  // namespace lockstep::examples
