// SPDX-License-Identifier: Apache-2.0
// JSON texts for scripts: values with members in the order of insertion, and files of one object per line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/result.h"

namespace lockstep::io {

/// A JSON text that is built from the outside in: Json::object().add("steps", 100).add("loss", 0.5). Numbers are written so that they read
/// back to the same double; numbers that are not finite become null. Text that is not UTF-8 gets replacement characters.
class Json {
 public:
  Json() : text_("null") {}
  Json(bool value) : text_(value ? "true" : "false") {}
  Json(double value);
  Json(int value) : Json(static_cast<int64_t>(value)) {}
  Json(unsigned value) : Json(static_cast<uint64_t>(value)) {}
  Json(int64_t value);
  Json(uint64_t value);
  Json(std::string_view text);
  Json(const std::string& text) : Json(std::string_view(text)) {}
  Json(const char* text) : Json(std::string_view(text)) {}
  static Json object();
  static Json array();

  /// Adds a member to an object; keys must differ.
  Json& add(std::string_view key, const Json& value);
  /// Adds an element to an array.
  Json& add(const Json& value);
  /// One line, without a line break.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  enum class Kind : uint8_t { Scalar, Object, Array };
  void append(std::string_view part);
  Kind kind_ = Kind::Scalar;
  std::string text_;
};

/// Collects lines and writes them as one file, atomically.
class JsonLines {
 public:
  void add(const Json& line) { text_ += line.text() + "\n"; }
  [[nodiscard]] const std::string& text() const { return text_; }
  Status write(const std::filesystem::path& path) const;

 private:
  std::string text_;
};

}  // namespace lockstep::io
