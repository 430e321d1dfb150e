// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/printing.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <span>

#include "backends/reference/dispatch.h"

namespace lockstep::reference {

bool PrintLog::wants(uint64_t invocation) {
  if (invocation < limit_) return true;
  ++left_out_;
  return false;
}

void PrintLog::add(PrintRecord record) {
  records_.push_back(std::move(record));
  if (records_.size() >= 2 * kMostPrintedLines) compact();
}

void PrintLog::compact() {
  std::ranges::stable_sort(records_, {}, &PrintRecord::invocation);
  if (records_.size() <= kMostPrintedLines) return;
  left_out_ += records_.size() - kMostPrintedLines;
  records_.resize(kMostPrintedLines);
  limit_ = records_.back().invocation;
}

void PrintLog::take(PrintLog other) {
  left_out_ += other.left_out_;
  std::ranges::move(other.records_, std::back_inserter(records_));
  compact();
}

void PrintLog::dropFrom(uint64_t invocation) {
  std::erase_if(records_, [&](const PrintRecord& record) { return record.invocation >= invocation; });
  left_out_ = 0;
}

std::vector<PrintRecord> PrintLog::sorted() {
  compact();
  return records_;
}

/// One record for each active lane, by lane.
void Machine::print(const Instruction& x) {
  const MemoryAccess& access = code_.accesses[x.access];
  for (uint32_t lane = 0; lane < lanes_; ++lane) {
    const uint64_t invocation = first_group_ * code_.group_lanes + lane;
    if (!isActive(lane) || !print_log_.wants(invocation)) continue;
    PrintRecord record{.invocation = invocation, .site = x.site, .words = {}};
    for (const MemoryValue& value : access.values) record.words.push_back(r_[value.slot + (value.varying ? lane : 0)]);
    print_log_.add(std::move(record));
  }
}

namespace {

double numberOf(kernel::Scalar scalar, uint32_t word) {
  switch (scalar) {
    case kernel::Scalar::Bool:
      return word != 0 ? 1 : 0;
    case kernel::Scalar::I32:
      return static_cast<int32_t>(word);
    case kernel::Scalar::U32:
      return word;
    case kernel::Scalar::F32:
    case kernel::Scalar::F16:
    case kernel::Scalar::BF16:
      return std::bit_cast<float>(word);
  }
  internalError("a scalar type out of range");
}

/// The value of a type whose scalars are the next words, in order.
PrintedValue valueOf(const kernel::TypeTable& types, kernel::TypeId id, std::span<const uint32_t>& words) {
  const kernel::Type& type = types[id];
  PrintedValue value{.scalar = type.scalar};
  const auto takeLanes = [&](PrintedValue& lanes, uint32_t count) {
    for (uint32_t lane = 0; lane < count; ++lane) lanes.lanes.push_back(numberOf(type.scalar, words[lane]));
    words = words.subspan(count);
  };
  switch (type.kind) {
    case kernel::TypeKind::Matrix:
      for (uint32_t column = 0; column < type.columns; ++column) {
        takeLanes(value.parts.emplace_back(PrintedValue{.scalar = type.scalar}), type.rows);
      }
      return value;
    case kernel::TypeKind::Array:
      for (uint32_t k = 0; k < type.count; ++k) value.parts.push_back(valueOf(types, type.element, words));
      return value;
    case kernel::TypeKind::Struct:
      for (const kernel::Member& member : type.members) {
        value.parts.push_back(valueOf(types, member.type, words));
        value.parts.back().name = member.name;
      }
      return value;
    case kernel::TypeKind::Scalar:
    case kernel::TypeKind::Vector:
      takeLanes(value, type.width());
      return value;
    case kernel::TypeKind::Void:
    case kernel::TypeKind::Atomic:
    case kernel::TypeKind::Pointer:
    case kernel::TypeKind::SubgroupMatrix:
      break;
  }
  internalError("a value of this type cannot be printed");
}

}  // namespace

Printed printedLines(PrintLog log, const Bytecode& code, const kernel::Module& module, const std::string& kernel,
                     std::array<uint32_t, 3> groups) {
  Printed printed{.lines = {}, .left_out = 0};
  std::map<uint32_t, Location> places;
  for (const PrintRecord& record : log.sorted()) {
    const kernel::Instruction& instruction = module.instructions[record.site - 1];
    auto [place, is_new] = places.try_emplace(record.site);
    if (is_new) place->second = placeOf(record.site, module, kernel);
    const InvocationIds ids = idsOf(record.invocation / code.group_lanes, record.invocation % code.group_lanes, code, groups);
    PrintedLine line{.where = place->second, .workgroup = ids.workgroup, .local = ids.local};
    if (!instruction.labels.empty()) line.text = instruction.labels[0];
    std::span<const uint32_t> words = record.words;
    for (size_t k = 0; k < instruction.operands.size(); ++k) {
      line.values.push_back(valueOf(module.types, module[instruction.operands[k]].type, words));
      if (!instruction.labels.empty()) line.values.back().name = instruction.labels[k + 1];
    }
    printed.lines.push_back(std::move(line));
  }
  printed.left_out = log.leftOut();
  return printed;
}

}  // namespace lockstep::reference
