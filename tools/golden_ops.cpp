// SPDX-License-Identifier: Apache-2.0
#include "tools/golden_ops.h"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/ops.h"
#include "frontend/trace.h"
#include "tools/golden_executor.h"

namespace lockstep::tools {
namespace {

/// Operands by name and the attributes of one case.
class Call {
 public:
  explicit Call(const GoldenCase& golden) : golden_(golden) {}
  void bind(const std::string& name, Tensor tensor) { operands_.emplace(name, tensor); }

  [[nodiscard]] Tensor operator[](const std::string& name) const {
    const auto found = operands_.find(name);
    if (found == operands_.end()) throwBadCase(fmt::format("has no operand '{}'", name));
    return found->second;
  }
  /// JSON does not tell 1.0 from 1.
  [[nodiscard]] double number(std::string_view name) const {
    const graph::Attribute* found = golden_.attributes.find(name);
    if (found != nullptr && std::holds_alternative<int64_t>(*found)) return static_cast<double>(std::get<int64_t>(*found));
    return get<double>(name);
  }
  [[nodiscard]] int64_t integer(std::string_view name) const { return get<int64_t>(name); }
  [[nodiscard]] bool boolean(std::string_view name) const { return get<bool>(name); }
  [[nodiscard]] const std::string& text(std::string_view name) const { return get<std::string>(name); }
  [[nodiscard]] const std::vector<int64_t>& integers(std::string_view name) const { return get<std::vector<int64_t>>(name); }
  [[nodiscard]] bool has(std::string_view name) const { return golden_.attributes.find(name) != nullptr; }
  [[nodiscard]] std::vector<int64_t> outputShape(std::string_view name) const {
    const auto found = golden_.outputs.find(name);
    if (found == golden_.outputs.end()) throwBadCase(fmt::format("has no output '{}'", name));
    return found->second.shape;
  }

 private:
  template <class T>
  [[nodiscard]] const T& get(std::string_view name) const {
    const graph::Attribute* found = golden_.attributes.find(name);
    if (found == nullptr || !std::holds_alternative<T>(*found)) throwBadCase(fmt::format("has no attribute '{}' of the right kind", name));
    return std::get<T>(*found);
  }
  [[noreturn]] void throwBadCase(const std::string& what) const {
    const Failure failure = fail("golden.case", fmt::format("case '{}' of op '{}' {}", golden_.name, golden_.op, what));
    throw Error(failure.diagnostics);
  }

  const GoldenCase& golden_;
  std::map<std::string, Tensor, std::less<>> operands_;
};

Reduction reductionOf(const std::string& text) {
  if (text == "none") return Reduction::None;
  return text == "sum" ? Reduction::Sum : Reduction::Mean;
}

/// Sum and mean: one axis, or all without the attribute.
std::optional<int64_t> axisOf(const Call& call) { return call.has("axis") ? std::optional<int64_t>(call.integer("axis")) : std::nullopt; }
ReduceOptions reduceOptions(const Call& call) { return {.keep_dims = call.has("keep_dims") && call.boolean("keep_dims")}; }

struct Row {
  std::string_view op;
  Tensor (*build)(const Call& call);
};

/// Every golden op that exists here; each has one result, "y".
constexpr Row kOps[] = {
    {"add", [](const Call& c) { return add(c["a"], c["b"]); }},
    {"sub", [](const Call& c) { return sub(c["a"], c["b"]); }},
    {"mul", [](const Call& c) { return mul(c["a"], c["b"]); }},
    {"div", [](const Call& c) { return div(c["a"], c["b"]); }},
    {"min", [](const Call& c) { return min(c["a"], c["b"]); }},
    {"max", [](const Call& c) { return max(c["a"], c["b"]); }},
    {"less", [](const Call& c) { return less(c["a"], c["b"]); }},
    {"greater", [](const Call& c) { return greater(c["a"], c["b"]); }},
    // Golden files hold booleans as i32.
    {"where", [](const Call& c) { return where(greater(c["cond"], 0), c["a"], c["b"]); }},
#define LS_UNARY(name) {#name, [](const Call& c) { return name(c["x"]); }},
#include "frontend/unary_ops.def"
#undef LS_UNARY
    {"square", [](const Call& c) { return square(c["x"]); }},
    {"sum", [](const Call& c) { return sum(c["x"], axisOf(c), reduceOptions(c)); }},
    {"mean", [](const Call& c) { return mean(c["x"], axisOf(c), reduceOptions(c)); }},
    {"reshape", [](const Call& c) { return reshape(c["x"], c.integers("shape")); }},
    {"permute", [](const Call& c) { return permute(c["x"], c.integers("perm")); }},
    {"swap_axes", [](const Call& c) { return swap_axes(c["x"], c.integer("a"), c.integer("b")); }},
    {"narrow", [](const Call& c) { return narrow(c["x"], c.integer("axis"), c.integer("start"), c.integer("length")); }},
    {"broadcast_to", [](const Call& c) { return broadcast_to(c["x"], c.outputShape("y")); }},
    {"sum_to_shape", [](const Call& c) { return sum_to_shape(c["x"], c.outputShape("y")); }},
    {"matmul", [](const Call& c) { return matmul(c["a"], c["b"]); }},
    {"embedding", [](const Call& c) { return embedding(c["table"], c["idx"]); }},
    {"one_hot", [](const Call& c) { return one_hot(c["idx"], c.integer("depth")); }},
    {"softmax", [](const Call& c) { return softmax(c["x"], c.integer("axis")); }},
    {"log_softmax", [](const Call& c) { return log_softmax(c["x"], c.integer("axis")); }},
    {"softmax_causal", [](const Call& c) { return softmax_causal(c["x"]); }},
    {"where_causal", [](const Call& c) { return where_causal(c["x"], c.number("fill")); }},
    {"cross_entropy",
     [](const Call& c) { return cross_entropy(c["logits"], c["targets"], {.reduction = reductionOf(c.text("reduction"))}); }},
    {"layer_norm", [](const Call& c) { return layer_norm(c["x"], c["g"], c["b"], c.number("eps")); }},
};

DType dtypeOf(const io::Array& array) {
  switch (array.type) {
    case io::ElementType::F32:
    case io::ElementType::F64:
      return DType::F32;
    case io::ElementType::I64:
    case io::ElementType::I32:
      return DType::I32;
    case io::ElementType::U32:
    case io::ElementType::Bool:
      return DType::U32;
  }
  return DType::F32;
}

TensorType typeOf(const io::Array& array) { return {dtypeOf(array), Shape(array.shape)}; }

}  // namespace

Result<graph::Graph> traceGoldenCase(const GoldenCase& golden) {
  const auto* row = std::ranges::find(kOps, std::string_view(golden.op), &Row::op);
  if (row == std::end(kOps)) return unsupported(fmt::format("op '{}' is not implemented", golden.op));
  if (golden.outputs.size() != 1 || !golden.outputs.contains("y")) {
    return fail("golden.case", fmt::format("case '{}' has other outputs than 'y'", golden.name));
  }
  try {
    detail::Trace trace;
    Call call(golden);
    for (const auto& [name, array] : golden.inputs) call.bind(name, trace.addInput(name, typeOf(array)));
    const Tensor y = row->build(call);
    if (y.shape() != Shape(golden.outputs.find("y")->second.shape)) {
      return fail("golden.case", fmt::format("case '{}' gives {} but {} is expected", golden.name, graph::toString(y.type()),
                                             io::describe(golden.outputs.find("y")->second)));
    }
    trace.output(graph::OutputKind::Result, "y", y);
    if (!golden.gradients.empty()) {
      const Tensor cotangent = trace.addInput("cotangent.y", typeOf(golden.cotangents.find("y")->second));
      trace.output(graph::OutputKind::Loss, "loss", sum(y * cotangent));
    }
    return trace.take();
  } catch (const Error& error) {
    return Failure{.diagnostics = error.diagnostics(), .exit_code = error.exitCode()};
  }
}

}  // namespace lockstep::tools
