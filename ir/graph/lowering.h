// SPDX-License-Identifier: Apache-2.0
// The few kinds in which an op says how it is computed, so that fusion and emission switch over kinds and never over ops.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/graph/index_map.h"
#include "ir/kernel/builder.h"

namespace lockstep::graph {

/// What an element lowering sees: the position of one output element (or of a vector of them along the last axis) and access to the
/// operands' elements. Implemented by emission.
class ElementEmitter {
 public:
  virtual ~ElementEmitter() = default;
  virtual kernel::Builder& builder() = 0;
  virtual const Graph& graph() = 0;
  virtual const Node& node() = 0;
  /// Position along each axis of the result, u32 scalars (of the first element when a vector is emitted).
  virtual std::span<const kernel::ValueId> index() = 0;
  /// Number of elements emitted at once along the last axis: 1, 2 or 4. All values are then vectors of that width.
  virtual uint32_t width() = 0;
  /// Operand `i` at the result's own position (operand and result have the same shape).
  virtual kernel::ValueId operand(size_t i) = 0;
  /// Operand `i` at another position. Scalar emission only (width 1); ops that call it set `scalar_only`.
  virtual kernel::ValueId operandAt(size_t i, std::vector<kernel::ValueId> index) = 0;
};

struct ElementLowering {
  kernel::ValueId (*emit)(ElementEmitter&);
  bool scalar_only = false;                       ///< calls operandAt or needs a scalar index
  bool transcendental = false;                    ///< expensive: not recomputed under a contraction
  uint32_t (*operations)(const Node&) = nullptr;  ///< of its kernel code, about; null: fewer than 50
  /// scalar_only: whether neighbours along the last axis read neighbours along the last axis of operand 0, of which only the row is
  /// computed.
  bool (*selects_rows)(const Graph&, const Node&) = nullptr;
  /// scalar_only: whether all that it reads of operand 0 lies in the row along the last axis that its result is in.
  bool (*within_row)(const Graph&, const Node&) = nullptr;
  uint32_t rounds = 0;  ///< of the loops that it emits, all together
  bool cheap = false;   ///< cheaper to compute again than to load (constants, one_hot): never materialised for a use inside a kernel
};

/// The result at index i is operand 0 at map(i), or `fill` where a guard fails. Data, not code.
struct ViewLowering {
  IndexMap (*map)(const Graph&, const Node&);
};

/// A reduction over `axes` of operand 0 by a monoid on one scalar.
struct ReduceLowering {
  std::vector<int64_t> (*axes)(const Graph&, const Node&);  ///< normalised, ascending
  bool (*keep_dims)(const Node&);
  double (*neutral)(DType);  ///< combined with any element it gives the element; padding may be made of it
  kernel::ValueId (*combine)(kernel::Builder&, kernel::ValueId accumulated, kernel::ValueId element);
};

/// C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n], where A and B are operands 0 and 1 seen through index maps.
struct ContractShape {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  IndexMap a;  ///< (b, m, k) -> index of operand 0
  IndexMap b;  ///< (b, k, n) -> index of operand 1
};
struct ContractLowering {
  ContractShape (*shape)(const Graph&, const Node&);
  /// The contractions over each of `parts` parts of k, along a new first axis: their sum has the elements of the result. The parts are
  /// equally long; where k is no multiple, the last one ends in zeros. An invalid id where these operands have no such form; null where the
  /// op has none.
  ValueId (*partial)(Builder&, const Node&, std::span<const ValueId> operands, int64_t parts) = nullptr;
  /// The sum of the contractions of each row of two stacks, as one contraction. Invalid and null as above.
  ValueId (*sum_of_rows)(Builder&, const Node&, std::span<const ValueId> stacks) = nullptr;
};

/// The prefixes along one axis of a tuple: result i at n is component i of the elements of the operands at 0 .. n combined (n .. end when
/// reversed). All operands have one shape, and there are as many results. Where only the totals are wanted, these have no such axis.
struct ScanLowering {
  int64_t (*axis)(const Graph&, const Node&);
  bool (*reverse)(const Node&);
  /// Of two tuples, as a function of scalars (scalar_graph.h). Associative, so that lines may be cut into parts.
  Graph (*combine)(const Graph&, const Node&);
  /// What changes nothing as the earlier tuple; null where there is none, which costs a comparison per element.
  std::vector<double> (*identity)(const Node&) = nullptr;
  bool is_total = false;  ///< the results are the last prefixes alone, not reversed
};

/// Result [outer, segments, inner] at (o, s, i) = operand 0, [outer, length, inner], combined over the n for which operand 1, [length],
/// holds s; in ascending n, so that it is the same every time.
struct ScatterShape {
  int64_t outer = 1, segments = 1, length = 1, inner = 1;
};
struct ScatterLowering {
  ScatterShape (*shape)(const Graph&, const Node&);
  kernel::ValueId (*identity)(kernel::Builder&, const TensorType& source);
  kernel::ValueId (*combine)(kernel::Builder&, kernel::ValueId accumulated, kernel::ValueId element);
};

/// A tensor as a template sees it: its hook takes an index of `space`, which `map` leads to the tensor's own.
struct TemplateTensor {
  std::string_view name;  ///< "q": read by the hook load_q, or written by store_q
  Shape space;
  IndexMap map;
  bool along_last = false;  ///< read element after element of the last axis: the hook load_q4 gives four neighbours
};
/// Which templates an op has: NAME_stream and NAME_tiled of many rows, NAME_split, which shares out the steps of each row, NAME_digits,
/// which does so with integer dot products, NAME_whole, which has a run of rows in workgroup memory, or NAME_stream alone, which keeps what
/// it needs of a row in registers.
enum class TemplateForm : uint8_t { Rows, Split, Digits, Whole, Stream };
struct TemplateShape {
  std::vector<TemplateTensor> operands, results;
  std::vector<std::pair<std::string, double>> numbers;  ///< of the template: extents and options
  TemplateForm form = TemplateForm::Rows;
  int64_t rows = 1;         ///< independent of each other: an invocation makes one
  int64_t run = 1;          ///< rows after one another that read the same steps, a divisor of rows
  int64_t length = 1;       ///< steps of the loop that makes a row
  int64_t repeats = 1;      ///< how often that loop runs
  int64_t registers = 1;    ///< elements of a row, with those of its results
  int64_t shared = 1;       ///< elements of a step, which all rows read
  int64_t operations = 0;   ///< of all rows
  DType low = DType::F32;   ///< what its products may be of, in mixed precision
  bool has_matrix = false;  ///< there is a template for matrix units
  int64_t held = 0;         ///< of NAME_whole: elements of 32 bits in workgroup memory
};
/// A kernel of its own, by the templates of shaders/ whose names begin with `shader`.
struct TemplateLowering {
  std::string_view shader;
  TemplateShape (*shape)(const Graph&, const Node&);
};

/// What a choice of templates is taken for.
enum class TemplateGain : uint8_t {
  Memory,       ///< enough of it is saved
  TimeOnGpus,   ///< it is faster on GPUs, whatever it saves; not taken elsewhere
  TimeByTiles,  ///< it is faster where invocations share what they load; elsewhere as for memory
  TimeOfLarge,  ///< it is faster, but for small rows on GPUs: products with one row become sums there, which take in what is around them
  Time
};
/// Another way to compute an op that is replaced by others: by ops with templates, which keep less in memory. A device takes it where it
/// can run them and enough is gained.
struct TemplateChoice {
  std::string_view name;  ///< "attention", as in --disable-pass template:attention
  /// The results; none where this node has no such form. `used`: which of the results anybody reads.
  std::vector<ValueId> (*build)(Builder&, const Node&, std::span<const ValueId> operands, const std::vector<bool>& used);
  /// What the decomposition keeps in memory and this does not.
  int64_t (*saved_elements)(const Graph&, const Node&);
  bool needs_packed_dot = false;  ///< only for devices whose integer dot products take one instruction
  TemplateGain gain = TemplateGain::Memory;
  const TemplateChoice* otherwise = nullptr;  ///< where this one is not taken; who disables that one does without this one, too
};

/// Replaced by ordinary ops before fusion.
struct DecomposeLowering {
  std::vector<ValueId> (*decompose)(Builder&, const Node&, std::span<const ValueId> operands);
  const TemplateChoice* choice = nullptr;  ///< null: the decomposition is the only way
  /// The op that does the same in the bytes of operand 0, for nodes that make the next version of a state; empty: there is none.
  std::string_view in_place = {};
};

/// Leaves and pure storage operations (parameter, input, state, constant data, pack, update_slice): no computation of their own.
struct StorageLowering {};

/// A kernel module that comes with the node: operands and results are whole tensors in memory, bound in order.
struct KernelLowering {};

/// Owns a region of member nodes (group): made by fuse.
struct RegionLowering {};

/// Runs a graph of its own (loop.h) once per position of its slices, one after the other: schedule makes commands of it that repeat.
struct LoopLowering {};

using Lowering = std::variant<ElementLowering, ViewLowering, ReduceLowering, ScanLowering, ScatterLowering, ContractLowering,
                              TemplateLowering, DecomposeLowering, StorageLowering, KernelLowering, LoopLowering, RegionLowering>;

}  // namespace lockstep::graph
