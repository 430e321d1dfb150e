// SPDX-License-Identifier: Apache-2.0
// Trains with a dumped program and nothing else. usage: train_program DUMP PROGRAM DEVICE STEPS CHECKPOINT
#include <fmt/format.h>

#include <cstdlib>
#include <span>
#include <string>

#include "frontend/io/file.h"
#include "frontend/io/sealed.h"
#include "runtime/program_trainer.h"

namespace lockstep {
namespace {

Status train(const std::string& dump, const std::string& path, const std::string& device, int steps, const std::string& checkpoint) {
  LS_TRY(const std::string text, io::readTextFile(dump + "/" + path));
  LS_TRY(program::Program program, program::parse(text, path));
  LS_TRY(const io::TensorFile start, io::readSealed(dump + "/start.safetensors"));
  LS_TRY(const io::TensorFile batches, io::readSafetensors(dump + "/batches.safetensors"));
  LS_TRY(ProgramTrainer trainer, ProgramTrainer::open(std::move(program), device));
  LS_CHECK(trainer.load(start));
  for (int i = 0; i < steps; ++i) LS_CHECK(trainer.step(batches));
  LS_TRY(const io::TensorFile end, trainer.checkpoint());
  return io::writeSealed(checkpoint, end);
}

}  // namespace
}  // namespace lockstep

int main(int count, char** arguments) {
  if (count != 6) return 2;
  const lockstep::Status trained = lockstep::train(arguments[1], arguments[2], arguments[3], std::atoi(arguments[4]), arguments[5]);
  if (trained.ok()) return 0;
  fmt::print(stderr, "{}", lockstep::toString(trained.diagnostics()));
  return 1;
}
