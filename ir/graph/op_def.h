// SPDX-License-Identifier: Apache-2.0
// What an op is: one constexpr OpDef in ir/ops/<op>.cpp, with every facet. A facet that is missing does not compile (Required has no
// default), an op that is listed in ops.def but not written does not link.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/graph/builder.h"
#include "ir/graph/graph.h"
#include "ir/graph/lowering.h"
#include "ir/graph/open_axes.h"

namespace lockstep::graph {

template <class T>
class Required {
 public:
  Required() = delete;
  constexpr Required(T value) : value_(std::move(value)) {}
  template <class U>
    requires std::convertible_to<U, T>
  constexpr Required(U value) : value_(std::move(value)) {}
  [[nodiscard]] constexpr const T& operator*() const { return value_; }
  [[nodiscard]] constexpr const T* operator->() const { return &value_; }

 private:
  T value_;
};

/// A short list that lives in the OpDef itself. So every OpDef is a constant, and a Trainer that is a global variable of a program finds
/// the ops made, whatever the order in which constructors of globals run.
template <class T>
class ConstantList {
 public:
  static constexpr size_t kMost = 10;  ///< one more does not compile
  constexpr ConstantList(std::initializer_list<T> items) : size_(items.size()) { std::ranges::copy(items, items_.begin()); }
  [[nodiscard]] constexpr const T* begin() const { return items_.data(); }
  [[nodiscard]] constexpr const T* end() const { return items_.data() + size_; }
  [[nodiscard]] constexpr size_t size() const { return size_; }
  [[nodiscard]] constexpr bool empty() const { return size_ == 0; }
  [[nodiscard]] constexpr const T& operator[](size_t i) const { return items_[i]; }
  [[nodiscard]] constexpr const T& back() const { return items_[size_ - 1]; }

 private:
  std::array<T, kMost> items_{};
  size_t size_ = 0;
};

/// "C1", "operands have the same element type". The label names the diagnostic (`add.C1`) and the negative test.
struct Constraint {
  std::string_view label;
  std::string_view text;
};

enum class AttributeKind : uint8_t { Integer, Float, Boolean, String, Integers, DType, Constant, Graph };
struct AttributeDef {
  std::string_view name;
  AttributeKind kind = AttributeKind::Integer;
  std::string_view text;  ///< one line for the docs
  bool required = true;
  /// Text of kernel IR, whose places are printed as those of nodes are: only when asked for.
  bool kernel_text = false;
};

/// What a type rule sees.
struct InferContext {
  const Graph& graph;
  std::span<const TensorType> operands;
  const Attributes& attributes;
};
/// A constraint that does not hold: infer returns it and the caller adds op, place and operands.
Failure violated(std::string_view op, std::string_view label, std::string message);

using InferFn = Result<std::vector<TensorType>> (*)(const InferContext&);

/// What a gradient sees: builds the cotangents of the operands from those of the results with ordinary ops.
struct GradientContext {
  Builder& builder;
  const Node& node;  ///< a copy's reference; stable while the builder grows
  std::span<const ValueId> operands;
  std::span<const ValueId> results;
  std::span<const ValueId> cotangents;  ///< one per result; invalid where nothing flows back
};
/// One cotangent per operand; an invalid id means that nothing flows to it.
using GradientFn = std::vector<ValueId> (*)(const GradientContext&);
struct NotDifferentiable {
  std::string_view reason;  ///< what the error says when it is the only way to a parameter
  bool is_meant = false;    ///< the op is used in order to end gradients, which is no error
  bool is_unknown = false;  ///< it has a gradient that nobody has given: the sum over other ways would be wrong without a word
};
/// The gradient is that of ops that give the same results, which are made for it: those that `decompose` makes, else those that the node
/// stands for (DecomposeLowering).
struct ByDecomposition {
  std::vector<ValueId> (*decompose)(Builder&, const Node&, std::span<const ValueId> operands) = nullptr;
};
/// Of a loop (loop.h): a loop the other way round, over the gradient of its body.
struct ThroughBody {};
using GradientFacet = std::variant<GradientFn, NotDifferentiable, ByDecomposition, ThroughBody>;

/// A tensor of the f64 evaluator. Booleans are 0 and 1; integers are exact.
struct Tensor {
  TensorType type;
  std::vector<double> data;
};
struct EvaluateContext {
  const Graph& graph;
  const Node& node;
  std::span<const Tensor* const> operands;
  std::span<const TensorType> results;
};
/// A naive f64 loop in the words of the spec. Shares nothing with `lower`.
using EvaluateFn = std::vector<Tensor> (*)(const EvaluateContext&);

/// The value range of a case's operand: floats uniform in [lo, hi], integers uniform in [lo, hi] too.
struct OperandCase {
  TensorType type;
  double lo = -2, hi = 2;
};
struct OpCase {
  std::string_view name;
  std::vector<OperandCase> operands;
  Attributes attributes;
  double tolerance = 1e-6;  ///< relative L2 of a f32 device against evaluate
  std::string_view reason = "one rounding per element";
};
using CasesFn = std::vector<OpCase> (*)();

/// Which operand of a node names places, and which of its elements are right.
struct IndexUse {
  size_t operand = 0;
  int64_t extent = 0;                   ///< 0 to extent - 1 are
  std::optional<int64_t> ignored = {};  ///< and this one
  std::string_view what = "index";      ///< for the error: "label"
  std::string_view places = {};         ///< of the extent: "classes"
};
using IndexFn = IndexUse (*)(const Graph&, const Node&);

/// The lowest and the highest number that an integer (or bool) tensor can hold.
struct IntegerRange {
  int64_t lo = 0, hi = 0;
  friend bool operator==(const IntegerRange&, const IntegerRange&) = default;
};
/// Every number that an element type can hold; absent for floats.
inline std::optional<IntegerRange> rangeOf(DType dtype) {
  const DTypeFacts& facts = factsOf(dtype);
  return facts.is_float ? std::nullopt : std::optional(IntegerRange{facts.lowest, facts.highest});
}
struct RangeContext {
  const Graph& graph;
  const Node& node;
  std::span<const std::optional<IntegerRange>> operands;  ///< absent for floats
};
/// One per result, absent where nothing is known.
using RangeFn = std::vector<std::optional<IntegerRange>> (*)(const RangeContext&);

/// An op where a graph spells it out by others: what they read, and what is to be known of the way they are put together.
struct Spelled {
  std::vector<ValueId> operands;
  Attributes attributes;
};
struct Recognition {
  /// `last`: the node that makes the result. `readers`: by value, how many nodes and outputs read it; what is left out has one.
  std::optional<Spelled> (*find)(const Graph&, const Node& last, std::span<const uint32_t> readers);
  /// The result of the same shape, by the op; with the operands as they are in the builder's graph.
  ValueId (*build)(Builder&, const Spelled&, const Shape& result);
};

/// The node for each row of stacks at once, where `stacked` says which operands are stacks (of `rows` rows) and which are the same for all
/// rows; the result is a stack. Invalid where there is no such form.
struct LiftContext {
  Builder& builder;
  const Node& node;
  std::span<const ValueId> operands;
  const std::vector<bool>& stacked;
  int64_t rows;
};
using LiftFn = ValueId (*)(const LiftContext&);

/// Whether results share storage with an operand.
struct NoAlias {};
struct AliasView {};  ///< the result may be a view of operand 0's storage
/// The result is the next version of operand 0 and should share its storage.
struct AliasUpdate {
  bool at_index = false;  ///< in the rows that a value names; else at the attribute `offset`
};
struct AliasPack {};  ///< every operand should be made in its slice of the result
using AliasFacet = std::variant<NoAlias, AliasView, AliasUpdate, AliasPack>;

/// What a leaf stands for.
enum class LeafKind : uint8_t {
  None,       ///< no leaf
  Parameter,  ///< a trainable tensor of the module
  Input,      ///< data of one call
  State,      ///< what lasts between calls
  Constant,   ///< one number for all elements
  Data        ///< elements that are constants of the graph
};

/// Laws that hold for every element type.
struct Algebra {
  std::optional<double> neutral = {};  ///< as the second operand it leaves the first one as it is
  bool commutes = false;               ///< and as the first operand the second one
  bool involution = false;             ///< twice in a row is nothing
  bool last_counts = false;            ///< of two in a row only the second counts, and one that keeps the type does nothing
  bool chooses = false;                ///< each element of the result is one of an operand's, with either sign, or 0
};

/// What mixed precision does with an op (passes/graph/autocast.h).
enum class MixedRole : uint8_t {
  Wide,     ///< it computes in f32, with what it is given
  Product,  ///< sums of products of its operands: these are rounded, and so is its first result
  Exempt    ///< its operand is not rounded
};

struct OpDef {
  Required<std::string_view> name;
  Required<std::string_view> summary;
  Required<ConstantList<Constraint>> constraints;
  Required<ConstantList<std::string_view>> operands;  ///< names; a last name ending in "..." takes any number
  Required<ConstantList<AttributeDef>> attributes;
  Required<InferFn> infer;
  Required<GradientFacet> gradient;
  Required<Lowering> lower;
  Required<AliasFacet> alias;
  Required<EvaluateFn> evaluate;
  Required<CasesFn> cases;
  LeafKind leaf = LeafKind::None;
  Algebra algebra = {};
  IndexFn index = nullptr;  ///< of an op with an operand that names places: what is outside is an error of the step
  RangeFn range = nullptr;  ///< of an op whose integer results are bounded, so that an index made of them needs no check
  MixedRole mixed = MixedRole::Wide;
  const Recognition* recognition = nullptr;  ///< null: it is nothing that users spell out
  LiftFn lift = nullptr;                     ///< of an op that can leave a loop with all its iterations at once
  size_t factors = kEveryOperand;            ///< of a Product: so many of its first operands are rounded
  OpenFn open = nullptr;                     ///< null: what its lowering says of open axes is right (passes/graph/open_extents.h)

  static constexpr size_t kEveryOperand = SIZE_MAX;
};
/// The attribute of a Product that stands for other ops: the type to which these round what they make in between.
inline constexpr std::string_view kLowAttribute = "low";

/// Of functions that have a cheaper form, a boolean: every reader rounds the result, or a product with it, to bf16 or f16.
inline constexpr std::string_view kCoarseAttribute = "coarse";
inline bool isCoarse(const Node& node) {
  const Attribute* coarse = node.attributes.find(kCoarseAttribute);
  return coarse != nullptr && std::get<bool>(*coarse);
}

inline LeafKind leafKind(const Node& node) { return node.op->leaf; }

/// The table of all ops, in the order of ir/ops/ops.def.
std::span<const OpDef* const> allOps();
/// Null when there is none.
const OpDef* findOp(std::string_view name);
/// InternalError when there is none.
const OpDef& op(std::string_view name);

}  // namespace lockstep::graph
