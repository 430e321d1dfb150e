// SPDX-License-Identifier: Apache-2.0
// Calls of subgroup and quad functions.
#include <fmt/format.h>

#include "frontend/wgsl/check/checker.h"

namespace lockstep::wgsl {

Ty Checker::subgroupType(const Expr& call, Builtin builtin) {
  if (!subgroups_enabled_) {
    return fail(kType, call.span, fmt::format("'{}' is used without subgroups being enabled", call.name),
                "write 'enable subgroups;' at the top of the module");
  }
  program_.uses_subgroups = true;
  const Signature signature = info(builtin).signature;
  if (signature == Signature::SubgroupElect) return argumentCount(call, 0) ? kBool : kError;
  if (!argumentCount(call, signature == Signature::SubgroupLane ? 2 : 1)) return kError;
  if (signature == Signature::SubgroupVote) {
    if (!materialize(call.arguments[0], kBool, "argument")) return kError;
    return builtin == Builtin::SubgroupBallot ? types_.vector(kU32, 4) : kBool;
  }
  const Family family = signature == Signature::SubgroupInteger ? Family::Integer : Family::Numeric;
  if (sameArguments(call, 0, 1, family) == kError) return kError;
  // The value is exchanged while the kernel runs, so it has a concrete type.
  if (!materializeDefault(call.arguments[0])) return kError;
  if (signature == Signature::SubgroupLane && !checkLane(call, builtin)) return kError;
  return valueType(call.arguments[0]);
}

/// The second argument: a lane, a distance or a mask.
bool Checker::checkLane(const Expr& call, Builtin builtin) {
  const bool quad = builtin == Builtin::QuadBroadcast;
  const bool must_be_constant = quad || builtin == Builtin::SubgroupBroadcast;
  const bool may_be_signed = must_be_constant || builtin == Builtin::SubgroupShuffle;
  const std::string_view what = may_be_signed ? "lane" : builtin == Builtin::SubgroupShuffleXor ? "mask" : "delta";
  const ExprId lane = call.arguments[1];
  const Span where = ast_[lane].span;
  const Ty type = valueType(lane);
  if (type != kAbstractInt && type != kU32 && (type != kI32 || !may_be_signed)) {
    fail(kType, where, fmt::format("the {} of '{}' has type {}, not {}", what, call.name, name(type), may_be_signed ? "i32 or u32" : "u32"),
         type == kI32 ? "convert it with u32(...)" : "");
    return false;
  }
  const ExprInfo& given = infoOf(lane);
  if (must_be_constant && given.stage != Stage::Const) {
    fail(kConstant, where, fmt::format("the {} of '{}' is not a constant expression", what, call.name),
         quad ? "" : "use subgroupShuffle for a lane that is computed");
    return false;
  }
  const int64_t lanes = quad ? 4 : 128;
  if (given.value && (given.value->integer < 0 || given.value->integer >= lanes) && (must_be_constant || quiet_ == 0)) {
    fail(kConstant, where, fmt::format("the {} of '{}' is {}, not in 0..{}", what, call.name, given.value->integer, lanes - 1));
    return false;
  }
  return type != kAbstractInt || materialize(lane, may_be_signed ? kI32 : kU32, "argument");
}

}  // namespace lockstep::wgsl
