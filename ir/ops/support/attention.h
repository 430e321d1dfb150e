// SPDX-License-Identifier: Apache-2.0
// What the ops of attention share: their extents and type rules, how a template sees their operands, and their evaluators' scores. With
//   s = scale q k^T + mask, hidden keys left out,   lse = log sum exp s,   p = exp(s - lse),   out = p v
// the gradients are, by delta = sum(d_out out) - d_lse along the width (Dao 2023, FlashAttention-2),
//   dv = p^T d_out,   ds = p (d_out v^T - delta),   dq = scale ds k,   dk = scale ds^T q.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/ops/support/common.h"

namespace lockstep::graph {

/// q [..., H, T, D], k [..., Hkv, S, D], v [..., Hkv, S, E].
struct AttentionExtents {
  AttentionExtents(const Shape& q, const Shape& k, const Shape& v);
  [[nodiscard]] int64_t group() const { return heads / kv_heads; }
  [[nodiscard]] int64_t batches() const;  ///< heads of all sequences
  [[nodiscard]] int64_t kvBatches() const { return batches() / group(); }
  [[nodiscard]] Shape with(std::initializer_list<int64_t> last) const;
  [[nodiscard]] Shape scores() const { return with({heads, queries, keys}); }
  [[nodiscard]] Shape out() const { return with({heads, queries, value_width}); }
  [[nodiscard]] Shape rows() const { return with({heads, queries}); }  ///< of lse
  std::vector<int64_t> leading;
  int64_t heads, kv_heads, queries, keys, width, value_width;
};
/// Of a node whose first operands are q, k and v.
AttentionExtents attentionExtents(const Graph& graph, const Node& node);

/// What the decomposition keeps in memory: the scores.
int64_t scoreElements(const Graph& graph, const Node& node);

/// The choice of one workgroup per head, and whether a head has few enough scores for it.
inline constexpr std::string_view kShortAttention = "short_attention";
bool isShort(const AttentionExtents& extents);

/// Elements of workgroup memory for a row of `width` where NAME_whole keeps it: an odd number of vectors of four.
constexpr int64_t heldRow(int64_t width) { return 4 * ((width + 3) / 4 | 1); }
/// The same for an array of numbers: whole vectors.
constexpr int64_t heldArray(int64_t elements) { return (elements + 3) / 4 * 4; }

/// What products may read in mixed precision; f32 without it.
DType lowOf(const Node& node);

/// What an operand after q, k and v is.
enum class AttentionPart : uint8_t { Out, Rows };

/// C1 to C7, the constraints of all of these ops. `parts`: the operands after q, k and v; a mask may come after them.
Status checkAttention(std::string_view op, const InferContext& context, std::initializer_list<AttentionPart> parts);

inline constexpr std::string_view kAttentionTypes = "operands are f32",
                                  kAttentionLeading = "operands have one rank of at least 3 and the same axes before the heads",
                                  kAttentionWidths = "k has the width of q, v has the heads and rows of k",
                                  kAttentionHeads = "the heads of k divide the heads of q",
                                  kAttentionOffset = "offset is at least 0, positions are below 2^31", kAttentionScale = "scale is finite",
                                  kAttentionMask = "there is at most one mask, f32, which broadcasts to the scores [..., H, T, S]",
                                  kAttentionParts = "what follows v has the types of out [..., H, T, E] and lse [..., H, T]";
inline constexpr ConstantList<Constraint> kAttentionConstraints{
    {"C1", kAttentionTypes},  {"C2", kAttentionLeading}, {"C3", kAttentionWidths}, {"C4", kAttentionHeads},
    {"C5", kAttentionOffset}, {"C6", kAttentionScale},   {"C7", kAttentionMask}};
/// Of an op whose operands after v are the results of another one.
inline constexpr ConstantList<Constraint> kAttentionPartConstraints{
    {"C1", kAttentionTypes},  {"C2", kAttentionLeading}, {"C3", kAttentionWidths}, {"C4", kAttentionHeads},
    {"C5", kAttentionOffset}, {"C6", kAttentionScale},   {"C7", kAttentionMask},   {"C8", kAttentionParts}};
inline constexpr AttributeDef kCausalAttribute{"causal", AttributeKind::Boolean, "query t sees keys 0 .. t + offset only"},
    kOffsetAttribute{"offset", AttributeKind::Integer, "position of the first query among the keys"},
    kScaleAttribute{"scale", AttributeKind::Float, "of the scores, usually 1 / sqrt(D)"},
    kRoundedAttribute{kLowAttribute, AttributeKind::DType, "16-bit type of the products in mixed precision", false};

/// Tensors of a template by their names: q, k, v and mask as above, out, d_out, lse, d_lse, delta, dq, dk and dv. There may be fewer
/// values.
std::vector<TemplateTensor> attentionTensors(std::initializer_list<std::string_view> names, const AttentionExtents& extents,
                                             const Graph& graph, std::span<const ValueId> values);
/// Its numbers.
std::vector<std::pair<std::string, double>> attentionNumbers(const AttentionExtents& extents, const Node& node, bool masked);

/// The operands and attributes of a node for evaluators; heads of all sequences are numbered one after the other.
class AttentionReader {
 public:
  /// `mask`: the position of the mask among the operands, if there is one.
  AttentionReader(const EvaluateContext& context, size_t mask);
  [[nodiscard]] const AttentionExtents& extents() const { return extents_; }
  [[nodiscard]] double scale() const { return scale_; }
  [[nodiscard]] double q(int64_t batch, int64_t query, int64_t d) const;
  [[nodiscard]] double k(int64_t batch, int64_t key, int64_t d) const;  ///< the batch is one of q's
  [[nodiscard]] double v(int64_t batch, int64_t key, int64_t d) const;
  /// The scores of the keys that a query sees.
  [[nodiscard]] std::vector<double> scores(int64_t batch, int64_t query) const;

 private:
  [[nodiscard]] double masked(int64_t batch, int64_t query, int64_t key) const;
  const EvaluateContext& context_;
  AttentionExtents extents_;
  size_t mask_;
  double scale_;
  int64_t offset_;
  bool causal_;
};

/// out and lse.
std::vector<Tensor> evaluateAttention(const EvaluateContext& context);
struct AttentionGradients {
  Tensor dq, dk, dv;
  std::vector<double> dscores;  ///< [batches, T, S], where they are asked for
};
/// What the gradients are computed from, of each query; vectors have an element for each key that it sees.
struct AttentionBackward {
  const Tensor& d_out;
  std::function<std::vector<double>(int64_t batch, int64_t query, const std::vector<double>& scores)> weights;
  std::function<double(int64_t batch, int64_t query, const std::vector<double>& weights, const std::vector<double>& dp)> delta;
  bool keeps_scores = false;
};
AttentionGradients evaluateAttentionGradients(const AttentionReader& reader, const AttentionBackward& backward);

/// Of operands q, k, v, d_out, lse and delta, as the templates compute them.
AttentionGradients evaluateAttentionGradients(const EvaluateContext& context);

/// Cases of q, k and v with what follows v, and a mask in some.
std::vector<OpCase> attentionCases(std::initializer_list<AttentionPart> parts);

}  // namespace lockstep::graph
