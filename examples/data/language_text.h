// SPDX-License-Identifier: Apache-2.0
// A text for a language model, and the part of it that is kept for tests.
#pragma once

#include <string>

namespace lockstep::examples {

struct LanguageText {
  std::string train, heldout;
};
/// The file at `path`; where that is empty, the text of conversations.h. The last tenth is held out, 32 KiB at most; the cut is at the end
/// of a document, or else of a line or a character. Errors file.read, and data.text for a text that is not UTF-8 or has no tenth.
LanguageText loadLanguageText(const std::string& path);

/// What messages call it.
std::string nameOfText(const std::string& path);

}  // namespace lockstep::examples
