// SPDX-License-Identifier: Apache-2.0
// Strings that end a text which comes in pieces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::text {

/// Gives a text on piece by piece, up to the first place where one of the strings begins. What may be the beginning of one is held back
/// until it is known. Of strings that begin at the same place any ends the text there.
class StopStrings {
 public:
  /// Empty strings are left out.
  explicit StopStrings(std::vector<std::string> strings);
  /// What of the text is known to come before any of them; "" after it ended.
  std::string push(std::string_view piece);
  /// What is held back, when no more pieces come.
  std::string finish();
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  std::vector<std::string> strings_;
  std::string held_;
  bool ended_ = false;
};

}  // namespace lockstep::text
