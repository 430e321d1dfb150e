// SPDX-License-Identifier: Apache-2.0
#include "backends/fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "ir/kernel/builder.h"

namespace lockstep {
namespace {

using kernel::BlockId;
using kernel::InstructionId;
using kernel::Op;
using kernel::OpGroup;
using kernel::Scalar;
using kernel::TypeRule;
using kernel::ValueId;

constexpr uint32_t kExponent = 0x7f800000u, kMagnitude = 0x7fffffffu;  ///< of an f32; infinities and NaNs have all bits of the exponent
constexpr int32_t kMostUlp = 1 << 24;

class Planting {
 public:
  Planting(kernel::Module module, const Fault& fault) : builder_(std::move(module)), m_(builder_.module()), fault_(fault) {}

  kernel::Module run() {
    const size_t blocks = m_.blocks.size();
    for (size_t i = 0; i < blocks; ++i) {
      const std::vector<InstructionId> old = std::exchange(m_.blocks[i].instructions, {});
      builder_.setBlock(BlockId(i));
      for (const InstructionId id : old) {
        m_.blocks[i].instructions.push_back(id);
        if (isWrong(m_[id])) spoil(id);
      }
    }
    return kernel::canonical(builder_.take(), true);
  }

 private:
  [[nodiscard]] bool isWrong(const kernel::Instruction& x) const {
    if (x.op != fault_.op || !x.result.valid()) return false;
    const kernel::Type& type = m_.types[x.type];
    return type.scalar == Scalar::F32 && (type.kind == kernel::TypeKind::Scalar || type.kind == kernel::TypeKind::Vector);
  }

  ValueId splat(kernel::TypeId type, uint32_t bits) {
    const ValueId one = builder_.scalar(Scalar::U32, bits);
    const uint32_t width = m_.types[type].width();
    return width == 1 ? one : builder_.composite(type, std::vector<ValueId>(width, one));
  }

  /// Finite and of a larger magnitude than so many units in the last place of zero.
  ValueId above(ValueId magnitude, kernel::TypeId words, uint32_t ulp) {
    const ValueId large = builder_.make(Op::Gt, {magnitude, splat(words, ulp)});
    return builder_.make(Op::And, {large, builder_.make(Op::Lt, {magnitude, splat(words, kExponent)})});
  }

  /// What the instruction made goes on under another id, and its old id becomes the wrong value, so no reader need be changed.
  void spoil(InstructionId id) {
    const ValueId result = m_[id].result;
    const kernel::TypeId type = m_[id].type, words = m_.types.scalarOrVector(Scalar::U32, m_.types[type].width());
    const size_t first = m_.instructions.size();
    const ValueId right(m_.values.size());
    kernel::Value& value = m_.values.emplace_back();
    value.kind = kernel::ValueKind::Instruction;
    value.type = type;
    value.index = static_cast<uint32_t>(id.index());
    m_.instructions[id.index()].result = right;

    const ValueId bits = builder_.makeAs(Op::Bitcast, words, {right});
    // What has no such number beside it stays as it is: zeros are not moved towards zero, and nothing becomes infinite.
    const ValueId magnitude = builder_.make(Op::And, {bits, splat(words, kMagnitude)});
    const ValueId finite = fault_.ulp < 0 ? above(magnitude, words, static_cast<uint32_t>(-fault_.ulp) - 1)
                                          : builder_.make(Op::Lt, {magnitude, splat(words, kExponent - static_cast<uint32_t>(fault_.ulp))});
    const ValueId moved = builder_.make(Op::Add, {bits, splat(words, static_cast<uint32_t>(fault_.ulp))});
    const ValueId chosen = builder_.make(Op::Select, {bits, moved, finite});
    builder_.makeAs(Op::Bitcast, type, {chosen});

    const size_t last = m_.instructions.size() - 1;
    m_.instructions[last].result = result;
    m_.values[result.index()].index = static_cast<uint32_t>(last);
    for (size_t i = first; i <= last; ++i) {
      m_.instructions[i].origin = m_[id].origin;
      m_.instructions[i].location = m_[id].location;
    }
  }

  kernel::Builder builder_;
  kernel::Module& m_;
  const Fault& fault_;
};

class FaultyBackend : public Backend {
 public:
  FaultyBackend(std::unique_ptr<Backend> backend, const Fault& fault) : backend_(std::move(backend)), fault_(fault) {}
  [[nodiscard]] const DeviceInfo& device() const override { return backend_->device(); }
  Result<std::shared_ptr<Memory>> allocate(uint64_t bytes) override { return backend_->allocate(bytes); }
  Result<std::unique_ptr<Executable>> compile(const program::ValidProgram& program) override {
    program::Program wrong = *program;
    for (program::Kernel& kernel : wrong.kernels) {
      if (kernel.name.find(fault_.kernel) == std::string::npos) continue;
      kernel.code = plantFault(std::get<kernel::Module>(kernel.code), fault_);
    }
    LS_TRY(const program::ValidProgram valid, program::validate(std::move(wrong)));
    return backend_->compile(valid);
  }
  [[nodiscard]] Result<std::optional<KernelListing>> list(const kernel::ValidModule& module) const override {
    return backend_->list(module);
  }

 private:
  std::unique_ptr<Backend> backend_;
  Fault fault_;
};

Failure badFault(std::string_view text, std::string why) {
  return fail("device.fault", fmt::format("'{}' does not name a fault: {}", text, why), {},
              "write an operation of kernel IR and how far it is off, for example exp+4ulp, add-1ulp or mul+9ulp@contract");
}

}  // namespace

bool canHaveFault(Op op) {
  const kernel::OpInfo& row = kernel::info(op);
  const bool computes = row.group == OpGroup::Arithmetic || row.group == OpGroup::Math;
  return computes && (row.rule == TypeRule::SameFloat || row.rule == TypeRule::SameNumeric || op == Op::Dot);
}

Result<Fault> parseFault(std::string_view text) {
  constexpr std::string_view kUnit = "ulp";
  const size_t at = std::min(text.find('@'), text.size()), sign = text.find_first_of("+-");
  const std::string_view distance = text.substr(0, at);
  if (sign >= at || !distance.ends_with(kUnit)) return badFault(text, "it has no distance");
  const std::optional<Op> op = kernel::findOp(text.substr(0, sign));
  if (!op || !canHaveFault(*op)) return badFault(text, fmt::format("'{}' is not an operation on floats", text.substr(0, sign)));
  const std::string_view digits = distance.substr(sign + 1, distance.size() - sign - 1 - kUnit.size());
  int32_t ulp = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), ulp);
  if (error != std::errc() || end != digits.end() || ulp < 1 || ulp > kMostUlp)
    return badFault(text, fmt::format("the distance is a number from 1 to {}", kMostUlp));
  if (at + 1 == text.size()) return badFault(text, "after @ stands a part of a kernel's name");
  const std::string_view kernel = text.substr(std::min(at + 1, text.size()));
  return Fault{.op = *op, .ulp = text[sign] == '-' ? -ulp : ulp, .kernel = std::string(kernel)};
}

kernel::Module plantFault(const kernel::Module& module, const Fault& fault) {
  // What passes left over may hold instructions that also stand elsewhere.
  return Planting(kernel::canonical(module, true), fault).run();
}

std::unique_ptr<Backend> withFault(std::unique_ptr<Backend> backend, const Fault& fault) {
  return std::make_unique<FaultyBackend>(std::move(backend), fault);
}

}  // namespace lockstep
