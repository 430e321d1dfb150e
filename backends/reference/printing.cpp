// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/printing.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>

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
      return std::bit_cast<float>(word);
  }
  internalError("a scalar type out of range");
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
    PrintedLine line{.where = place->second, .workgroup = ids.workgroup, .local = ids.local, .values = {}};
    size_t word = 0;
    for (const kernel::ValueId operand : instruction.operands) {
      const kernel::Type& type = module.typeOf(operand);
      PrintedValue value{.scalar = type.scalar, .lanes = {}};
      for (uint32_t lane = 0; lane < type.width(); ++lane) value.lanes.push_back(numberOf(type.scalar, record.words[word++]));
      line.values.push_back(std::move(value));
    }
    printed.lines.push_back(std::move(line));
  }
  printed.left_out = log.leftOut();
  return printed;
}

}  // namespace lockstep::reference
