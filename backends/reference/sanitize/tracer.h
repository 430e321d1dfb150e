// SPDX-License-Identifier: Apache-2.0
// How some invocations of one workgroup computed their values: each operation with the values that it used.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "backends/reference/machine.h"

namespace lockstep::reference {

/// A scalar of a variable, as an access sees it.
struct TracedPlace {
  uint32_t variable = UINT32_MAX;  ///< index into Bytecode::variables
  uint64_t byte = 0;               ///< from the start of the variable
  uint32_t size = 4;               ///< bytes: 4, or 2 of an f16
  uint32_t component = 0;          ///< which of the access's values
};

/// A value that an invocation computed, loaded or stored.
struct TraceNode {
  enum class Kind : uint8_t { Computed, Loaded, Stored };
  Kind kind = Kind::Computed;
  Opcode op = Opcode::Move;  ///< of an atomic that computes: the operation that it does
  uint32_t site = 0;
  uint32_t instruction = 0;  ///< index into Bytecode::instructions
  uint32_t lane = 0;
  uint32_t bits = 0;    ///< of an f16 in memory its 16 bits
  TracedPlace place{};  ///< of loads and stores
  static constexpr uint32_t kNone = UINT32_MAX;
  std::array<uint32_t, 3> from{kNone, kNone, kNone};  ///< nodes of the operands; of a load, the store that it read
  std::array<uint32_t, 3> operands{};                 ///< bits
};

class Tracer {
 public:
  /// Watches for stores to `target`, and follows `lanes` of workgroup `group` (UINT64_MAX: nobody).
  Tracer(const Bytecode& code, const TracedPlace& target, uint64_t group, std::set<uint32_t> lanes);

  void beginGroup(uint64_t group);
  void before(const Instruction& x, const uint32_t* r);
  void after(const Instruction& x, const uint32_t* r, const uint32_t* active);
  /// After an instruction whose results are not taken apart further.
  void leaf(const Instruction& x, const uint32_t* r, const uint32_t* active);
  /// A lane loads or stores one scalar of an access; `bits` is its value.
  void load(const Instruction& x, const TracedPlace& place, uint32_t lane, uint32_t slot, uint32_t bits);
  void store(const Instruction& x, const TracedPlace& place, uint32_t lane, uint32_t slot, uint32_t bits);
  struct Atomic {
    uint32_t result = 0, operand = 0;  ///< slots
    uint32_t old_bits = 0, operand_bits = 0, stored_bits = 0;
    bool stores = true;
  };
  void atomic(const Instruction& x, const TracedPlace& place, uint32_t lane, const Atomic& atomic);
  void splat(const Instruction& x, const uint32_t* r, const uint32_t* active, uint32_t lanes);
  [[nodiscard]] bool isFollowing() const { return following_; }
  [[nodiscard]] bool follows(uint32_t lane) const { return following_ && lanes_.contains(lane); }

  struct Writer {
    uint64_t group = 0;
    uint32_t lane = 0;
  };
  /// Who stored to the target last.
  [[nodiscard]] const std::optional<Writer>& writer() const { return writer_; }
  /// The node of that store.
  [[nodiscard]] uint32_t result() const { return result_; }
  [[nodiscard]] const std::vector<TraceNode>& nodes() const { return nodes_; }
  /// Lanes that stored something that a followed lane loaded, and are not followed themselves.
  [[nodiscard]] const std::set<uint32_t>& wanted() const { return wanted_; }

 private:
  struct Stored {
    uint32_t lane = 0;
    uint32_t node = TraceNode::kNone;
  };
  /// By variable and byte; memory of a lane has its lane, too.
  using Key = std::array<uint64_t, 3>;
  [[nodiscard]] Key keyOf(const TracedPlace& place, uint32_t lane) const;
  [[nodiscard]] uint32_t indexOf(const Instruction& x) const { return static_cast<uint32_t>(&x - code_.instructions.data()); }
  uint32_t add(const TraceNode& node);
  void storeNode(const Instruction& x, const TracedPlace& place, uint32_t lane, uint32_t from, uint32_t bits);

  const Bytecode& code_;
  TracedPlace target_;
  uint64_t group_, now_ = 0;
  std::set<uint32_t> lanes_, wanted_;
  bool following_ = false;
  std::optional<Writer> writer_;
  uint32_t result_ = TraceNode::kNone;
  std::vector<TraceNode> nodes_;
  std::vector<uint32_t> file_;      ///< the node of each word of the register file
  std::vector<TraceNode> running_;  ///< what the instruction makes, by lane
  std::map<Key, Stored> stored_;
};

}  // namespace lockstep::reference
