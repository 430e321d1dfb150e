// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "frontend/text/jinja/builtins.h"
#include "frontend/text/unicode.h"

namespace lockstep::text::jinja {
namespace {

/// As Jinja names kinds of values: "'dict object' has no attribute 'x'".
std::string objectName(const Value& value) { return value.isNone() ? "None" : value.typeName() + " object"; }

void failIfUndefined(const Value& value) {
  if (const Undefined* reason = std::get_if<Undefined>(&value.any())) failRender(reason->message);
}

std::optional<Value> ofLoop(Loop& loop, const std::string& name) {
  const auto size = static_cast<int64_t>(loop.items->size()), index = static_cast<int64_t>(loop.index);
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(size - index);
  if (name == "revindex0") return Value(size - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == size);
  if (name == "length") return Value(size);
  if (name == "depth") return Value(static_cast<int64_t>(loop.depth));
  if (name == "depth0") return Value(static_cast<int64_t>(loop.depth) - 1);
  if (name == "previtem") return index == 0 ? Value::undefined("there is no previous item") : (*loop.items)[loop.index - 1];
  if (name == "nextitem") return index + 1 == size ? Value::undefined("there is no next item") : (*loop.items)[loop.index + 1];
  return std::nullopt;
}

std::optional<Value> ofLoopMethod(const Value& subject, const std::string& name) {
  if (name == "cycle") {
    return Value::function("cycle", [subject](const Arguments& arguments) {
      if (arguments.positional.empty()) failRender("no items for cycling given");
      return arguments.positional[subject.loop()->index % arguments.positional.size()];
    });
  }
  if (name == "changed") {
    return Value::function("changed", [subject](const Arguments& arguments) {
      Loop& loop = *subject.loop();
      const bool same = loop.has_changed && std::ranges::equal(loop.last_changed, arguments.positional,
                                                               [](const Value& a, const Value& b) { return equal(a, b); });
      loop.has_changed = true;
      loop.last_changed = arguments.positional;
      return Value(!same);
    });
  }
  return std::nullopt;
}

int64_t boundOf(const Value& value, int64_t otherwise, const char* what) {
  if (value.isNone()) return otherwise;
  if (!value.isWhole()) failRender(fmt::format("slice indices must be integers or None, not {} ({})", value.typeName(), what));
  return value.whole();
}

/// The indices that a slice of a sequence of `size` takes, as Python has them.
std::vector<size_t> sliceIndices(int64_t size, const Value& start, const Value& stop, const Value& step) {
  const int64_t by = boundOf(step, 1, "step");
  if (by == 0) failRender("slice step cannot be zero");
  const auto clamp = [&](int64_t bound) {
    if (bound < 0) bound = std::max<int64_t>(bound, -size) + size;
    return by > 0 ? std::min(bound, size) : std::min(bound, size - 1);
  };
  // A negative start beyond the front is before the first element when going backwards.
  const auto place = [&](const Value& value, int64_t otherwise, const char* what) {
    if (value.isNone()) return otherwise;
    const int64_t bound = boundOf(value, 0, what);
    return by < 0 && bound < -size ? int64_t{-1} : clamp(bound);
  };
  const int64_t first = place(start, by > 0 ? 0 : size - 1, "start"), last = place(stop, by > 0 ? size : -1, "stop");
  std::vector<size_t> indices;
  if (by > 0) {
    for (int64_t i = first; i < last; i += std::min(by, size + 1)) indices.push_back(static_cast<size_t>(i));
  } else {
    for (int64_t i = first; i > last; i += std::max(by, -size - 1)) indices.push_back(static_cast<size_t>(i));
  }
  return indices;
}

}  // namespace

Value attributeOf(const Value& subject, const std::string& name) {
  failIfUndefined(subject);
  if (subject.loop() != nullptr) {
    if (const std::optional<Value> field = ofLoop(*subject.loop(), name)) return *field;
    if (const std::optional<Value> method = ofLoopMethod(subject, name)) return *method;
  }
  if (const Namespace* space = subject.space(); space != nullptr) {
    const auto member = std::ranges::find_if(space->members, [&](const auto& each) { return each.first == name; });
    if (member != space->members.end()) return member->second;
  }
  if (const std::optional<Value> method = methodOf(subject, name)) return *method;
  if (const Value* member = subject.find(Value(name))) return *member;
  return Value::undefined(fmt::format("'{}' has no attribute '{}'", objectName(subject), name));
}

Value itemOf(const Value& subject, const Value& key) {
  failIfUndefined(subject);
  if (subject.dict() != nullptr) {
    if (const Value* item = subject.find(key)) return *item;
  } else if (key.isWhole() && (subject.list() != nullptr || subject.text() != nullptr)) {
    const size_t count = subject.list() != nullptr ? subject.list()->items.size() : countCodePoints(*subject.text());
    const int64_t size = static_cast<int64_t>(count), index = key.whole() < 0 ? key.whole() + size : key.whole();
    if (index >= 0 && index < size) {
      if (subject.list() != nullptr) return subject.list()->items[static_cast<size_t>(index)];
      size_t at = 0;
      for (int64_t i = 0; i < index; ++i) at += utf8Length((*subject.text())[at]);
      return Value(utf8Of(nextCodePoint(*subject.text(), at)));
    }
  }
  if (key.text() != nullptr) return attributeOf(subject, *key.text());
  return Value::undefined(fmt::format("{} has no element {}", objectName(subject), key.repr()));
}

Value sliceOf(const Value& subject, const Value& start, const Value& stop, const Value& step) {
  failIfUndefined(subject);
  if (subject.list() == nullptr && subject.text() == nullptr) {
    if (subject.dict() != nullptr) failRender("unhashable type: 'slice'");
    failRender(fmt::format("'{}' object is not subscriptable", subject.typeName()));
  }
  const Values items = subject.iterate();
  Values taken;
  for (const size_t index : sliceIndices(static_cast<int64_t>(items.size()), start, stop, step)) taken.push_back(items[index]);
  if (subject.list() != nullptr) return Value::list(std::move(taken), subject.list()->is_tuple);
  std::string text;
  for (const Value& character : taken) text += *character.text();
  return Value(std::move(text));
}

const Value* Reader::get(std::string_view name) {
  if (place_ < arguments_.positional.size()) return &arguments_.positional[place_++];
  const auto found = std::ranges::find_if(arguments_.named, [&](const auto& argument) { return argument.first == name; });
  if (found == arguments_.named.end()) return nullptr;
  ++named_;
  return &found->second;
}

Value Reader::get(std::string_view name, const Value& otherwise) {
  const Value* value = get(name);
  return value == nullptr ? otherwise : *value;
}

std::string Reader::text(std::string_view name) {
  const Value* value = get(name);
  if (value == nullptr) failRender(fmt::format("{}() misses its argument '{}'", function_, name));
  failIfUndefined(*value);
  if (value->text() == nullptr) failRender(fmt::format("{}(): '{}' is {}, wanted str", function_, name, value->typeName()));
  return *value->text();
}

std::string Reader::text(std::string_view name, std::string_view otherwise) {
  const Value* value = get(name);
  if (value == nullptr || value->isNone()) return std::string(otherwise);
  failIfUndefined(*value);
  if (value->text() == nullptr) failRender(fmt::format("{}(): '{}' is {}, wanted str", function_, name, value->typeName()));
  return *value->text();
}

int64_t Reader::whole(std::string_view name, int64_t otherwise) {
  const Value* value = get(name);
  if (value == nullptr || value->isNone()) return otherwise;
  if (!value->isWhole()) failRender(fmt::format("{}(): '{}' is {}, wanted int", function_, name, value->typeName()));
  return value->whole();
}

bool Reader::truth(std::string_view name, bool otherwise) {
  const Value* value = get(name);
  return value == nullptr ? otherwise : value->truth();
}

void Reader::done() const {
  if (place_ < arguments_.positional.size()) failRender(fmt::format("{}() takes fewer arguments", function_));
  if (named_ < arguments_.named.size()) failRender(fmt::format("{}() does not take all of these arguments with names", function_));
}

}  // namespace lockstep::text::jinja
