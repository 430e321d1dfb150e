// SPDX-License-Identifier: Apache-2.0
// Private: a template that has been parsed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/text/jinja/value.h"

namespace lockstep::text::jinja {

struct Expression;
using ExpressionPointer = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind : uint8_t {
    Constant,     ///< value
    Name,         ///< name
    Attribute,    ///< parts[0].name
    Item,         ///< parts[0][parts[1]]
    Slice,        ///< parts[0][parts[1]:parts[2]:parts[3]]; the last three may be null
    Call,         ///< parts[0](arguments)
    Filter,       ///< parts[0] | name(arguments); parts[0] is null in {% filter %}
    Test,         ///< parts[0] is name(arguments), or `negated`
    Not,          ///< parts[0]
    Negative,     ///< -parts[0]
    Positive,     ///< +parts[0]
    Arithmetic,   ///< parts[0] name parts[1]
    Compare,      ///< parts[0] names[0] parts[1] names[1] parts[2] ..
    And,          ///< parts[0], parts[1]
    Or,           ///< parts[0], parts[1]
    Conditional,  ///< parts[1] if parts[0] else parts[2], which may be null
    List,
    Tuple,
    Dict,    ///< keys and values in turn
    Concat,  ///< parts as texts
  };
  Kind kind = Kind::Constant;
  uint32_t line = 0;
  bool negated = false;
  std::string name = {};
  Value value = {};
  std::vector<ExpressionPointer> parts = {};
  /// Of Call, Filter and Test: after parts[0]; names[i] is that of parts[i + 1], "" for a positional one.
  std::vector<std::string> names = {};
};

struct Statement;
using Statements = std::vector<std::unique_ptr<Statement>>;

struct Parameter {
  std::string name;
  ExpressionPointer otherwise;  ///< may be null
};

struct Statement {
  enum class Kind : uint8_t {
    Text,      ///< text
    Output,    ///< expressions[0]
    If,        ///< expressions[i] goes with bodies[i]; one body more is the else
    For,       ///< targets in expressions[0] if expressions[1] (may be null): bodies[0], else bodies[1]
    Set,       ///< targets = expressions[0]
    SetBlock,  ///< targets[0] = bodies[0], through the filters in expressions[0] (may be null)
    Macro,     ///< text(parameters): bodies[0]
    Call,      ///< expressions[0] with a caller(parameters): bodies[0]
    Filter,    ///< expressions[0], whose innermost parts[0] is null, of bodies[0]
    With,      ///< targets[i] = expressions[i] in bodies[0]
    Break,
    Continue,
    Body,  ///< bodies[0]
  };
  Kind kind = Kind::Text;
  uint32_t line = 0;
  std::string text = {};
  /// "name" or "space.member"
  std::vector<std::string> targets = {};
  bool unpacks = false;  ///< the targets are a tuple
  std::vector<ExpressionPointer> expressions = {};
  std::vector<Statements> bodies = {};
  std::vector<Parameter> parameters = {};
};

/// Throws TemplateFailure with the line.
Statements parseTemplate(std::string_view source);

}  // namespace lockstep::text::jinja
