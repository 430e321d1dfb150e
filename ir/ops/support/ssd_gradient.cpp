// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/waiting.h"
#include "ir/ops/support/ssd_chunks.h"

namespace lockstep::graph {

namespace {

/// A decay below which what crosses a step is less than the rounding of sums over the steps of a chunk.
constexpr double kNearlyNothing = 0x1p-20;

/// In a chunk, with u = scale x, D as SsdChunks::decayBetween, W_ij = D_ij (c_i b_j), S the state before it and g what flows back to that
/// after it (Dao and Gu 2024, section 6, differentiated):
///   du_j = sum over i of W_ij dy_i + left_j g b_j
///   dc_i = sum over heads of (sum over j of D_ij (dy_i u_j) b_j + since_i S^T dy_i), and db with the roles of u, g and dy, S exchanged
///   d(log decay)_t = what flows over step t: sum over i >= t > j of dy_i W_ij u_j, and the same with the states at both ends
/// The last is what step t reads of others, and what flows over step t + 1 less what step t gives to others. What a step reads of itself is
/// left out of both, so that with decays near 0 they are near 0, too. Where a step's own decay is, what comes from beyond it is taken as 0:
/// it would be the difference of two large numbers, and their rounding be all that is left of it.
///
/// What is computed by element is so for the steps that there are, and not for those that fill up the last chunk: their zeros times a NaN
/// of an earlier step would be a NaN.
class Backward {
 public:
  Backward(Builder& builder, SsdChunks& chunks, std::span<const ValueId> operands, ValueId dy, ValueId final_gradient)
      : b_(builder), chunks_(chunks), e_(chunks.extents()), operands_(operands), dy_(dy), states_(chunks.states()) {
    flowBack(final_gradient, operands.size() > kSsdInitial);
  }

  std::vector<ValueId> run() {
    std::vector<ValueId> gradients(kSsdInitial + 1);
    ValueId all = ownStep(), given;
    if (e_.chunk > 1 || after_.valid()) {
      const ValueId others = chunks_.fromSteps(chunks_.flowBack(SsdChunks::Own::IsLeftOut, chunks_.inSteps(dy_), after_));
      given = b_.mul(overVectors(b_.mul(others, operands_[kSsdX])), operands_[kSsdScale]);
      all = b_.add(others, all);
    }
    gradients[kSsdX] = b_.mul(all, ofHeads(operands_[kSsdScale]));
    gradients[kSsdScale] = overVectors(b_.mul(all, operands_[kSsdX]));
    gradients[kSsdLogDecay] = chunks_.fromSteps(overSteps(given));
    ofVectors(gradients[kSsdB], gradients[kSsdC]);
    gradients[kSsdInitial] = to_initial_;
    return gradients;
  }

 private:
  /// What flows back to the states after chunks: of each chunk what its steps read of the state before it, and what is left of what flows
  /// back to the state after it.
  void flowBack(ValueId final_gradient, bool has_initial) {
    const int64_t first = has_initial ? 0 : 1, own = e_.chunks() - first;
    read_ = chunks_.byGroups(chunks_.inSteps(b_.mul(dy_, chunks_.fromSteps(chunks_.since()))));
    ValueId all;
    if (own > 0) {
      const ValueId output = b_.swapLastAxes(chunks_.ofChunks(chunks_.output(), first, own));
      all = b_.make("matmul", {output, chunks_.ofChunks(read_, first, own)});
    }
    const bool flows = e_.chunks() > 1 || final_gradient.valid();
    if (final_gradient.valid()) {
      const ValueId last = chunks_.stateByGroups(final_gradient);
      all = all.valid() ? b_.make("concat", {all, last}, {{"axis", int64_t{1}}}) : last;
    } else if (flows) {
      all = chunks_.padded(all, 1, 0, 1);
    }
    // Without the decay of zeros.
    const int64_t decays = own - (final_gradient.valid() ? 0 : 1);
    if (decays > 0) {
      const ValueId decay = chunks_.padded(chunks_.decayOfChunks(first, decays), 1, 0, own + (flows ? 1 : 0) - decays);
      all = b_.makeAll("linear_recurrence", {decay, all}, {{"axis", int64_t{1}}, {"reverse", true}})[1];
    }
    if (has_initial) to_initial_ = chunks_.stateFromGroups(chunks_.ofChunks(all, 0, 1));
    // As it is in memory: the scan would leave a product with it as well.
    if (flows) after_ = chunks_.ofChunks(b_.make("barrier", {all}), 1 - first, e_.chunks());
  }

  /// What flows from a step to itself, [B, L, H, R, P]: (b_s c_r) dy_r over the ranks r of the step.
  ValueId ownStep() {
    const auto ofRanks = [&](ValueId vectors, int64_t r, int64_t s) {
      return b_.reshape(vectors, Shape{e_.batch, e_.length, e_.groups, r, s, e_.states});
    };
    const ValueId met = b_.sum(b_.mul(ofRanks(operands_[kSsdC], e_.rank, 1), ofRanks(operands_[kSsdB], 1, e_.rank)), 5, false);
    const Shape factors{e_.batch, e_.length, e_.groups, 1, e_.rank, e_.rank, 1};
    const Shape flowing{e_.batch, e_.length, e_.groups, e_.headsOfGroup(), e_.rank, 1, e_.width};
    const ValueId shares = b_.mul(b_.reshape(met, factors), b_.reshape(dy_, flowing));
    return b_.reshape(b_.sum(shares, 4, false), Shape(b_.shapeOf(dy_)));
  }

  /// [B, L, H] as [B, L, H, 1, 1], and [B, L, H, R, P] as its sums [B, L, H].
  ValueId ofHeads(ValueId x) { return b_.reshape(x, Shape{e_.batch, e_.length, e_.heads, 1, 1}); }
  ValueId overVectors(ValueId x) { return b_.make("sum", {x}, {{"axes", std::vector<int64_t>{3, 4}}, {"keep_dims", false}}); }

  /// What flows over each step, [B, C, T, H], from what each gave to later ones (invalid: nothing): what it reads, and what flows over the
  /// next one without what it gave itself.
  ValueId overSteps(ValueId given) {
    const Shape shape{e_.batch, e_.chunks(), e_.chunk, e_.heads};
    const ValueId zero = b_.constant(0, shape);
    ValueId read = zero, more = zero;
    if (e_.chunk > 1 || states_.before.valid()) {
      const ValueId others = chunks_.fromSteps(chunks_.read(SsdChunks::Own::IsLeftOut, states_.before));
      read = chunks_.inSteps(overVectors(b_.mul(dy_, others)));
      more = chunks_.fromNext(read);
    }
    if (!given.valid()) return read;
    if (after_.valid()) {
      const ValueId shared = b_.sum(b_.mul(after_, states_.after), 3, false);
      const ValueId over_end = b_.sum(b_.reshape(shared, Shape{e_.batch, e_.chunks(), 1, e_.heads, e_.width}), 4, false);
      more = b_.add(more, chunks_.atEnd(over_end));
    }
    more = b_.sub(more, chunks_.inSteps(given));
    const ValueId decay = b_.reshape(chunks_.decay(), shape);
    const ValueId ends = b_.make("less", {decay, b_.constant(kNearlyNothing, shape)});
    const ValueId factor = b_.make("where", {ends, zero, b_.constant(1, shape)});
    more = b_.make("where", {ends, zero, more});
    return b_.add(read, b_.makeAll("linear_recurrence", {factor, more}, {{"axis", int64_t{2}}, {"reverse", true}})[1]);
  }

  void ofVectors(ValueId& db, ValueId& dc) {
    const Shape split{e_.batch, e_.chunks(), e_.groups, e_.headsOfGroup(), e_.rows(), e_.rows()};
    const ValueId met = b_.make("matmul", {chunks_.byHeads(chunks_.inSteps(dy_)), b_.swapLastAxes(chunks_.byHeads(chunks_.scaled()))});
    const ValueId shares = b_.sum(b_.reshape(b_.mul(met, chunks_.decayBetween()), split), 3, false);
    ValueId to_b = b_.make("matmul", {b_.swapLastAxes(shares), chunks_.output()});
    ValueId to_c = b_.make("matmul", {shares, chunks_.input()});
    if (after_.valid()) {
      const ValueId kept = chunks_.byGroups(b_.mul(chunks_.scaled(), chunks_.left()));
      to_b = b_.add(to_b, b_.make("matmul", {kept, b_.swapLastAxes(after_)}));
    }
    if (states_.before.valid()) to_c = b_.add(to_c, b_.make("matmul", {read_, b_.swapLastAxes(states_.before)}));
    db = chunks_.fromSteps(chunks_.fromHeads(to_b));
    dc = chunks_.fromSteps(chunks_.fromHeads(to_c));
  }

  Builder& b_;
  SsdChunks& chunks_;
  const SsdExtents& e_;
  std::span<const ValueId> operands_;
  ValueId dy_;
  SsdChunks::States states_;
  ValueId read_;   ///< dy times what is left of the state before the chunk, by groups
  ValueId after_;  ///< what flows back to the states after chunks; invalid where nothing does
  ValueId to_initial_;
};

}  // namespace

std::vector<ValueId> ssdGradient(const GradientContext& g) {
  Builder& b = g.builder;
  // No state is kept from the forward pass on.
  const std::vector<ValueId> operands = waitFor(b, g.operands, g.cotangents);
  const SsdExtents e(b.shapeOf(operands[kSsdX]), b.shapeOf(operands[kSsdB]), g.node.attributes);
  SsdChunks chunks(b, e, operands);
  const ValueId dy = g.cotangents[0].valid() ? g.cotangents[0] : b.constant(0, Shape(b.shapeOf(operands[kSsdX])));
  std::vector<ValueId> gradients = Backward(b, chunks, operands, dy, g.cotangents[1]).run();
  gradients.resize(operands.size());
  return gradients;
}

}  // namespace lockstep::graph
