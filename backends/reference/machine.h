// SPDX-License-Identifier: Apache-2.0
// The machine that runs bytecode: one batch of lanes, all of them advancing together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "backends/perturb.h"
#include "backends/reference/bytecode.h"
#include "backends/reference/printing.h"
#include "backends/reference/sanitize/access_history.h"

namespace lockstep::reference {

struct Shadow;
class Shadows;
class Tracer;
class Perturber;

/// A bound range of an arena.
struct BufferView {
  uint32_t* words = nullptr;
  uint32_t count = 0;          ///< words
  uint8_t* written = nullptr;  ///< one byte per word, not 0 when it was ever written; null when nobody asks
  Shadow* shadows = nullptr;   ///< one per word; null when nobody asks
  bool is_output = false;      ///< each word is to be written once
};

/// What went wrong in a batch.
struct Fault {
  enum class Kind : uint8_t { None, OutOfBounds, Uninitialised, DivergentBarrier, EndlessLoop };
  Kind kind = Kind::None;
  uint32_t site = 0;    ///< 1 + kernel instruction id
  uint32_t access = 0;  ///< out of bounds, uninitialised
  uint32_t lane = 0;
  uint32_t index = 0;
  uint32_t length = 0;
  uint64_t first_group = 0;  ///< of the batch
};

class Watch;
/// What a value that nobody has written was used for.
enum class TaintUse : uint8_t { Arithmetic, Address, Condition, Output };

struct MachineOptions {
  bool checks = true;
  uint64_t loop_budget = uint64_t(1) << 34;  ///< iterations times lanes of a batch
  uint64_t order_seed = 0;                   ///< of workgroups, of lanes between barriers and in atomics; 0: ascending, and all together
  Watch* watch = nullptr;                    ///< of the sanitizer; the bytecode is watched then, and one thread runs
  Shadows* shadows = nullptr;                ///< of the sanitizer; one thread runs then
  Tracer* tracer = nullptr;                  ///< of why(); one thread runs then
  std::optional<Perturbation> perturbation = std::nullopt;
};

/// What workgroup memory holds that a kernel promised to write before it reads it: a NaN, and a huge index.
inline constexpr uint32_t kUnwritten = 0xffc0'dead;

class Machine {
 public:
  Machine(const Bytecode& code, std::span<const BufferView> bindings, std::array<uint32_t, 3> groups, const MachineOptions& options);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  /// Runs workgroups first .. first + count - 1 (in x, y, z order), at most Bytecode::batch_groups.
  void run(uint64_t first, uint32_t count);
  [[nodiscard]] const Fault& fault() const { return fault_; }
  /// What all batches printed so far.
  [[nodiscard]] const PrintLog& printed() const { return print_log_; }

 private:
  struct MaskFrame {
    const uint32_t* saved = nullptr;
    uint32_t active = 0;
  };
  /// Where an access finds its words.
  struct View {
    uint32_t* base = nullptr;
    uint8_t* written = nullptr;
    uint32_t limit = 0;
    bool by_lane = false;  ///< each lane adds its workgroup's base
  };

  struct HalfView {
    std::byte* base = nullptr;   ///< half h is at base + 2 h
    uint8_t* written = nullptr;  ///< of half h: written[h / 2]
    bool by_lane = false;
  };

  /// A part of a batch that runs on its own from barrier to barrier.
  struct Wave {
    std::vector<uint32_t> file;  ///< the register file
    std::vector<MaskFrame> frames;
    const uint32_t* mask = nullptr;
    uint32_t active = 0;
    uint32_t pc = 0;
    uint64_t budget = 0;
  };
  static constexpr uint32_t kEnded = UINT32_MAX;

  void prepare(uint64_t first, uint32_t count);
  /// machine_waves.cpp
  void runWaves();
  [[nodiscard]] std::vector<std::vector<uint32_t>> dealLanes(std::mt19937_64& random) const;
  /// From pc_ to the end, which makes it kEnded, or to a fault; with stops_at_barriers_ only to what follows the next barrier.
  void execute();
  /// `tracks`: whether taint_, shadows, a tracer or a perturber are there; their tests would slow the loop down.
  template <bool tracks>
  void executeLoop();
  /// Joins and branches; returns the next instruction.
  uint32_t control(const Instruction& x, uint32_t pc);
  void runMasked(const Instruction& x);
  void barrier(const Instruction& x);
  /// printing.cpp
  void print(const Instruction& x);
  /// subgroups.cpp
  void subgroup(const Instruction& x);

  // machine_watch.cpp
  void watch(const Instruction& x);
  void clampIndex(const Instruction& x);
  void noteClamped(const Instruction& x, uint32_t lane, bool varying);
  [[nodiscard]] bool isClamped(const Instruction& x, uint32_t lane) const { return clamped_site_ == x.site && clamped_[lane] != 0; }
  void watchInteger(const Instruction& x);
  void watchFloat(const Instruction& x);
  void watchAccess(const Instruction& x);
  void watchLanes(const Instruction& x, AccessHistory& history, const HistoryTime& now);
  void watchUniformLoad(const Instruction& x, AccessHistory& history, const HistoryTime& now);
  void deferRead(const Instruction& x, AccessHistory& history, const HistoryTime& now);
  void noteDeferredReads(AccessHistory& history, const HistoryTime& now);
  [[nodiscard]] bool writesTheSame(const Instruction& x, const MemoryAccess& access, const MemoryValue& value, uint32_t lane,
                                   const AccessHistory::Conflict& conflict) const;
  // machine_wraps.cpp
  void watchIndex(const Instruction& x);
  template <class Leaf>
  void watchIndexOfLanes(const Instruction& x, const Leaf& leafOf);
  void divergentBarrier(const Instruction& x, uint32_t absent);
  void endlessLoop(const Instruction& x, uint32_t pc);
  [[nodiscard]] uint32_t firstActive() const;
  [[nodiscard]] uint32_t nextActive(uint32_t lane) const;

  // machine_taint.cpp: all of it only while taint_ is not empty
  void startTaint();
  void clearTaint();
  void taintPure(const Instruction& x);
  void taintControl(const Instruction& x);
  void taintMemory(const Instruction& x);
  void taintLoad(const Instruction& x);
  void taintStore(const Instruction& x);
  void taintAtomic(const Instruction& x);
  void taintSubgroup(const Instruction& x);
  void noteRefill(const Instruction& x);
  [[nodiscard]] uint8_t taintAt(const MemoryAccess& access, uint64_t at, uint32_t lane) const;
  [[nodiscard]] uint8_t taintOf(uint32_t slot, bool varying, uint32_t lane) const { return taint_[slot + (varying ? lane : 0)]; }
  [[nodiscard]] uint8_t doubtOfResult(const Instruction& x, uint32_t lane);
  void useTainted(const Instruction& x, uint32_t slot, bool varying, TaintUse use);
  void reportTainted(const Instruction& x, uint32_t lane, TaintUse use);

  // machine_shadow.cpp: all of it only with MachineOptions::shadows
  [[nodiscard]] Shadow* shadowsOf(const MemoryAccess& access) const;
  void shadowMemory(const Instruction& x);
  void shadowLoad(const Instruction& x);
  void shadowStore(const Instruction& x);
  void shadowSubgroup(const Instruction& x);

  // machine_trace.cpp: all of it only with MachineOptions::tracer
  void traceMemory(const Instruction& x);
  /// `stored`: what the atomic of a lane left at `element` of the access's home.
  void traceAtomic(const Instruction& x, uint32_t lane, uint64_t element, uint32_t stored);
  void traceOther(const Instruction& x);

  // memory.cpp
  void memory(const Instruction& x);
  [[nodiscard]] View view(const MemoryAccess& access, uint32_t index) const;
  /// The index of each lane in one row (inactive lanes repeat an active one), checked; null when some lane is outside.
  const uint32_t* indices(const Instruction& x, uint32_t limit, IndexScan& scan);
  const uint32_t* addresses(const View& view, const MemoryAccess& access, const uint32_t* index);
  void load(const Instruction& x);
  void loadRows(const Instruction& x, const MemoryAccess& access, const View& view);
  void store(const Instruction& x);
  void storeRows(const Instruction& x, const MemoryAccess& access, const View& view);
  /// Accesses of 16-bit words, lane by lane.
  void loadHalves(const Instruction& x);
  void storeHalves(const Instruction& x);
  [[nodiscard]] HalfView halfView(const MemoryAccess& access) const;
  void laneLoad(const Instruction& x);
  void laneZero(const Instruction& x);
  void laneStore(const Instruction& x);
  void atomic(const Instruction& x);
  void address(const Instruction& x);
  void checkIndex(const Instruction& x);
  void checkWritten(const Instruction& x, const View& view, uint32_t lane, uint32_t word);
  void outOfBounds(const Instruction& x, uint32_t lane, uint32_t index, uint32_t limit);
  void zero(const MemoryAccess& access);
  const uint32_t* row(const MemoryValue& value, uint32_t scratch);
  [[nodiscard]] uint32_t indexOf(const Instruction& x, uint32_t lane) const {
    return x.a == UINT32_MAX ? 0 : (x.varying & 1) != 0 ? r_[x.a + lane] : r_[x.a];
  }
  [[nodiscard]] bool isActive(uint32_t lane) const { return mask_[lane] != 0; }
  [[nodiscard]] bool full() const { return active_ == lanes_; }
  [[nodiscard]] uint32_t* scratch(uint32_t k) const { return r_ + code_.scratch_row + k * code_.width; }
  [[nodiscard]] uint32_t* frameRow(uint32_t frame, uint32_t which) const {
    return r_ + code_.mask_row + (1 + 2 * frame + which) * code_.width;
  }

  const Bytecode& code_;
  const VectorRoutines& routines_;
  std::span<const BufferView> bindings_;
  std::array<uint32_t, 3> groups_;
  MachineOptions options_;
  std::vector<uint32_t> storage_;
  /// The register file before the first batch, when a shuffle may show what lanes that are away hold; else empty.
  std::vector<uint32_t> initial_;
  uint32_t* r_ = nullptr;  ///< register file, aligned to 64 bytes
  std::vector<uint32_t> lane_memory_, workgroup_memory_, limits_, lane_base_;
  std::vector<uint32_t> atomic_order_;  ///< lanes in the order of their atomics
  std::vector<MaskFrame> frames_;
  const uint32_t* mask_ = nullptr;
  uint32_t active_ = 0, lanes_ = 0;
  uint32_t pc_ = 0;
  bool stops_at_barriers_ = false;
  uint64_t budget_ = 0;
  uint64_t first_group_ = 0;  ///< of the batch
  PrintLog print_log_;
  // Not 0 where the word of the register file or of memory is a value that nobody has written, or one of an earlier round of a loop: see
  // kUnknownValue.
  std::vector<uint8_t> taint_, lane_taint_, workgroup_taint_;
  std::unique_ptr<Perturber> perturber_;
  std::vector<uint8_t> clamped_;  ///< by lane: whether its index of the access at clamped_site_ was out of bounds
  uint32_t clamped_site_ = 0;
  bool any_taint_ = false;  ///< in the register file, or in memory of lanes or the workgroup
  Fault fault_;
};

}  // namespace lockstep::reference
