// SPDX-License-Identifier: Apache-2.0
// A text for a small language model: stories of who put what where, and conversations about such things. It is made up, so that it ships
// with the program, and so that what is held out is new.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep::examples {

/// The special tokens of the text. Documents end with the first; a turn of a conversation is kTurn, "user" or "assistant", a new line, what
/// is said, and kTurnEnd, as in ChatML.
constexpr const char *kTextEnd = "<|endoftext|>", *kTurn = "<|im_start|>", *kTurnEnd = "<|im_end|>";
/// What begins an answer.
constexpr const char* kAnswer = "<|im_start|>assistant\n";

/// So many documents, always the same.
std::string madeUpText(size_t documents);

}  // namespace lockstep::examples
