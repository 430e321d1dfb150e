// SPDX-License-Identifier: Apache-2.0
#include "frontend/trace/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "frontend/trace/module.h"
#include "frontend/trace/remedies.h"
#include "frontend/trace/throw_error.h"
#include "ir/graph/op_def.h"
#include "ir/graph/state_versions.h"

namespace lockstep::detail {

namespace {

thread_local Trace* active_trace = nullptr;
std::atomic<uint64_t> last_serial{0};  // serial numbers only tell traces apart; they reach no dump

/// "operand a is f32[2,3]" at the place where it was made; leaves are named.
Note describe(const graph::Graph& graph, graph::ValueId value, std::string_view operand) {
  const graph::Node& node = graph.definition(value);
  std::string made = fmt::format("operand {} is {}", operand, toString(graph.typeOf(value)));
  if (const std::string* name = graph::leafName(node); name != nullptr) {
    made += fmt::format(", the {} '{}'", *node.op->name, *name);
  } else {
    made += fmt::format(", made by {} here", *node.op->name);
  }
  return {std::move(made), node.location == 0 ? Location{} : graph.locations[node.location - 1]};
}

}  // namespace

bool isCallers(const Where& where) { return std::string_view(where.file_name()).find("/include/c++/") == std::string_view::npos; }

std::string bufferState(const std::string& path) { return "buffer." + path; }

Trace::Trace(Where where) : functions_{{++last_serial, 0}} {
  if (active_trace != nullptr) {
    throw Error({.code = "trace.nested",
                 .message = "a trace was started inside the function that is being traced",
                 .where = toLocation(where),
                 .notes = {},
                 .remedy = "call compile or attach outside of loss and forward functions"});
  }
  active_trace = this;
}

Trace::~Trace() { active_trace = nullptr; }

Trace& Trace::require(std::string_view what, const Where& where) {
  if (active_trace == nullptr) {
    throw Error({.code = "trace.inactive",
                 .message = fmt::format("'{}' was called outside of a trace, where tensors have no values", what),
                 .where = toLocation(where),
                 .notes = {},
                 .remedy = "call it in the loss or forward function that is given to compile or attach"});
  }
  return *active_trace;
}

graph::ValueId Trace::value(const Tensor& tensor, std::string_view what, const Where& where) const {
  if (!holds(tensor)) {
    const std::string_view who =
        tensor.trace() == 0 ? "a tensor that was never set" : "a tensor of another trace, or of a loop that is over";
    // Functions look at types before they make an op; that is nobody's name for what was called.
    throw Error({.code = "trace.foreign",
                 .message = what == "type" ? fmt::format("this uses {}", who) : fmt::format("'{}' got {}", what, who),
                 .where = toLocation(where),
                 .notes = {},
                 .remedy = "use only tensors that this call of the loss or forward function made; state belongs in modules"});
  }
  graph::ValueId id;
  id.value = tensor.value();
  return id;
}

std::vector<Tensor> Trace::emitAll(std::string_view op, std::span<const Tensor> operands, graph::Attributes attributes,
                                   const Where& where) {
  std::vector<graph::ValueId> values;
  for (const Tensor& operand : operands) values.push_back(value(operand, op, where));
  const uint32_t location = builder_.addLocation(toLocation(where));
  builder_.setLocation(location);
  // A parameter that has no place of its own has that of its first use.
  for (const graph::ValueId id : values) {
    graph::Node& node = builder_.mutableGraph().nodes[builder_.graph()[id].node.index()];
    const graph::LeafKind kind = graph::leafKind(node);
    if (node.location == 0 && (kind == graph::LeafKind::Parameter || kind == graph::LeafKind::State)) node.location = location;
  }
  auto made = builder_.tryMake(graph::op(op), std::move(values), std::move(attributes));
  if (!made) raise(made.failure(), operands, where);
  std::vector<Tensor> results;
  for (graph::ValueId id : *made) results.push_back(tensor(id));
  return results;
}

void Trace::raise(Failure failure, std::span<const Tensor> operands, const Where& where) const {
  for (Diagnostic& diagnostic : failure.diagnostics) {
    diagnostic.where = toLocation(where);
    if (diagnostic.remedy.empty()) diagnostic.remedy = remedyFor(diagnostic.code);
    std::string_view op_name = std::string_view(diagnostic.code).substr(0, diagnostic.code.find('.'));
    // What a function of the front end takes is not always what its op takes.
    const bool of_function = diagnostic.code.ends_with(".operands") || diagnostic.code.ends_with(".options");
    const graph::OpDef* op = of_function ? nullptr : graph::findOp(op_name);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!holds(operands[i])) continue;
      bool named = op != nullptr && i < op->operands->size();
      graph::ValueId id;
      id.value = operands[i].value();
      diagnostic.notes.push_back(describe(builder_.graph(), id, named ? std::string((*op->operands)[i]) : fmt::format("{}", i + 1)));
    }
  }
  throw Error(std::move(failure.diagnostics), failure.exit_code);
}

void Trace::addParameters(const Module& root) {
  for (const NamedParameter& named : root.parameters()) {
    const Parameter& parameter = *named.parameter;
    builder_.setLocation(isCallers(parameter.where()) ? builder_.addLocation(toLocation(parameter.where())) : 0);
    builder_.mutableGraph().parameters.push_back({named.name, parameter.type(), parameter.decay()});
    std::vector<int64_t> extents = parameter.type().shape.extents();
    graph::ValueId id =
        builder_.make("parameter", {}, {{"name", named.name}, {"dtype", parameter.type().dtype}, {"shape", std::move(extents)}});
    builder_.name(id, named.name);
    parameters_.emplace(&parameter, id);
  }
  for (const NamedBuffer& named : root.buffers()) {
    const Buffer& buffer = *named.buffer;
    builder_.setLocation(isCallers(buffer.where()) ? builder_.addLocation(toLocation(buffer.where())) : 0);
    std::vector<int64_t> extents = buffer.type().shape.extents();
    std::string name = bufferState(named.name);
    graph::ValueId leaf = builder_.make(
        "state", {}, {{"name", name}, {"dtype", buffer.type().dtype}, {"shape", std::move(extents)}, {"init", buffer.initial()}});
    builder_.name(leaf, name);
    buffers_.push_back({&buffer, name, leaf, leaf});
  }
  builder_.setLocation(0);
}

size_t Trace::indexOf(const Buffer& buffer, const Where& where) const {
  for (size_t i = 0; i < buffers_.size(); ++i) {
    if (buffers_[i].buffer == &buffer) return i;
  }
  throw Error({.code = "trace.buffer",
               .message = fmt::format("buffer '{}' does not belong to the model that is being traced", buffer.path()),
               .where = toLocation(where),
               .notes = {{"the buffer was declared here", toLocation(buffer.where())}},
               .remedy = "declare its module as a child of the model: {*this, \"name\", ...}"});
}

Tensor Trace::buffer(const Buffer& buffer, const Where& where) const { return tensor(buffers_[indexOf(buffer, where)].newest); }

void Trace::updateBuffer(const Buffer& buffer, const Tensor& next, const Where& where) {
  size_t index = indexOf(buffer, where);
  if (!training_ && !buffers_change_) {
    throw Error(
        {.code = "buffer.training",
         .message = fmt::format("buffer '{}' is updated in a forward function", buffer.path()),
         .where = toLocation(where),
         .notes = {},
         .remedy =
             "buffers change in training steps: ask ls::is_training() before, or set .updates_buffers of a forward that keeps a state"});
  }
  graph::ValueId now = value(next, "buffer", where);
  if (builder_.typeOf(now) != buffer.type()) {
    raise(fail("buffer.type",
               fmt::format("buffer '{}' is {} but gets {}", buffer.path(), toString(buffer.type()), toString(builder_.typeOf(now))), {},
               "cast or reshape the new value"),
          std::span(&next, 1), where);
  }
  buffers_[index].newest = now;
}

/// A training step may leave a buffer as it was, so it makes all of the new value first.
graph::ValueId Trace::nextOf(const BufferVersions& versions) {
  if (!training_) {
    const std::vector<graph::ValueId> in_place = versionsInPlace(builder_.graph(), versions.leaf, versions.newest);
    if (!in_place.empty() && !readsTogether(builder_.graph(), in_place)) return versions.newest;
  }
  return builder_.make("update_slice", {versions.leaf, versions.newest}, {{"offset", int64_t{0}}});
}

graph::Graph Trace::take() {
  builder_.setLocation(0);
  for (const BufferVersions& versions : buffers_) {
    if (versions.newest == versions.leaf) continue;
    builder_.output(graph::OutputKind::NextState, versions.state, nextOf(versions));
  }
  return builder_.take();
}

Tensor Trace::addInput(const std::string& name, const TensorType& type) {
  // Leaves are found by name: gradients and values would go to the wrong one.
  for (const graph::ParameterInfo& parameter : builder_.graph().parameters) {
    if (parameter.name != name) continue;
    reject("compile.input", fmt::format("the input '{}' has the name of a parameter", name), "give the input another name");
  }
  builder_.setLocation(0);
  auto made = builder_.tryMake(graph::op("input"), {}, {{"name", name}, {"dtype", type.dtype}, {"shape", type.shape.extents()}});
  if (!made) {
    Failure failure = made.failure();
    for (Diagnostic& diagnostic : failure.diagnostics) {
      diagnostic.message = fmt::format("input '{}': {}", name, diagnostic.message);
      diagnostic.remedy = "declare every extent as 1 or more, or as ls::dynamic, and at most 2^32 elements in all";
    }
    throw Error(std::move(failure.diagnostics), failure.exit_code);
  }
  builder_.name(made->front(), name);
  return tensor(made->front());
}

Tensor Trace::randomKey() {
  if (random_key_.trace() == 0) random_key_ = addInput(std::string(graph::kRandomKeyInput), {DType::U32, Shape{4}});
  return random_key_;
}

Tensor Trace::tensor(graph::ValueId value) const {
  const auto inside = std::ranges::find_if(functions_.rbegin(), functions_.rend(),
                                           [&](const FunctionTrace& function) { return value.index() >= function.first_value; });
  return {inside->serial, value.value};
}

bool Trace::holds(const Tensor& tensor) const {
  return std::ranges::find(functions_, tensor.trace(), &FunctionTrace::serial) != functions_.end();
}

void Trace::beginFunction() { functions_.push_back({++last_serial, builder_.graph().values.size()}); }

void Trace::endFunction() {
  if (!holds(random_key_) || random_key_.trace() == functions_.back().serial) random_key_ = {};
  functions_.pop_back();
}

bool Trace::updatesBufferFrom(size_t first) const {
  return std::ranges::any_of(buffers_, [&](const BufferVersions& versions) { return versions.newest.index() >= first; });
}

Tensor Trace::parameter(const Parameter& parameter, const Where& where) {
  auto found = parameters_.find(&parameter);
  if (found == parameters_.end()) {
    throw Error({.code = "trace.parameter",
                 .message = fmt::format("parameter '{}' does not belong to the model that is being traced", parameter.path()),
                 .where = toLocation(where),
                 .notes = {{"the parameter was declared here", toLocation(parameter.where())}},
                 .remedy = "declare its module as a child of the model: {*this, \"name\", ...}"});
  }
  return tensor(found->second);
}

void Trace::capture(const std::string& name, const Tensor& captured, const Where& where) {
  graph::ValueId id = value(captured, "capture", where);
  if (auto [known, added] = outputs_.emplace(name, where); !added) {
    Diagnostic diagnostic{.code = "capture.name",
                          .message = fmt::format("the name '{}' is taken", name),
                          .where = toLocation(where),
                          .notes = {},
                          .remedy = "give each capture of a trace a name of its own"};
    if (known->second) diagnostic.notes.push_back({"by the capture or print here", toLocation(*known->second)});
    throw Error(std::move(diagnostic));
  }
  builder_.output(graph::OutputKind::Capture, name, id);
}

void Trace::print(const std::string& label, const Tensor& printed, const Where& where) {
  graph::ValueId id = value(printed, "print", where);
  const std::string wanted = label.empty() ? fmt::format("{}:{}", where.file_name(), where.line()) : label;
  std::string name = wanted;
  for (int again = 2; !outputs_.emplace(name, where).second; ++again) name = fmt::format("{} ({})", wanted, again);
  builder_.output(graph::OutputKind::Print, name, id);
}

void Trace::output(graph::OutputKind kind, const std::string& name, const Tensor& tensor, const Where& where) {
  const graph::ValueId id = value(tensor, "output", where);
  // What was kept for it from the beginning has no place.
  if (auto kept = outputs_.find(name); kept != outputs_.end() && !kept->second) outputs_.erase(kept);
  if (name.empty() || !outputs_.emplace(name, where).second) {
    throw Error({.code = "forward.output",
                 .message = name.empty() ? "an output has no name" : fmt::format("the name '{}' of an output is taken", name),
                 .where = toLocation(where),
                 .notes = {},
                 .remedy = "give each output, capture and print of a function a name of its own"});
  }
  builder_.output(kind, name, id);
}

Tensor emit(std::string_view op, std::initializer_list<Tensor> operands, graph::Attributes attributes, const Where& where) {
  return Trace::require(op, where).emitAll(op, std::vector<Tensor>(operands), std::move(attributes), where).front();
}

void raise(std::string code, std::string message, std::initializer_list<Tensor> operands, const Where& where, std::string remedy) {
  std::string_view what = std::string_view(code).substr(0, code.find('.'));
  const Trace& trace = Trace::require(what, where);
  Failure failure = fail(std::move(code), std::move(message), {}, std::move(remedy));
  trace.raise(std::move(failure), std::vector<Tensor>(operands), where);
}

int64_t normaliseAxis(std::string_view op, int64_t axis, const Tensor& x, const Where& where) {
  int64_t rank = x.rank(where);
  if (axis < -rank || axis >= rank) {
    raise(fmt::format("{}.axis", op), fmt::format("axis {} is outside {} of rank {}", axis, toString(x.shape(where)), rank), {x}, where,
          "axes count from 0, and -1 is the last one");
  }
  return axis < 0 ? axis + rank : axis;
}

Tensor numberLike(std::string_view op, double number, const TensorType& type, const Where& where) {
  auto reject = [&](std::string why, std::string remedy) {
    raise(fmt::format("{}.number", op), fmt::format("the number {} {}", number, why), {}, where, std::move(remedy));
  };
  switch (type.dtype) {
    case DType::F32:
      if (!(std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max()))) {
        reject("is not a finite f32", "use a large finite number, for example 1e30");
      }
      break;
    case DType::I32:
    case DType::U32: {
      if (number != std::trunc(number)) {
        reject(fmt::format("is not an integer, but the tensor is {}", toString(type)), "use an integer or an f32 tensor");
      }
      double lo = type.dtype == DType::I32 ? -2147483648.0 : 0.0, hi = type.dtype == DType::I32 ? 2147483647.0 : 4294967295.0;
      if (!(number >= lo && number <= hi)) reject(fmt::format("is outside {}", toString(type.dtype)), "");
      break;
    }
    case DType::Bool:
      reject(fmt::format("meets a tensor of {}", toString(type)), "compare or select first; bool has no arithmetic");
      break;
    case DType::F16:
    case DType::BF16:
    case DType::I8:
    case DType::U8:
    case DType::U16:
      reject(fmt::format("meets a tensor of {}", toString(type)),
             "cast(x, ls::DType::F32) first; a type of fewer than 32 bits only stores");
  }
  return emit("constant", {}, {{"value", number}, {"dtype", type.dtype}, {"shape", type.shape.extents()}}, where);
}

Tensor broadcast(const Tensor& x, const Shape& shape, const Where& where) {
  if (x.shape(where) == shape) return x;
  return emit("broadcast_to", {x}, {{"shape", shape.extents()}}, where);
}

}  // namespace lockstep::detail
