// SPDX-License-Identifier: Apache-2.0
// Which attributes may stand where, with how many arguments.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "frontend/wgsl/check/checker.h"
#include "ir/support/nearest.h"

namespace lockstep::wgsl {
namespace {

constexpr unsigned bit(AttributePlace place) { return 1u << static_cast<unsigned>(place); }

constexpr unsigned kFunction = bit(AttributePlace::Function), kMember = bit(AttributePlace::Member),
                   kVariable = bit(AttributePlace::Variable), kOverridePlace = bit(AttributePlace::Override);
/// Inputs and outputs of entry points, of any stage.
constexpr unsigned kInterface = kMember | bit(AttributePlace::EntryParameter) | bit(AttributePlace::EntryResult);

struct AttributeRow {
  std::string_view name;
  size_t least, most;  ///< arguments; without any there are no parentheses
  unsigned places;
};

constexpr std::array kAttributes = std::to_array<AttributeRow>({
    {"align", 1, 1, kMember},
    {"binding", 1, 1, kVariable},
    {"blend_src", 1, 1, kInterface},
    {"builtin", 1, 1, kInterface},
    {"compute", 0, 0, kFunction},
    {"fragment", 0, 0, kFunction},
    {"group", 1, 1, kVariable},
    {"id", 1, 1, kOverridePlace},
    {"interpolate", 1, 2, kInterface},
    {"invariant", 0, 0, kInterface},
    {"location", 1, 1, kInterface},
    {"must_use", 0, 0, kFunction},
    {"size", 1, 1, kMember},
    {"subgroup_size", 1, 1, kFunction},
    {"vertex", 0, 0, kFunction},
    {"workgroup_size", 1, 3, kFunction},
});

constexpr std::array<std::string_view, 8> kPlaceNames{"a function",  "a parameter of an entry point",
                                                      "a parameter", "the result of an entry point",
                                                      "a result",    "a struct member",
                                                      "a variable",  "an override"};

std::vector<std::string_view> attributeNames() {
  std::vector<std::string_view> names;
  for (const AttributeRow& row : kAttributes) names.push_back(row.name);
  return names;
}

}  // namespace

bool Checker::checkAttributes(const std::vector<Attribute>& attributes, AttributePlace place) {
  bool good = true;
  const auto bad = [&](Span where, std::string message, std::vector<Note> notes = {}) {
    fail(kAttribute, where, std::move(message), {}, std::move(notes));
    good = false;
  };
  for (const Attribute& attribute : attributes) {
    if (attribute.name == "diagnostic") {
      if (place != AttributePlace::Function)
        bad(attribute.span, fmt::format("attribute 'diagnostic' is not allowed on {}", kPlaceNames[static_cast<size_t>(place)]));
      continue;
    }
    const auto* row = std::find_if(kAttributes.begin(), kAttributes.end(), [&](const AttributeRow& r) { return r.name == attribute.name; });
    if (row == kAttributes.end()) {
      const std::string near = attribute.name.size() > 40 ? "" : nearestName(attribute.name, attributeNames());
      fail(kAttribute, attribute.span, fmt::format("'{}' is not an attribute of WGSL", attribute.name),
           near.empty() ? "" : fmt::format("did you mean '{}'?", near));
      good = false;
      continue;
    }
    if ((row->places & bit(place)) == 0) {
      bad(attribute.span, fmt::format("attribute '{}' is not allowed on {}", attribute.name, kPlaceNames[static_cast<size_t>(place)]));
      continue;
    }
    const size_t count = attribute.arguments.size();
    if (row->most == 0 && attribute.has_parentheses) {
      bad(attribute.span, fmt::format("attribute '{}' takes no arguments", attribute.name));
    } else if (count < row->least || count > row->most) {
      const std::string wanted = row->most == 1 ? "one argument" : fmt::format("{} to {} arguments", row->least, row->most);
      bad(attribute.span, fmt::format("attribute '{}' needs {}", attribute.name, wanted));
    }
    const auto first =
        std::find_if(attributes.begin(), attributes.end(), [&](const Attribute& other) { return other.name == attribute.name; });
    if (&*first != &attribute) {
      bad(attribute.span, fmt::format("attribute '{}' is given twice", attribute.name), {reporter_.note(first->span, "first given here")});
    }
  }
  return good;
}

/// The attributes of vertex and fragment shaders: their arguments, and what they may stand with.
bool Checker::checkInterface(const std::vector<Attribute>& attributes, Ty type) {
  bool good = true;
  const auto bad = [&](const char* code, Span where, std::string message) {
    fail(code, where, std::move(message));
    good = false;
  };
  const auto find = [&](std::string_view wanted) {
    const auto found = std::find_if(attributes.begin(), attributes.end(), [&](const Attribute& a) { return a.name == wanted; });
    return found == attributes.end() ? nullptr : &*found;
  };
  const Attribute *location = find("location"), *interpolate = find("interpolate"), *blend = find("blend_src");
  if (location != nullptr) {
    good = attributeNumber(*location).has_value() && good;
    const bool numeric = types_.isScalarOrVector(type) && types_.scalarOf(type) != kBool;
    if (!numeric && type != kError) bad(kType, location->span, fmt::format("a value of type {} cannot have a location", name(type)));
    if (find("builtin") != nullptr) bad(kAttribute, location->span, "a builtin value has no location");
  }
  if (blend != nullptr) {
    const auto number = attributeNumber(*blend);
    if (!number || *number > 1) bad(kAttribute, blend->span, "blend_src is 0 or 1");
    if (location == nullptr) bad(kAttribute, blend->span, "attribute 'blend_src' needs a location");
  }
  if (interpolate != nullptr) {
    constexpr std::array<std::string_view, 3> kTypes{"perspective", "linear", "flat"};
    constexpr std::array<std::string_view, 5> kSampling{"center", "centroid", "sample", "first", "either"};
    const auto is = [&](ExprId id, const auto& names) {
      return ast_[id].kind == ExprKind::Identifier && !ast_[id].has_templates &&
             std::find(names.begin(), names.end(), ast_[id].name) != names.end();
    };
    const auto& arguments = interpolate->arguments;
    const bool fits = is(arguments[0], kTypes) && (arguments.size() < 2 || is(arguments[1], kSampling));
    if (!fits) bad(kAttribute, interpolate->span, "the interpolation is not one that WGSL has");
    if (location == nullptr) bad(kAttribute, interpolate->span, "attribute 'interpolate' needs a location");
  }
  if (const Attribute* invariant = find("invariant")) {
    const Attribute* builtin = find("builtin");
    const bool position = builtin != nullptr && ast_[builtin->arguments[0]].name == "position";
    if (!position) bad(kAttribute, invariant->span, "attribute 'invariant' needs @builtin(position)");
  }
  return good;
}

}  // namespace lockstep::wgsl
