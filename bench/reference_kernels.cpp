// SPDX-License-Identifier: Apache-2.0
// Speed of the reference machine on one thread: nanoseconds a lane of single operations, and a matrix product.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "backends/reference/bytecode.h"
#include "backends/reference/dispatch.h"

namespace lockstep::reference {
namespace {

kernel::Module parse(const std::string& text) { return std::move(kernel::parse("lockstep.kernel 1\n" + text)).orThrow(); }

void runOnce(ThreadPool& pool, const Bytecode& code, std::span<const BufferView> views, std::array<uint32_t, 3> groups) {
  const Fault fault = dispatch(pool, code, views, groups, {}).fault;
  if (fault.kind != Fault::Kind::None) internalError("a benchmark kernel failed");
}

/// 16 instructions of one kind in a loop of 64 steps, over 64 groups of 256 lanes.
void pureOperation(benchmark::State& state, const std::string& operation) {
  std::string body;
  for (int k = 0; k < 16; ++k)
    body += fmt::format("    %x{}: f32 = {}\n", k + 1,
                        fmt::format(fmt::runtime(operation), fmt::arg("x", fmt::format("%x{}", k)), fmt::arg("y", "%y")));
  kernel::Module module = parse(R"(var @data: array<f32> {access = read_write, binding = 0, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [256, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %p: ptr<storage, f32, read_write> = access @data, %i
  %y: f32 = load %p
  %v: ptr<function, f32> = var %y
  %n: ptr<function, u32> = var
  loop {
    %x0: f32 = load %v
)" + body + R"(
    store %v, %x16
  } continuing {
    %k1: u32 = load %n
    %k2: u32 = add %k1, 1u
    store %n, %k2
    %end: bool = eq %k2, 64u
    break_if %end
  }
  %r: f32 = load %v
  store %p, %r
}
)");
  Bytecode code = std::move(decode(module)).orThrow();
  std::vector<uint32_t> data(64 * 256, 0x3f800001u);
  BufferView view{data.data(), static_cast<uint32_t>(data.size()), nullptr};
  ThreadPool pool(1);
  for (auto _ : state) runOnce(pool, code, {&view, 1}, {64, 1, 1});
  double lane_operations = 64.0 * 256 * 64 * 16;
  state.counters["ns/lane-op"] =
      benchmark::Counter(lane_operations / 1e9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(pureOperation, add, std::string("add {x}, {y}"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pureOperation, div, std::string("div {x}, {y}"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pureOperation, max, std::string("max {x}, {y}"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pureOperation, floor, std::string("floor {x}"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pureOperation, rem, std::string("rem {x}, {y}"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pureOperation, sqrt, std::string("sqrt {x}"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pureOperation, inverse_sqrt, std::string("inverse_sqrt {x}"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pureOperation, exp, std::string("exp {x}"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pureOperation, log, std::string("log {x}"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pureOperation, sin, std::string("sin {x}"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pureOperation, tanh, std::string("tanh {x}"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pureOperation, pow, std::string("pow {x}, {y}"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(pureOperation, atan, std::string("atan {x}"))->Unit(benchmark::kMillisecond);

/// One element per lane over 256 K elements; `index` computes %j, the element that is read, from %i.
void elements(benchmark::State& state, const std::string& index) {
  kernel::Module module = parse(R"(var @a: array<f32> {binding = 0, group = 0, space = storage}
var @b: array<f32> {access = read_write, binding = 1, group = 0, space = storage}
fn @main(%gid: vec3<u32> {builtin = global_invocation_id}) {workgroup_size = [64, 1, 1]} {
  %i: u32 = extract %gid, 0u
  %inside: bool = lt %i, 262144u
  if %inside {
)" + index + R"(
    %p: ptr<storage, f32, read> = access @a, %j
    %x: f32 = load %p
    %y: f32 = add %x, 1.0f
    %q: ptr<storage, f32, read_write> = access @b, %i
    store %q, %y
  }
}
)");
  Bytecode code = std::move(decode(module)).orThrow();
  std::vector<uint32_t> a(1u << 18), b(1u << 18);
  std::array<BufferView, 2> views{BufferView{a.data(), 1u << 18, nullptr}, BufferView{b.data(), 1u << 18, nullptr}};
  ThreadPool pool(1);
  for (auto _ : state) runOnce(pool, code, views, {4096, 1, 1});
  state.counters["ns/element"] =
      benchmark::Counter(262144.0 / 1e9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(elements, in_order, std::string("%j: u32 = add %i, 0u"))->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(elements, transposed,
                  std::string("%r: u32 = div %i, 192u %c: u32 = rem %i, 192u %k: u32 = mul %c, 1365u %j: u32 = add %k, %r"))
    ->Unit(benchmark::kMicrosecond);

/// C = A * B of n x n: a group of 128 lanes takes `rows` rows and 512 columns, a lane four columns of each.
void matrixProduct(benchmark::State& state) {
  const uint32_t n = 512, rows = static_cast<uint32_t>(state.range(0));
  std::string products, stores, declarations;
  for (uint32_t r = 0; r < rows; ++r) {
    declarations += fmt::format(
        "  %acc{}: ptr<function, vec4<f32>> = var\n  %row{}: u32 = add %row, {}u\n  %base{}: u32 = mul %row{}, 512u\n", r, r, r, r, r);
    products += fmt::format(R"(    %at{0}: u32 = add %base{0}, %kv
    %pa{0}: ptr<storage, f32, read> = access @a, %at{0}
    %a{0}: f32 = load %pa{0}
    %v{0}: vec4<f32> = construct %a{0}
    %m{0}: vec4<f32> = mul %v{0}, %b
    %o{0}: vec4<f32> = load %acc{0}
    %s{0}: vec4<f32> = add %o{0}, %m{0}
    store %acc{0}, %s{0}
)",
                            r);
    stores += fmt::format(R"(  %c{0}: u32 = mul %row{0}, 128u
  %d{0}: u32 = add %c{0}, %lane
  %pc{0}: ptr<storage, vec4<f32>, read_write> = access @c, %d{0}
  %r{0}: vec4<f32> = load %acc{0}
  store %pc{0}, %r{0}
)",
                          r);
  }
  kernel::Module module = parse(fmt::format(R"(var @a: array<f32> {{binding = 0, group = 0, space = storage}}
var @b: array<vec4<f32>> {{binding = 1, group = 0, space = storage}}
var @c: array<vec4<f32>> {{access = read_write, binding = 2, group = 0, space = storage}}
fn @main(%lane: u32 {{builtin = local_invocation_index}}, %w: vec3<u32> {{builtin = workgroup_id}}) {{workgroup_size = [128, 1, 1]}} {{
  %wx: u32 = extract %w, 0u
  %row: u32 = mul %wx, {}u
{}  %k: ptr<function, u32> = var
  loop {{
    %kv: u32 = load %k
    %end: bool = ge %kv, 512u
    if %end {{
      break
    }}
    %kb: u32 = mul %kv, 128u
    %at: u32 = add %kb, %lane
    %pb: ptr<storage, vec4<f32>, read> = access @b, %at
    %b: vec4<f32> = load %pb
{}  }} continuing {{
    %k1: u32 = load %k
    %k2: u32 = add %k1, 1u
    store %k, %k2
  }}
{}}}
)",
                                            rows, declarations, products, stores));
  Bytecode code = std::move(decode(module)).orThrow();
  std::vector<uint32_t> a(n * n, 0x3f800000u), b(n * n, 0x3f800000u), c(n * n);
  std::array<BufferView, 3> views{BufferView{a.data(), n * n, nullptr}, BufferView{b.data(), n * n, nullptr},
                                  BufferView{c.data(), n * n, nullptr}};
  ThreadPool pool(1);
  for (auto _ : state) runOnce(pool, code, views, {n / rows, 1, 1});
  if (c[n * n - 1] != 0x44000000u) internalError("the product is wrong");
  if (state.thread_index() == 0 && state.range(0) == 1) state.SetLabel(fmt::format("{} groups a batch", code.batch_groups));
  state.counters["GFLOP/s"] = benchmark::Counter(2.0 * n * n * n / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(matrixProduct)->Arg(1)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lockstep::reference

BENCHMARK_MAIN();
