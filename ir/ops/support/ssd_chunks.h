// SPDX-License-Identifier: Apache-2.0
// The chunked form of ssd (Dao and Gu 2024, Transformers are SSMs, section 6), which its forward pass and its gradient share: inside of a
// chunk products of matrices, between chunks a recurrence of one state each.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/op_def.h"

namespace lockstep::graph {

/// Places of the operands of ssd.
enum SsdOperand : size_t { kSsdX, kSsdScale, kSsdLogDecay, kSsdB, kSsdC, kSsdInitial };

struct SsdExtents {
  int64_t batch, length, heads, rank, width, groups, states, chunk;
  SsdExtents(const Shape& x, const Shape& b, const Attributes& attributes)
      : batch(x.extent(0)),
        length(x.extent(1)),
        heads(x.extent(2)),
        rank(x.extent(3)),
        width(x.extent(4)),
        groups(b.extent(2)),
        states(b.extent(4)),
        chunk(std::min(attributes.get<int64_t>("chunk"), length)) {}
  [[nodiscard]] int64_t chunks() const { return (length + chunk - 1) / chunk; }
  [[nodiscard]] int64_t headsOfGroup() const { return heads / groups; }
  [[nodiscard]] int64_t rows() const { return chunk * rank; }  ///< of a chunk
  [[nodiscard]] Shape state() const { return {batch, heads, width, states}; }
};

/// Operands cut into chunks of T steps, and the decays between steps. Values are laid out by steps [B, C, T, H or G, R, W], by heads
/// [B, C, H or G, T R, W] or by groups [B, C, G, T R, H / G W]; all three are views of each other.
///
/// Decays over several steps are products of at most 1, which are exact to a rounding per step: differences of sums of logarithms would
/// lose what a large step before them has.
class SsdChunks {
 public:
  SsdChunks(Builder& builder, const SsdExtents& extents, std::span<const ValueId> operands);

  [[nodiscard]] const SsdExtents& extents() const { return e_; }
  [[nodiscard]] ValueId input() const { return input_; }         ///< b by heads, [B, C, G, T R, N]
  [[nodiscard]] ValueId output() const { return output_; }       ///< c likewise
  [[nodiscard]] ValueId scaled() { return b_.mul(x_, scale_); }  ///< x, by steps
  /// What is left at a step of what was there before its chunk, and after the chunk of what came in at a step, [B, C, T, H, 1, 1].
  [[nodiscard]] ValueId since() const { return perStep(since_); }
  [[nodiscard]] ValueId left() const { return perStep(left_); }
  [[nodiscard]] ValueId decay() const { return perStep(decay_); }  ///< of the step itself
  /// What is left after chunks of the states before them, as states.
  ValueId decayOfChunks(int64_t first, int64_t count);

  /// [B, C, H, T R, T R]: what is left at the step of a row of what came in at the step of a column, 0 for later ones.
  ValueId decayBetween() { return between(Way::Forward, 0); }
  /// y by steps, one product for what came in at steps of the chunk and for the states before it (invalid: there are none).
  ValueId read(ValueId before);
  /// The share of the states alone.
  ValueId readStates(ValueId before);
  /// The other way, what flows back to the scaled x of steps: from dy by steps, and from what flows back to the states after chunks.
  ValueId flowBack(ValueId dy);
  ValueId flowBackFromStates(ValueId after);
  /// [B, C, T, H]: what flows from the steps before each step to it and those after it, within chunks, where `met` [B, C, H, T R, T R] is
  /// what dy of a row and the scaled x of a column have in common.
  ValueId overSteps(ValueId met);

  /// The states before chunks, invalid where there are none, and those after them: [B, C, G, N, H / G P], the heads of a group side by side
  /// as the steps of x have them, so that one product makes those of all heads.
  struct States {
    ValueId before, after;
  };
  States states();

  // Changes of layout.
  ValueId inSteps(ValueId x);                                 ///< [B, L, ...] as [B, C, T, ...], with zeros after the end
  ValueId fromSteps(ValueId x);                               ///< back
  ValueId byHeads(ValueId x);                                 ///< by steps before
  ValueId fromHeads(ValueId x);                               ///< to steps
  ValueId byGroups(ValueId x);                                ///< by steps before
  ValueId stateByGroups(ValueId state);                       ///< [B, H, P, N] as that of one chunk
  ValueId stateFromGroups(ValueId state);                     ///< back
  ValueId ofChunks(ValueId x, int64_t first, int64_t count);  ///< part of axis 1
  ValueId padded(ValueId x, int64_t axis, int64_t before, int64_t after, double value = 0);
  ValueId fromBefore(ValueId x);  ///< by steps, what is at the one before, 0 at the begin of a chunk

 private:
  enum class Way : uint8_t { Forward, Backward };
  /// The decays between two steps: within a block as they are; else from a step to an end of its block, and from there to the other step.
  struct Decays {
    ValueId inside;        ///< [B, C, H, blocks, S, S], by row and column
    ValueId to_end, over;  ///< [B, C, H, blocks, S] of a row, and [B, C, H, blocks, T] from its block to a column of another one, else 0
    ValueId to_state;      ///< [B, C, H, T]
  };

  [[nodiscard]] ValueId perStep(ValueId of_heads) const;
  ValueId narrowed(ValueId x, int64_t axis, int64_t start, int64_t length);
  ValueId positions(int64_t count, const Shape& along, const Shape& shape);
  ValueId later(ValueId decay, int64_t axis);
  ValueId productsBetween(ValueId decay);
  ValueId productsToEnd(ValueId decay);
  const Decays& decays(Way way);
  ValueId ofRows(ValueId of_steps);
  ValueId between(Way way, int64_t more);
  ValueId areTogether(int64_t steps, const Shape& shape);
  ValueId squaresOfHeads(ValueId of_groups);  ///< [B, C, G, T R, ...] as [B, C, H, T R, ...]
  ValueId product(Way way, ValueId steps, ValueId factor, ValueId states);

  Builder& b_;
  SsdExtents e_;
  std::span<const ValueId> operands_;
  ValueId x_, scale_, input_, output_;
  ValueId decay_, since_, left_;  ///< [B, C, H, T]
  std::array<Decays, 2> decays_;
};

/// The gradient of ssd, with the states of its chunks computed again once what flows back is there.
std::vector<ValueId> ssdGradient(const GradientContext& context);

}  // namespace lockstep::graph
