// SPDX-License-Identifier: Apache-2.0
// Private: what methods of texts and filters do, as Python does it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "frontend/text/jinja/value.h"

namespace lockstep::text::jinja {

/// Without the `characters` at its ends, or without white space where that is null.
std::string stripText(std::string_view text, const std::string* characters, bool left, bool right);
/// At `separator`, or at runs of white space where that is null; `most` cuts at most, all of them where it is negative.
Values splitText(std::string_view text, const std::string* separator, int64_t most, bool from_right);
Values splitLines(std::string_view text, bool keep_ends);
std::string replaceText(std::string_view text, std::string_view from, std::string_view to, int64_t most);
int64_t countText(std::string_view text, std::string_view part);
std::string capitalText(std::string_view text);
std::string titleText(std::string_view text);
/// `strict`: as str.join(), which takes texts only.
Value joinTexts(const Value& items, std::string_view between, bool strict);
std::string indentText(std::string_view text, std::string_view indent, bool first, bool blank);

}  // namespace lockstep::text::jinja
