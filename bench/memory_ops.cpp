// SPDX-License-Identifier: Apache-2.0
// Ops whose time memory decides: softmax, norms, sums, maps, short rows, embedding and the update of AdamW. Their tensors stay on the
// device, and each case is timed after most of a second of load: many runs in one submission, with their barriers, less fewer runs in
// another. peer_memory_ops.py times the same in PyTorch, whose runs are a CUDA graph.
// usage: bench_memory_ops [--json] [--kernels] [--only TEXT] [DEVICE]   (--kernels: the time of each one of the last run)
//        bench_memory_ops --graph [--only TEXT]   (prints what `lockstep opt` reads, and times nothing)
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <random>

#include "backends/backend.h"
#include "frontend/io/array.h"
#include "frontend/train/session.h"
#include "ir/graph/op_def.h"

namespace {

using namespace lockstep;
using graph::Attributes;
using graph::DType;
using graph::Shape;
using graph::TensorType;
using graph::ValueId;

constexpr double kWarmSeconds = 0.8;          // clocks rise late after the host has made the numbers
constexpr double kSubmissionSeconds = 0.005;  // of the shorter one
constexpr size_t kMostRuns = 256, kRounds = 11;
constexpr size_t kDrawn = 65537;  // random numbers of a tensor

TensorType f32(Shape shape) { return {DType::F32, std::move(shape)}; }

/// A program whose large tensors are states, so that nothing is sent or fetched around its kernels.
class OpProgram {
 public:
  /// Floats lie in memory as `storage`, and are computed with as f32.
  explicit OpProgram(DType storage) : storage_(storage) {}

  /// Random numbers in [-1, 1], or in [0, 1].
  ValueId tensor(TensorType type, bool is_positive = false) {
    type.dtype = storage_;
    const std::string name = fmt::format("x{}", states_.size());
    states_.push_back({name, type, is_positive});
    bytes_ += static_cast<double>(type.byteSize());
    return cast(leaf(name, type), DType::F32);
  }
  /// Indices below `below` with probabilities 1, 1/2, 1/3, ...
  ValueId zipfIndices(int64_t count, int64_t below) {
    std::vector<double> weights;
    for (int64_t i = 0; i < below; ++i) weights.push_back(1.0 / static_cast<double>(i + 1));
    std::discrete_distribution<int32_t> index(weights.begin(), weights.end());
    std::mt19937 random(7);
    for (int64_t i = 0; i < count; ++i) indices_.push_back(index(random));
    inputs_.push_back({"indices", {DType::I32, Shape{count}}});
    bytes_ += 4.0 * static_cast<double>(count);
    return builder_.make("input", {}, {{"name", std::string("indices")}, {"dtype", DType::I32}, {"shape", std::vector<int64_t>{count}}});
  }
  void result(ValueId value) {
    value = cast(value, storage_);
    update(leaf(fmt::format("y{}", results_++), builder_.typeOf(value)), value);
  }
  /// The next version of a tensor.
  void update(ValueId state, ValueId value) {
    const auto& name = builder_.graph().definition(state).attributes.get<std::string>("name");
    bytes_ += static_cast<double>(builder_.typeOf(value).byteSize());
    builder_.output(graph::OutputKind::NextState, name, builder_.make("update_slice", {state, value}, {{"offset", int64_t{0}}}));
  }
  /// One op; with gradients also those of its operands.
  void op(std::string_view name, const std::vector<ValueId>& operands, const Attributes& attributes, bool with_gradient) {
    const ValueId value = builder_.make(name, operands, attributes);
    const graph::Node node = builder_.graph().nodes.back();
    result(value);
    if (!with_gradient) return;
    const auto& gradient = std::get<graph::GradientFn>(*graph::op(name).gradient);
    const std::vector<ValueId> results{value}, cotangents{tensor(builder_.typeOf(value))};
    for (const ValueId cotangent : gradient({builder_, node, operands, results, cotangents})) {
      if (cotangent.valid()) result(cotangent);
    }
  }
  graph::Builder& builder() { return builder_; }
  [[nodiscard]] double bytes() const { return bytes_; }

  std::unique_ptr<detail::Session> compile(const detail::Device& device) {
    auto states = std::make_shared<detail::States>(device);
    auto session = std::make_unique<detail::Session>(builder_.take(), passes::CompileOptions{}, states, inputs_);
    std::mt19937 random(1);
    for (const auto& [name, type, is_positive] : states_) {
      if (!states->has(name)) continue;
      std::uniform_real_distribution<double> number(is_positive ? 0 : -1, 1);
      std::vector<double> values(static_cast<size_t>(type.shape.elementCount()));
      // Some random numbers again and again: to draw all would take most of the time of a run.
      for (size_t i = 0; i < values.size(); ++i) values[i] = i < kDrawn ? number(random) : values[i - kDrawn];
      states->write(name, io::Array::from(*io::findElementType(graph::toString(type.dtype)), type.shape.extents(), values));
    }
    return session;
  }
  [[nodiscard]] Batch batch() const { return indices_.empty() ? Batch{} : Batch{{"indices", indices_}}; }

 private:
  struct State {
    std::string name;
    TensorType type;
    bool is_positive;
  };
  ValueId cast(ValueId value, DType dtype) {
    return builder_.typeOf(value).dtype == dtype ? value : builder_.make("cast", {value}, {{"dtype", dtype}});
  }
  ValueId leaf(const std::string& name, const TensorType& type) {
    return builder_.make("state", {}, {{"name", name}, {"dtype", type.dtype}, {"shape", type.shape.extents()}, {"init", 0.0}});
  }

  DType storage_;
  graph::Builder builder_;
  std::vector<State> states_;
  std::vector<InputSpec> inputs_;
  std::vector<int32_t> indices_;
  size_t results_ = 0;
  double bytes_ = 0;
};

struct Case {
  std::string name;
  std::function<void(OpProgram&)> make;
  bool f32_only = false;
};

using Rows = std::pair<int64_t, int64_t>;

Case softmax(Rows rows, bool with_gradient = false) {
  return {fmt::format("softmax {}x{}{}", rows.first, rows.second, with_gradient ? " gradient" : ""),
          [=](OpProgram& p) { p.op("softmax", {p.tensor(f32({rows.first, rows.second}))}, {}, with_gradient); }};
}
Case layerNorm(Rows rows, bool with_gradient = false) {
  return {fmt::format("layer_norm {}x{}{}", rows.first, rows.second, with_gradient ? " gradient" : ""), [=](OpProgram& p) {
            const ValueId x = p.tensor(f32({rows.first, rows.second})), scale = p.tensor(f32({rows.second}));
            p.op("layer_norm", {x, scale, p.tensor(f32({rows.second}))}, {{"eps", 1e-5}}, with_gradient);
          }};
}
Case rmsNorm(Rows rows, bool with_gradient = false) {
  return {fmt::format("rms_norm {}x{}{}", rows.first, rows.second, with_gradient ? " gradient" : ""), [=](OpProgram& p) {
            const ValueId x = p.tensor(f32({rows.first, rows.second}));
            p.op("rms_norm", {x, p.tensor(f32({rows.second}))}, {{"eps", 1e-5}}, with_gradient);
          }};
}
Case sum(Rows rows, int64_t axis) {
  return {fmt::format("sum {}x{} axis {}", rows.first, rows.second, axis), [=](OpProgram& p) {
            p.op("sum", {p.tensor(f32({rows.first, rows.second}))}, {{"axes", std::vector{axis}}, {"keep_dims", false}}, false);
          }};
}
Case add(int64_t count) {
  return {fmt::format("add {}", count), [=](OpProgram& p) {
            const ValueId a = p.tensor(f32({count}));
            p.op("add", {a, p.tensor(f32({count}))}, {}, false);
          }};
}
Case embedding(int64_t entries, int64_t width, int64_t count, bool with_gradient) {
  return {fmt::format("embedding {}x{} {}{}", entries, width, count, with_gradient ? " gradient" : ""), [=](OpProgram& p) {
            const ValueId table = p.tensor(f32({entries, width}));
            p.op("embedding", {table, p.zipfIndices(count, entries)}, {}, with_gradient);
          }};
}
/// One step of all parameters as one tensor, with the bias corrections of a late step.
Case adamw(int64_t count) {
  return {fmt::format("adamw {}", count),
          [=](OpProgram& p) {
            graph::Builder& b = p.builder();
            const ValueId w = p.tensor(f32({count})), g = p.tensor(f32({count})), m = p.tensor(f32({count})),
                          v = p.tensor(f32({count}), true);
            const ValueId m1 = b.add(b.mul(m, 0.9), b.mul(g, 0.1)), v1 = b.add(b.mul(v, 0.999), b.mul(b.mul(g, g), 0.001));
            const ValueId root = b.make("sqrt", {v1});
            const ValueId step = b.make("div", {m1, b.add(root, b.constant(1e-8, b.typeOf(root)))});
            p.update(m, m1);
            p.update(v, v1);
            p.update(w, b.sub(b.mul(w, 1 - 1e-3 * 0.01), b.mul(step, 1e-3)));
          },
          true};
}

std::vector<Case> cases() {
  const Rows large{8192, 4096};
  std::vector<Case> all{softmax(large),       softmax(large, true), layerNorm(large), layerNorm(large, true), rmsNorm(large),
                        rmsNorm(large, true), sum(large, 1),        sum(large, 0),    add(1 << 25),           add(33'000'000)};
  for (const Rows& rows : {Rows{16384, 16}, Rows{8192, 64}, Rows{2048, 512}}) {
    all.push_back(softmax(rows));
    all.push_back(layerNorm(rows));
    all.push_back(sum(rows, 1));
  }
  all.push_back(embedding(50257, 768, 8192, false));
  all.push_back(embedding(50257, 768, 8192, true));
  all.push_back(adamw(124'000'000));
  return all;
}

struct Measured {
  double seconds = 0;  ///< of a run, the median
  double bytes = 0;    ///< of all its tensors, each read or written once
  size_t kernels = 0, copies = 0;
  std::vector<ProfiledCommand> commands = {};  ///< of one run, with a timestamp around each
};

/// The time of `runs` runs in one submission.
double secondsOf(detail::Session& session, const std::vector<std::byte>& input, size_t runs) {
  const std::vector<std::vector<std::byte>> inputs(runs, input);
  const auto start = std::chrono::steady_clock::now();
  (void)session.wait(session.submit(inputs).orThrow()).orThrow();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Measured measure(const Case& timed, DType storage, const detail::Device& device) {
  OpProgram program(storage);
  timed.make(program);
  Measured out{.bytes = program.bytes()};
  const auto session = program.compile(device);
  const std::vector<std::byte> input = session->encode(program.batch(), {});
  size_t runs = 1;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kWarmSeconds);
  while (std::chrono::steady_clock::now() < end) {
    if (secondsOf(*session, input, runs) < kSubmissionSeconds && runs < kMostRuns) runs *= 2;
  }
  std::vector<double> times;
  for (size_t round = 0; round < kRounds; ++round) {
    const double few = secondsOf(*session, input, runs);
    times.push_back((secondsOf(*session, input, 3 * runs) - few) / static_cast<double>(2 * runs));
  }
  std::ranges::nth_element(times, times.begin() + kRounds / 2);
  out.seconds = times[kRounds / 2];
  out.commands = session->time(input);
  for (const ProfiledCommand& command : out.commands) ++(command.kernel.empty() ? out.copies : out.kernels);
  return out;
}

}  // namespace

int main(int count, char** arguments) {
  bool json = false, kernels = false, graphs = false;
  std::string only, selector = "vulkan";
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--json") {
      json = true;
    } else if (argument == "--kernels") {
      kernels = true;
    } else if (argument == "--graph") {
      graphs = true;
    } else if (argument == "--only" && i + 1 < count) {
      only = arguments[++i];
    } else {
      selector = argument;
    }
  }
  try {
    const detail::Device device = detail::openChosenDevice(graphs ? "reference" : selector);
    for (const DType storage : {DType::F32, DType::BF16}) {
      for (const Case& timed : cases()) {
        if (timed.name.find(only) == std::string::npos || (timed.f32_only && storage != DType::F32)) continue;
        if (graphs) {
          OpProgram program(storage);
          timed.make(program);
          fmt::print("# {} {}\n{}", timed.name, graph::toString(storage), graph::print(program.builder().graph()));
          continue;
        }
        const Measured m = measure(timed, storage, device);
        if (json) {
          fmt::print(
              "{{\"case\": \"{}\", \"device\": \"{}\", \"type\": \"{}\", \"us\": {:.2f}, \"gb_per_s\": {:.1f}, \"kernels\": {}, "
              "\"copies\": {}}}\n",
              timed.name, device.chosen.info.id, graph::toString(storage), m.seconds * 1e6, m.bytes / m.seconds / 1e9, m.kernels, m.copies);
        } else {
          fmt::print("{:36} {:4} {:>10.1f} us {:8.1f} GB/s  {} kernels, {} copies\n", timed.name, graph::toString(storage), m.seconds * 1e6,
                     m.bytes / m.seconds / 1e9, m.kernels, m.copies);
        }
        for (const ProfiledCommand& command : m.commands) {
          if (kernels)
            fmt::print("  level {:2} {:>8.1f} us {:>8} groups  {} {}\n", command.level, command.seconds * 1e6,
                       command.groups[0] * command.groups[1], command.kernel, command.label);
        }
        std::fflush(stdout);
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
