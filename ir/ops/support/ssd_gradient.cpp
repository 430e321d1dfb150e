// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/waiting.h"
#include "ir/ops/support/ssd_chunks.h"

namespace lockstep::graph {

namespace {

/// In a chunk, with u = scale x, D as SsdChunks::decayBetween, W_ij = D_ij (c_i b_j), S the state before it and g what flows back to that
/// after it (Dao and Gu 2024, section 6, differentiated):
///   du_j = sum over i of W_ij dy_i + left_j g b_j
///   dc_i = sum over heads of (sum over j of D_ij (dy_i u_j) b_j + since_i S^T dy_i), and db with the roles of u, g and dy, S exchanged
///   d(log decay)_t = what flows over step t: sum over i >= t > j of dy_i W_ij u_j, and the same with the states at both ends
/// The last is added up from what does flow over step t, and not as the difference of larger sums: with a decay near 0 next to nothing
/// does.
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
    if (after_.valid()) back_ = chunks_.fromSteps(chunks_.flowBackFromStates(after_));
    ValueId all = chunks_.fromSteps(chunks_.flowBack(chunks_.inSteps(dy_)));
    if (back_.valid()) all = b_.add(all, back_);
    met_ = b_.make("matmul", {chunks_.byHeads(chunks_.inSteps(dy_)), b_.swapLastAxes(chunks_.byHeads(chunks_.scaled()))});
    gradients[kSsdX] = b_.mul(all, ofHeads(operands_[kSsdScale]));
    gradients[kSsdScale] = overVectors(b_.mul(all, operands_[kSsdX]));
    gradients[kSsdLogDecay] = chunks_.fromSteps(overSteps());
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

  /// [B, L, H] as [B, L, H, 1, 1], and [B, L, H, R, P] as its sums [B, L, H].
  ValueId ofHeads(ValueId x) { return b_.reshape(x, Shape{e_.batch, e_.length, e_.heads, 1, 1}); }
  ValueId overVectors(ValueId x) { return b_.make("sum", {x}, {{"axes", std::vector<int64_t>{3, 4}}, {"keep_dims", false}}); }

  /// What flows over each step, [B, C, T, H]: within the chunk, from the state before it, to that after it, and from the one to the other.
  ValueId overSteps() {
    const auto along = [](bool reverse) { return Attributes{{"axis", int64_t{2}}, {"reverse", reverse}}; };
    ValueId over = b_.constant(0, Shape{e_.batch, e_.chunks(), e_.chunk, e_.heads});
    if (e_.chunk > 1) over = b_.add(over, chunks_.overSteps(met_));
    if (states_.before.valid()) {
      const ValueId read = overVectors(b_.mul(dy_, chunks_.fromSteps(chunks_.readStates(states_.before))));
      over = b_.add(over, b_.make("cumsum", {chunks_.inSteps(read)}, along(true)));
    }
    if (after_.valid()) {
      const ValueId given = chunks_.inSteps(b_.mul(overVectors(b_.mul(back_, operands_[kSsdX])), operands_[kSsdScale]));
      over = b_.add(over, chunks_.fromBefore(b_.make("cumsum", {given}, along(false))));
    }
    return states_.before.valid() && after_.valid() ? overChunks(over) : over;
  }

  /// With what flows over whole chunks.
  ValueId overChunks(ValueId over) {
    const int64_t first = operands_.size() > kSsdInitial ? 0 : 1, own = e_.chunks() - first;  // without the zeros before the first step
    if (own == 0) return over;
    const ValueId kept = b_.mul(chunks_.ofChunks(states_.before, first, own), chunks_.decayOfChunks(first, own));
    const ValueId shared = b_.sum(b_.mul(chunks_.ofChunks(after_, first, own), kept), 3, false);
    const ValueId sums = b_.sum(b_.reshape(shared, Shape{e_.batch, own, 1, e_.heads, e_.width}), 4, false);
    return b_.add(over, b_.broadcastTo(chunks_.padded(sums, 1, first, 0), Shape(b_.shapeOf(over))));
  }

  void ofVectors(ValueId& db, ValueId& dc) {
    const Shape split{e_.batch, e_.chunks(), e_.groups, e_.headsOfGroup(), e_.rows(), e_.rows()};
    const ValueId shares = b_.sum(b_.reshape(b_.mul(met_, chunks_.decayBetween()), split), 3, false);
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
  ValueId back_;   ///< what flows back to the scaled x of steps from the states after chunks, as dy; invalid where nothing does
  ValueId met_;    ///< what dy of a row and u of a column have in common, [B, C, H, T R, T R]
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
