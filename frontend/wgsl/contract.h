// SPDX-License-Identifier: Apache-2.0
// What a kernel's text asks of its host, in comments:
//   // lockstep: dispatch(ceil_div(length(x), 64), 1, 1)
//   // lockstep: require(length(y) == length(x) && params.n <= length(x))
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/diagnostic.h"

namespace lockstep::wgsl {

/// A part of an expression; its operands stand before it in Contract::parts.
struct ContractPart {
  enum class Kind : uint8_t {
    Number,         ///< a literal, or a constant or override with a value
    Unknown,        ///< an override without a value
    Length,         ///< length(NAME): elements of the array that a variable is or ends with
    Size,           ///< size(NAME): bytes that are bound to a variable
    Value,          ///< NAME or NAME.member...: an integer in a buffer
    Workgroups,     ///< workgroups.x: of the dispatch
    WorkgroupSize,  ///< workgroup_size.x: of the entry point
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    CeilDivide,
    Minimum,
    Maximum,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
  };
  Kind kind = Kind::Number;
  int64_t number = 0;
  uint32_t axis = 0;              ///< Workgroups, WorkgroupSize
  std::vector<std::string> path;  ///< Length, Size, Value: the variable, and members of it
  uint32_t left = 0, right = 0;   ///< of operators
  std::string text;               ///< as it is written
};

struct Contract {
  bool is_dispatch = false;
  std::string text;                 ///< "dispatch(ceil_div(length(x), 64))"
  std::string entry;                ///< the entry point that stands next after it, or else the last one; empty where there is none
  std::vector<ContractPart> parts;  ///< operands before what they belong to
  std::vector<uint32_t> wanted;     ///< dispatch: workgroups in x, y and z; require: the condition
  Location where;
  uint32_t length = 1;          ///< code points, for the excerpt
  uint32_t begin = 0, end = 0;  ///< the same place as offsets into the text
  /// Whether it is for its entry point alone: a dispatch, and a condition that names workgroups. Others are for each entry point that uses
  /// all of their variables.
  [[nodiscard]] bool isOfEntry() const;
  /// The variables that it names, each once.
  [[nodiscard]] std::vector<std::string> variables() const;
};

/// What the host gave: of kinds Length, Size, Value, Workgroups and WorkgroupSize. Nothing where it is not known.
using ContractValues = std::function<std::optional<int64_t>(const ContractPart&)>;

/// Why a contract does not hold, with what its names stand for: "length(x) = 100, params.n = 120". Nothing if it holds, or if a value is
/// not known. Numbers are 64-bit integers; a division by zero and a number that is too large break it.
struct BrokenContract {
  std::string message, values;
  std::vector<std::optional<int64_t>> wanted;  ///< dispatch: the numbers of workgroups, where they can be computed
};
std::optional<BrokenContract> findBroken(const Contract& contract, const ContractValues& values);

}  // namespace lockstep::wgsl
