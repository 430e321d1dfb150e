// SPDX-License-Identifier: Apache-2.0
// Private: filters, tests, and the attributes and methods of values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "frontend/text/jinja/value.h"

namespace lockstep::text::jinja {

bool isFilter(std::string_view name);
bool isTest(std::string_view name);
/// For messages.
std::string filterNames();
std::string testNames();

Value applyFilter(std::string_view name, const Value& subject, const Arguments& arguments);
bool applyTest(std::string_view name, const Value& subject, const Arguments& arguments);

/// subject.name, subject[key] and subject[start:stop:step]; what is not there is undefined.
Value attributeOf(const Value& subject, const std::string& name);
Value itemOf(const Value& subject, const Value& key);
Value sliceOf(const Value& subject, const Value& start, const Value& stop, const Value& step);

/// "text.strip" as a function; nothing where the kind of value has no such method.
std::optional<Value> methodOf(const Value& subject, const std::string& name);

/// The arguments of a function, by place or name. Refuses more than there are.
class Reader {
 public:
  Reader(std::string_view function, const Arguments& arguments) : function_(function), arguments_(arguments) {}
  /// Null where it was not given.
  const Value* get(std::string_view name);
  Value get(std::string_view name, const Value& otherwise);
  std::string text(std::string_view name);
  std::string text(std::string_view name, std::string_view otherwise);
  int64_t whole(std::string_view name, int64_t otherwise);
  bool truth(std::string_view name, bool otherwise);
  /// After the last.
  void done() const;

 private:
  std::string function_;
  const Arguments& arguments_;
  size_t place_ = 0, named_ = 0;
};

}  // namespace lockstep::text::jinja
