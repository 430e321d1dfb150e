// SPDX-License-Identifier: Apache-2.0
#include "frontend/io/jsonl.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "frontend/io/file.h"

namespace lockstep::io {
namespace {

std::string quoteJson(std::string_view text) { return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }

}  // namespace

Json::Json(double value) : text_(std::isfinite(value) ? fmt::format("{}", value) : "null") {}
Json::Json(int64_t value) : text_(std::to_string(value)) {}
Json::Json(uint64_t value) : text_(std::to_string(value)) {}
Json::Json(std::string_view text) : text_(quoteJson(text)) {}

Json Json::object() {
  Json json;
  json.kind_ = Kind::Object;
  json.text_ = "{}";
  return json;
}

Json Json::array() {
  Json json;
  json.kind_ = Kind::Array;
  json.text_ = "[]";
  return json;
}

void Json::append(std::string_view part) {
  const char closing = text_.back();
  text_.pop_back();
  if (text_.size() > 1) text_ += ", ";
  text_ += part;
  text_ += closing;
}

Json& Json::add(std::string_view key, const Json& value) {
  if (kind_ != Kind::Object) internalError("a member for JSON that is not an object");
  append(quoteJson(key) + ": " + value.text_);
  return *this;
}

Json& Json::add(const Json& value) {
  if (kind_ != Kind::Array) internalError("an element for JSON that is not an array");
  append(value.text_);
  return *this;
}

Status JsonLines::write(const std::filesystem::path& path) const { return writeFileAtomically(path, std::string_view(text_)); }

}  // namespace lockstep::io
