// SPDX-License-Identifier: Apache-2.0
#include "tools/verify/golden_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "frontend/ops/ops.h"
#include "frontend/trace/trace.h"
#include "tools/verify/golden_executor.h"

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
    seen_.insert(name);
    return found->second;
  }
  /// All operands, in the order of their names.
  [[nodiscard]] std::vector<Tensor> operands() const {
    std::vector<Tensor> tensors;
    for (const auto& [name, tensor] : operands_) {
      seen_.insert(name);
      tensors.push_back(tensor);
    }
    return tensors;
  }
  /// JSON does not tell 1.0 from 1.
  [[nodiscard]] double number(std::string_view name) const {
    const graph::Attribute* found = find(name);
    if (found != nullptr && std::holds_alternative<int64_t>(*found)) return static_cast<double>(std::get<int64_t>(*found));
    return get<double>(name);
  }
  [[nodiscard]] int64_t integer(std::string_view name) const { return get<int64_t>(name); }
  [[nodiscard]] bool boolean(std::string_view name) const { return get<bool>(name); }
  [[nodiscard]] const std::string& text(std::string_view name) const { return get<std::string>(name); }
  [[nodiscard]] const std::vector<int64_t>& integers(std::string_view name) const { return get<std::vector<int64_t>>(name); }
  /// The number of the text among those that the attribute may have.
  [[nodiscard]] size_t choice(std::string_view name, std::initializer_list<std::string_view> known) const {
    const std::string& given = text(name);
    const auto* found = std::ranges::find(known, given);
    if (found == known.end()) throwBadCase(fmt::format("has '{}' as '{}', wanted one of {}", given, name, fmt::join(known, ", ")));
    return static_cast<size_t>(found - known.begin());
  }
  /// One number for both axes, or a list of two.
  [[nodiscard]] Size2 size(std::string_view name) const {
    const graph::Attribute* found = find(name);
    if (found != nullptr && std::holds_alternative<int64_t>(*found)) return integer(name);
    const std::vector<int64_t>& list = integers(name);
    if (list.size() != 2) throwBadCase(fmt::format("has an attribute '{}' of {} numbers, wanted 2", name, list.size()));
    return {list[0], list[1]};
  }
  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  /// An attribute that the operands imply.
  void check(std::string_view name, int64_t implied) const {
    if (has(name) && integer(name) != implied)
      throwBadCase(fmt::format("has '{}' as {}, but {} by its operands", name, integer(name), implied));
  }
  /// What the op did not look at would change nothing, and a case that wants something else would pass.
  void refuseUnknown() const {
    constexpr std::string_view kLeaveOut = "take it out of the file if the results do not depend on it";
    for (const auto& [name, value] : golden_.attributes.items()) {
      if (!asked_.contains(name)) throwBadCase(fmt::format("has an attribute '{}', which is not known here", name), kLeaveOut);
    }
    for (const auto& [name, tensor] : operands_) {
      if (!seen_.contains(name)) throwBadCase(fmt::format("has an operand '{}', which is not known here", name), kLeaveOut);
    }
  }

 private:
  [[nodiscard]] const graph::Attribute* find(std::string_view name) const {
    asked_.emplace(name);
    return golden_.attributes.find(name);
  }
  template <class T>
  [[nodiscard]] const T& get(std::string_view name) const {
    const graph::Attribute* found = find(name);
    if (found == nullptr || !std::holds_alternative<T>(*found)) throwBadCase(fmt::format("has no attribute '{}' of the right kind", name));
    return std::get<T>(*found);
  }
  [[noreturn]] void throwBadCase(const std::string& what, std::string_view remedy = {}) const {
    const Failure failure =
        fail("golden.case", fmt::format("case '{}' of op '{}' {}", golden_.name, golden_.op, what), {}, std::string(remedy));
    throw Error(failure.diagnostics);
  }

  const GoldenCase& golden_;
  std::map<std::string, Tensor, std::less<>> operands_;
  mutable std::set<std::string, std::less<>> asked_, seen_;  ///< attributes and operands that were looked at
};

Reduction reductionOf(const Call& c) {
  return std::array{Reduction::None, Reduction::Sum, Reduction::Mean}[c.choice("reduction", {"none", "sum", "mean"})];
}

/// Sum and mean: one axis, or all without the attribute.
std::optional<int64_t> axisOf(const Call& call) { return call.has("axis") ? std::optional<int64_t>(call.integer("axis")) : std::nullopt; }
ReduceOptions reduceOptions(const Call& call) { return {.keep_dims = call.has("keep_dims") && call.boolean("keep_dims")}; }

struct Row {
  std::string_view op;
  Tensor (*build)(const Call& call);  ///< the only result, "y"
  /// Instead of build: several results, in the order of their names.
  std::vector<Tensor> (*build_all)(const Call& call) = nullptr;
};

/// Every golden op that exists here.
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
#include "frontend/ops/unary_ops.def"
#undef LS_UNARY
    {"leaky_relu", [](const Call& c) { return leaky_relu(c["x"], c.number("alpha")); }},
    {"clamp", [](const Call& c) { return clamp(c["x"], c.number("lo"), c.number("hi")); }},
    {"argmax", [](const Call& c) { return argmax(c["x"], axisOf(c)); }},
    {"argmin", [](const Call& c) { return argmin(c["x"], axisOf(c)); }},
    {"square", [](const Call& c) { return square(c["x"]); }},
    {"sum", [](const Call& c) { return sum(c["x"], axisOf(c), reduceOptions(c)); }},
    {"mean", [](const Call& c) { return mean(c["x"], axisOf(c), reduceOptions(c)); }},
    {"reshape", [](const Call& c) { return reshape(c["x"], c.integers("shape")); }},
    {"permute", [](const Call& c) { return permute(c["x"], c.integers("perm")); }},
    {"swap_axes", [](const Call& c) { return swap_axes(c["x"], c.integer("a"), c.integer("b")); }},
    {"narrow", [](const Call& c) { return narrow(c["x"], c.integer("axis"), c.integer("start"), c.integer("length")); }},
    {"broadcast_to", [](const Call& c) { return broadcast_to(c["x"], c.integers("shape")); }},
    {"sum_to_shape", [](const Call& c) { return sum_to_shape(c["x"], c.integers("shape")); }},
    {"concat", [](const Call& c) { return concat(c.operands(), c.integer("axis")); }},
    {"stack", [](const Call& c) { return stack(c.operands(), c.integer("axis")); }},
    {"split", nullptr, [](const Call& c) { return split(c["x"], c.integers("sizes"), c.integer("axis")); }},
    {"conv2d",
     [](const Call& c) {
       return conv2d(c["x"], c["w"], {.stride = c.size("stride"), .padding = c.size("padding"), .groups = c.integer("groups")});
     }},
    {"max_pool2d",
     [](const Call& c) { return max_pool2d(c["x"], c.size("kernel"), {.stride = c.size("stride"), .padding = c.size("padding")}); }},
    {"nearest_upsample2d", [](const Call& c) { return nearest_upsample2d(c["x"], c.size("factor")); }},
    {"matmul", [](const Call& c) { return matmul(c["a"], c["b"]); }},
    {"embedding", [](const Call& c) { return embedding(c["table"], c["idx"]); }},
    {"one_hot",
     [](const Call& c) {
       if (c.has("dtype")) (void)c.choice("dtype", {"f32"});
       return one_hot(c["idx"], c.integer("depth"));
     }},
    {"take_along_axis", [](const Call& c) { return take_along_axis(c["x"], c["idx"], c.integer("axis")); }},
    {"softmax", [](const Call& c) { return softmax(c["x"], c.integer("axis")); }},
    {"log_softmax", [](const Call& c) { return log_softmax(c["x"], c.integer("axis")); }},
    {"softmax_causal", [](const Call& c) { return softmax_causal(c["x"]); }},
    {"where_causal", [](const Call& c) { return where_causal(c["x"], c.number("fill")); }},
    {"cross_entropy", [](const Call& c) { return cross_entropy(c["logits"], c["targets"], {.reduction = reductionOf(c)}); }},
    {"rms_norm", [](const Call& c) { return rms_norm(c["x"], c["g"], c.number("eps")); }},
    {"rope",
     [](const Call& c) {
       const RopeLayout layout = c.choice("layout", {"half", "interleaved"}) == 0 ? RopeLayout::Half : RopeLayout::Interleaved;
       return rope(c["x"], {.base = c.number("base"), .layout = layout});
     }},
    {"attention",
     [](const Call& c) {
       if (c["k"].rank() > 2) c.check("kv_heads", c["k"].extent(-3));
       return scaled_dot_product_attention(c["q"], c["k"], c["v"], {.causal = c.boolean("causal")});
     }},
    {"causal_conv1d", [](const Call& c) { return causal_conv1d(c["x"], c["w"], {.bias = c["b"]}).y; }},
    {"selective_scan",
     [](const Call& c) {
       SelectiveScanOptions options{.skip = c["D"], .softplus = c.boolean("delta_softplus")};
       if (c.has("gate")) {
         (void)c.choice("gate", {"silu"});
         options.gate = c["z"];
       }
       if (c.choice("discretise_B", {"euler", "zoh"}) == 1) options.discretisation = Discretisation::ZeroOrderHold;
       return selective_scan(c["u"], c["delta"], c["A"], c["B"], c["C"], options).y;
     }},
    {"ssd", [](const Call& c) { return ssd(c["x"], c["dt"], c["A"], expand_dims(c["B"], 2), expand_dims(c["C"], 2), {.skip = c["D"]}).y; }},
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
    case io::ElementType::F16:
      return DType::F16;
    case io::ElementType::BF16:
      return DType::BF16;
    case io::ElementType::I8:
      return DType::I8;
    case io::ElementType::U8:
      return DType::U8;
    case io::ElementType::U16:
      return DType::U16;
  }
  return DType::F32;
}

TensorType typeOf(const io::Array& array) { return {dtypeOf(array), Shape(array.shape)}; }

}  // namespace

Result<graph::Graph> traceGoldenCase(const GoldenCase& golden) {
  const auto* row = std::ranges::find(kOps, std::string_view(golden.op), &Row::op);
  if (row == std::end(kOps)) return unsupported(fmt::format("op '{}' is not implemented", golden.op));
  try {
    detail::Trace trace;
    Call call(golden);
    for (const auto& [name, array] : golden.inputs) call.bind(name, trace.addInput(name, typeOf(array)));
    const std::vector<Tensor> results = row->build != nullptr ? std::vector{row->build(call)} : row->build_all(call);
    call.refuseUnknown();
    if (results.size() != golden.outputs.size()) {
      return fail("golden.case", fmt::format("case '{}' has {} outputs, wanted {}", golden.name, golden.outputs.size(), results.size()));
    }
    Tensor loss;
    size_t number = 0;
    for (const auto& [name, expected] : golden.outputs) {
      const Tensor y = results[number++];
      if (y.shape() != Shape(expected.shape)) {
        return fail("golden.case",
                    fmt::format("case '{}' gives {} but {} is expected", golden.name, graph::toString(y.type()), io::describe(expected)));
      }
      trace.output(graph::OutputKind::Result, name, y);
      if (golden.gradients.empty()) continue;
      const Tensor term = sum(y * trace.addInput("cotangent." + name, typeOf(golden.cotangents.find(name)->second)));
      loss = number == 1 ? term : loss + term;
    }
    if (!golden.gradients.empty()) trace.output(graph::OutputKind::Loss, "loss", loss);
    return trace.take();
  } catch (const Error& error) {
    return Failure{.diagnostics = error.diagnostics(), .exit_code = error.exitCode()};
  }
}

}  // namespace lockstep::tools
