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

/// A word of a buffer's variable.
struct TracedWord {
  uint32_t variable = 0;  ///< index into Bytecode::variables
  uint64_t word = 0;
};

/// A value that an invocation computed, loaded or stored.
struct TraceNode {
  enum class Kind : uint8_t { Computed, Loaded, Stored };
  Kind kind = Kind::Computed;
  Opcode op = Opcode::Move;
  uint32_t site = 0;
  uint32_t lane = 0;
  uint32_t bits = 0;
  uint32_t variable = UINT32_MAX;  ///< of loads and stores
  uint64_t word = 0;               ///< of loads and stores, in the memory of the variable's home
  static constexpr uint32_t kNone = UINT32_MAX;
  std::array<uint32_t, 3> from{kNone, kNone, kNone};  ///< nodes of the operands; of a load, the store that it read
  std::array<uint32_t, 3> operands{};                 ///< bits
};

class Tracer {
 public:
  /// Watches for stores to `target`, and follows `lanes` of workgroup `group` (UINT64_MAX: nobody).
  Tracer(const Bytecode& code, const TracedWord& target, uint64_t group, std::set<uint32_t> lanes);

  void beginGroup(uint64_t group);
  void before(const Instruction& x, const uint32_t* r);
  void after(const Instruction& x, const uint32_t* r, const uint32_t* active);
  /// A lane loads or stores one word of an access; `bits` is its value.
  void load(const Instruction& x, const MemoryAccess& access, uint64_t word, uint32_t lane, uint32_t slot, uint32_t bits);
  void store(const Instruction& x, const MemoryAccess& access, uint64_t word, uint32_t lane, uint32_t slot, uint32_t bits);
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
  /// By variable and word; memory of a lane has its lane, too.
  using Place = std::array<uint64_t, 3>;
  [[nodiscard]] static Place placeOf(const MemoryAccess& access, uint64_t word, uint32_t lane);
  uint32_t add(const TraceNode& node);

  TracedWord target_;
  uint64_t group_, now_ = 0;
  std::set<uint32_t> lanes_, wanted_;
  bool following_ = false;
  std::optional<Writer> writer_;
  uint32_t result_ = TraceNode::kNone;
  std::vector<TraceNode> nodes_;
  std::vector<uint32_t> file_;      ///< the node of each word of the register file
  std::vector<TraceNode> running_;  ///< what the instruction makes, by lane
  std::map<Place, Stored> stored_;
};

}  // namespace lockstep::reference
