// SPDX-License-Identifier: Apache-2.0
// The part of JSON Schema that docs/schemas uses: type, enum, required, properties, additionalProperties, items, anyOf.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::testing {

/// What is wrong with a JSON text, with its path; empty when nothing is. Stricter than JSON Schema in one point: an object with
/// `properties` has no other keys, so that a key that is added is also described. A word of the schema that is not known is an error too.
std::string violation(std::string_view value, std::string_view schema);

/// The text of docs/schemas/NAME.json.
std::string readSchema(const std::string& name);

}  // namespace lockstep::testing
