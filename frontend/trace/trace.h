// SPDX-License-Identifier: Apache-2.0
// Private to the front end: the trace that is active on a thread, and how ops append to it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/trace/at_call.h"
#include "frontend/trace/tensor.h"
#include "ir/graph/builder.h"
#include "ir/support/where.h"

namespace lockstep {

class Module;
class Parameter;
class Buffer;

namespace detail {

/// Whether a place is the caller's. A layer that std::make_unique makes gets a line of the standard library for its default argument.
bool isCallers(const Where& where);
/// The name of a buffer's state leaf.
std::string bufferState(const std::string& path);

/// One trace; active on its thread from construction to destruction. Error "trace.nested" when another one is active.
class Trace {
 public:
  explicit Trace(Where where = Where::current());
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The active trace; Error "trace.inactive" when there is none. `what` names the call in the message.
  static Trace& require(std::string_view what, const Where& where);

  graph::Builder& builder() { return builder_; }
  /// The value behind a tensor; Error "trace.foreign" when it belongs to another trace or to none.
  graph::ValueId value(const Tensor& tensor, std::string_view what, const Where& where) const;
  [[nodiscard]] Tensor tensor(graph::ValueId value) const;

  /// Appends a node and returns its results. A failed rule is thrown with the place and where each operand was made.
  std::vector<Tensor> emitAll(std::string_view op, std::span<const Tensor> operands, graph::Attributes attributes, const Where& where);
  /// Throws `failure` with the place of the call and a note for each operand.
  [[noreturn]] void raise(Failure failure, std::span<const Tensor> operands, const Where& where) const;

  /// Declares the parameters and buffers of a module tree, in declaration order.
  void addParameters(const Module& root);
  Tensor addInput(const std::string& name, const TensorType& type);
  /// The key of the random ops, and a number that no other random op of this trace has.
  Tensor randomKey();
  int64_t nextSalt() { return salts_++; }
  /// What is made from now on belongs to a function of its own (Detached), until its values are gone.
  void beginFunction();
  void endFunction();
  /// Whether the newest version of a buffer is one of the values from this number on.
  [[nodiscard]] bool updatesBufferFrom(size_t first) const;
  Tensor parameter(const Parameter& parameter, const Where& where);
  Tensor buffer(const Buffer& buffer, const Where& where) const;
  void updateBuffer(const Buffer& buffer, const Tensor& next, const Where& where);
  /// Whether a loss is traced; buffers may change then.
  void setTraining(bool training) { training_ = training; }
  [[nodiscard]] bool training() const { return training_; }
  /// Buffers may change although no loss is traced.
  void letBuffersChange() { buffers_change_ = true; }
  void capture(const std::string& name, const Tensor& tensor, const Where& where);
  void print(const std::string& label, const Tensor& tensor, const Where& where);
  /// Of the function's result. Error "forward.output" for a name that is empty or taken.
  void output(graph::OutputKind kind, const std::string& name, const Tensor& tensor, const Where& where = Where::current());
  /// The graph, with an output for the next version of each buffer that was updated.
  graph::Graph take();

 private:
  /// The functions that are traced, the outermost first. Each has a serial number, so that nobody takes a tensor of one that is gone for
  /// another that got its number.
  struct FunctionTrace {
    uint64_t serial;
    size_t first_value;
  };
  [[nodiscard]] bool holds(const Tensor& tensor) const;

  std::vector<FunctionTrace> functions_;
  graph::Builder builder_;
  /// A buffer's state leaf, and what it is by now.
  struct BufferVersions {
    const Buffer* buffer;
    std::string state;
    graph::ValueId leaf, newest;
  };
  graph::ValueId nextOf(const BufferVersions& versions);
  [[nodiscard]] size_t indexOf(const Buffer& buffer, const Where& where) const;

  bool training_ = false, buffers_change_ = false;
  std::vector<BufferVersions> buffers_;
  std::map<const Parameter*, graph::ValueId> parameters_;  // looked up only, never iterated
  /// Names that outputs have, and where; those of the trace's own result are taken from the beginning.
  std::map<std::string, std::optional<Where>, std::less<>> outputs_{{"loss", {}}, {"output", {}}};
  Tensor random_key_;
  int64_t salts_ = 0;
};

/// Appends to the active trace. Throws Error.
Tensor emit(std::string_view op, std::initializer_list<Tensor> operands, graph::Attributes attributes, const Where& where);
/// A Failure of the front end's own checks, in the same form as those of the ops.
[[noreturn]] void raise(std::string code, std::string message, std::initializer_list<Tensor> operands, const Where& where,
                        std::string remedy = {});
/// `axis` in [0, rank); Error "<op>.axis" otherwise.
int64_t normaliseAxis(std::string_view op, int64_t axis, const Tensor& x, const Where& where);
/// A constant of `type`; Error "<op>.number" when the number is not exact in an integer type, or not finite in f32.
Tensor numberLike(std::string_view op, double number, const TensorType& type, const Where& where);
/// Inserts broadcast_to unless the shape is already right.
Tensor broadcast(const Tensor& x, const Shape& shape, const Where& where);

}  // namespace detail
}  // namespace lockstep
