// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "backends/sanitize.h"
#include "tools/kernel/run_kernel.h"
#include "tools/kernel/run_program.h"
#include "tools/verb.h"

namespace lockstep::tools {

Result<ExitCode> runVerb(Arguments arguments) {
  KernelOptions kernel;
  ProgramOptions program;
  bool time = false;
  Options options("lockstep run",
                  "Runs one entry point of a kernel once, one stage of a --dump-ir folder once, or its program for many steps.");
  options.argument(kernel.path, "FILE", "a kernel (.wgsl or .kir) or a stage of a dump (.graph or .program)");
  options.value(kernel.entry, "--entry", "entry point, where there are several");
  options.value(kernel.dispatch, "--dispatch", "workgroups X,Y,Z");
  options.list(kernel.binds, "--bind",
               "G.B=FILE.npy | zeros:BYTES | uninit:BYTES (memory that nobody wrote) | alias:G.B | iota:TYPE[N] | fill:TYPE[N]=V; where "
               "the type has a size: zeros, fill:V, list:V,V,...");
  options.value(kernel.immediate, "--immediate",
                "the value of the variable in immediate memory, as for --bind: list:V,V,... | FILE.npy | zeros | fill:V");
  options.list(kernel.outs, "--out", "G.B=FILE.npy, or G.B=- to print; of a stage: FILE.safetensors");
  options.value(program.inputs, "--inputs", "of a stage: its parameters, states and inputs (inputs.safetensors of the dump)");
  options.value(program.steps, "--steps", "train this many steps with a .program of a dump, which needs no model");
  options.value(program.batches, "--batches", "of --steps: the inputs of one or more runs, used in turn (batches.safetensors of the dump)");
  options.value(program.load, "--load", "of --steps: the checkpoint to begin with (start.safetensors of the dump)");
  options.value(program.save, "--save", "of --steps: write a checkpoint to this file after the last step");
  options.value(program.save_every, "--save-every", "of --steps: also after every so many steps");
  options.list(kernel.overrides, "--override", "NAME=NUMBER, the value of an override constant");
  options.value(
      kernel.out_of_bounds, "--out-of-bounds",
      "what an index out of bounds does: clamp (the default of .wgsl), zero, or trap, which only the reference can (its default of "
      ".kir)");
  options.choices("--out-of-bounds", {"clamp", "zero", "trap"});
  options.value(kernel.device, "--device", console::kDevices);
  options.choices("--device", {"auto", "reference", "vulkan"});
  options.list(kernel.expects, "--expect", "G.B=FILE.npy, what the binding should hold after the run; exit code 5 if it does not");
  options.value(kernel.rtol, "--rtol",
                "of --expect and --devices: how far a float may be off, relative to its value; of f16 at least 2^-7, unless it is 0");
  options.value(kernel.atol, "--atol", "of --expect and --devices: and how far in addition");
  options.list(kernel.withins, "--within", "G.B=FILE.npy, of --expect: how far each element may be off, instead of --rtol and --atol");
  options.commaList(
      kernel.devices, "--devices",
      "run it on each of these devices, with commas, and say whether the results are equal, differ by rounding, differ from run "
      "to run (a race) or are wrong, or whether a device cannot run it");
  options.value(kernel.runs, "--runs", "of --devices: how many times on each");
  options.flagOrValue(kernel.sanitize, "--sanitize", "all",
                      fmt::format("run on the reference and report races, memory, numbers, loops, barriers, subgroups and layouts that go "
                                  "wrong; ={}: only those; wrap, every integer that does not fit 32 bits, is off until it is named. Exit "
                                  "code 5 if there is an error",
                                  fmt::join(sanitizeCheckNames(), ",")));
  options.value(kernel.loop_budget, "--loop-budget", "of --sanitize: rounds of loops times invocations after which a workgroup is endless");
  options.value(kernel.print_from, "--print-from",
                "only these invocations print: X[,Y[,Z]] of global_invocation_id, each a number or a range such as 0..3 (both ends count)");
  options.value(kernel.schedules, "--schedules",
                "with --sanitize: also run it in so many other orders of workgroups and invocations, and report what differs");
  options.value(kernel.schedule_seed, "--schedule-seed", "of --schedules: the same seed gives the same orders");
  options.value(kernel.why, "--why",
                "G.B[N]: the operations, loads and stores that made word N of this binding, or f16 N, on the reference");
  options.value(kernel.repeat, "--repeat", "run it this many more times, on what it left, and print how long one takes");
  options.flag(time, "--time", "the same as --repeat 10");
  options.flag(kernel.json, "--json", "one JSON object for scripts: the arrays of --out, the outputs of a stage, or the losses of --steps");
  LS_TRY(const bool go, options.parse(arguments));
  if (!go) return ExitCode::Ok;
  if (kernel.loop_budget < 1) return usage("value", "--loop-budget is at least 1");
  if (kernel.schedules < 0) return usage("value", "--schedules is at least 0");
  if (kernel.schedules > 0 && kernel.sanitize.empty()) kernel.sanitize = "all";
  if (kernel.runs < 1) return usage("value", "--runs is at least 1");
  if (!(kernel.rtol >= 0) || !(kernel.atol >= 0)) return usage("value", "--rtol and --atol are at least 0");
  if (kernel.repeat < 0) return usage("value", "--repeat is at least 0");
  if (program.steps < 0 || program.save_every < 0) return usage("value", "--steps and --save-every are at least 0");
  if (time && kernel.repeat == 0) kernel.repeat = 10;
  const bool trains = program.steps > 0;
  if (!trains && !(program.batches + program.load + program.save).empty())
    return usage("steps", "--batches, --load and --save belong to --steps N");

  const bool compares = !kernel.expects.empty() || !kernel.withins.empty() || !kernel.devices.empty();
  const bool is_program = kernel.path.ends_with(".program");
  if (is_program || kernel.path.ends_with(".graph")) {
    if (compares) return usage("expect", "--expect, --within and --devices take a kernel", "'lockstep verify program' compares a .program");
    program.path = kernel.path;
    program.device = kernel.device;
    program.outs = kernel.outs;
    program.json = kernel.json;
    if (!kernel.sanitize.empty()) {
      if (!is_program) return usage("sanitize", "--sanitize takes a kernel or a .program; a graph has no kernels");
      if (kernel.device != "auto" && kernel.device != "reference")
        return usage("device", fmt::format("--sanitize runs on the reference, not on '{}'", kernel.device), "leave out --device");
      program.sanitizes = true;
      program.device = "sanitizer:" + kernel.sanitize;
    }
    if (!trains) return replayStage(program);
    if (!is_program) return usage("steps", fmt::format("--steps takes a .program, but '{}' is a graph", kernel.path));
    if (!program.inputs.empty()) return usage("inputs", "--inputs is for one run; --steps takes --load and --batches");
    return trainProgram(program);
  }
  if (trains) return usage("steps", fmt::format("--steps takes a .program of a dump, and '{}' is none", kernel.path));
  if (!program.inputs.empty()) return usage("inputs", "--inputs belongs to a .graph or .program; a kernel takes --bind");
  return runKernelFile(kernel);
}

}  // namespace lockstep::tools
