// SPDX-License-Identifier: Apache-2.0
#include "tools/kernel/run_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "console/findings_text.h"
#include "frontend/io/file.h"
#include "frontend/io/sealed.h"
#include "runtime/program_trainer.h"
#include "tools/kernel/array_text.h"
#include "tools/verb.h"
#include "tools/verify/replay.h"

namespace lockstep::tools {

Result<ExitCode> replayStage(const ProgramOptions& options) {
  if (options.inputs.empty()) {
    return usage("inputs", fmt::format("'{}' needs --inputs FILE.safetensors, or a .program --steps N", options.path),
                 "--dump-ir writes inputs.safetensors");
  }
  LS_TRY(const io::TensorFile values, io::readSafetensors(options.inputs));
  LS_TRY(const Replayed replayed, replay(options.path, values, options.device));
  const io::TensorFile& outputs = replayed.outputs;
  for (const std::string& out : options.outs) LS_CHECK(io::writeSafetensors(out, outputs));
  if (options.json) {
    io::Json list = io::Json::array();
    for (const auto& [name, array] : outputs.tensors)
      list.add(arrayJson(name, array, options.outs.empty() ? io::Json() : io::Json(options.outs.back())));
    io::Json object = io::Json::object().add("outputs", list);
    if (options.sanitizes) object.add("findings", console::findingsJson(replayed.findings));
    fmt::print("{}\n", object.text());
  } else {
    fmt::print("{}", summarise(outputs));
    if (options.sanitizes) console::printFindings(replayed.findings);
  }
  return hasError(replayed.findings) ? ExitCode::NumericCheck : ExitCode::Ok;
}

namespace {

Status saveTo(const std::string& path, const ProgramTrainer& trainer) {
  if (path.empty()) return Success{};
  LS_TRY(const io::TensorFile checkpoint, trainer.checkpoint());
  return io::writeSealed(path, checkpoint);
}

void report(const ProgramStep& step) {
  fmt::print("step {}  loss {:.6g}  lr {:.4g}{}{}\n", step.step, step.loss, step.lr,
             step.grad_norm ? fmt::format("  grad_norm {:.4g}", *step.grad_norm) : "",
             step.loss_scale ? fmt::format("  loss_scale {:g}", *step.loss_scale) : "");
}

}  // namespace

Result<ExitCode> trainProgram(const ProgramOptions& options) {
  constexpr int64_t kReports = 10;
  if (options.batches.empty())
    return usage("batches", "--steps needs --batches FILE.safetensors", "--dump-ir DIR --dump-steps N writes batches.safetensors");
  LS_TRY(const std::string text, io::readTextFile(options.path));
  LS_TRY(program::Program program, program::parse(text, options.path));
  LS_TRY(const io::TensorFile batches, io::readSafetensors(options.batches));
  LS_TRY(ProgramTrainer trainer, ProgramTrainer::open(std::move(program), options.device));
  if (!options.load.empty()) {
    LS_TRY(const io::TensorFile checkpoint, io::readSealed(options.load));
    LS_CHECK(trainer.load(checkpoint));
  }
  const int64_t every = std::max<int64_t>(1, options.steps / kReports);
  io::Json losses = io::Json::array();
  for (int64_t i = 1; i <= options.steps; ++i) {
    const Result<ProgramStep> step = trainer.step(batches);
    if (!step.ok()) {
      // A step that is not finite has changed nothing; after another failure the checkpoint that is there is the better one.
      if (step.failure().exit_code == ExitCode::NumericCheck) LS_CHECK(saveTo(options.save, trainer));
      Failure failure = step.failure();
      console::addFindings(failure, trainer.findings());
      return failure;
    }
    if (options.json) losses.add(static_cast<double>(step->loss));
    if (!options.json && (i % every == 0 || i == options.steps)) report(*step);
    if (options.save_every > 0 && i % options.save_every == 0) LS_CHECK(saveTo(options.save, trainer));
  }
  LS_CHECK(saveTo(options.save, trainer));
  if (options.json) {
    io::Json object = io::Json::object()
                          .add("device", trainer.device())
                          .add("steps", trainer.steps())
                          .add("losses", losses)
                          .add("file", options.save.empty() ? io::Json() : io::Json(options.save));
    if (options.sanitizes) object.add("findings", console::findingsJson(trainer.findings()));
    fmt::print("{}\n", object.text());
  } else if (options.sanitizes) {
    console::printFindings(trainer.findings());
  }
  return hasError(trainer.findings()) ? ExitCode::NumericCheck : ExitCode::Ok;
}

}  // namespace lockstep::tools
