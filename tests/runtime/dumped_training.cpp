// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/dumped_training.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <variant>

#include "frontend/io/file.h"

namespace lockstep::testing {

namespace fs = std::filesystem;

program::Program DumpedTraining::program() const {
  const std::string path = folder() + "/" + program_file;
  return program::parse(io::readTextFile(path).orThrow(), path).orThrow();
}

void train(DumpedTraining& training, detail::CompileRequest request, int64_t steps, int64_t integers) {
  const std::vector<InputSpec> inputs = request.settings.inputs;
  const int64_t accumulate = request.settings.accumulate;
  request.settings.dump_ir = training.folder();
  request.settings.dump_steps = steps;
  Trainer trainer = detail::compile(std::move(request));
  std::mt19937 random(7);
  for (int64_t step = 1; step <= steps; ++step) {
    std::vector<std::variant<std::vector<float>, std::vector<int32_t>>> values;
    Batch batch;
    for (const InputSpec& input : inputs) {
      const auto count = static_cast<size_t>(input.type.shape.elementCount() * accumulate);
      if (input.type.dtype == DType::F32) {
        std::vector<float> floats(count);
        for (float& value : floats) value = static_cast<float>(random() >> 8) * 0x1p-24f;
        values.emplace_back(std::move(floats));
      } else {
        std::vector<int32_t> numbers(count);
        for (int32_t& value : numbers) value = static_cast<int32_t>(random() % static_cast<uint32_t>(integers));
        values.emplace_back(std::move(numbers));
      }
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      std::visit([&](const auto& own) { batch.push_back(BatchItem(inputs[i].name, own)); }, values[i]);
    training.losses.push_back(trainer.step(batch).or_throw().loss);
    if (step == steps / 2) training.middle = trainer.checkpoint();
  }
  training.end = trainer.checkpoint();
  for (const auto& entry : fs::directory_iterator(training.folder())) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".program")) training.program_file = std::max(training.program_file, name);
  }
  training.start = io::readSafetensors(training.folder() + "/start.safetensors").orThrow();
  training.batches = io::readSafetensors(training.folder() + "/batches.safetensors").orThrow();
}

std::string differences(const io::TensorFile& a, const io::TensorFile& b) {
  std::string text;
  for (const auto& [name, array] : a.tensors) {
    const io::Array* other = b.find(name);
    if (other == nullptr) {
      text += name + " is absent\n";
    } else if (other->type != array.type || other->shape != array.shape || other->data != array.data) {
      text += name + " differs\n";
    }
  }
  for (const auto& [name, array] : b.tensors) {
    if (a.find(name) == nullptr) text += name + " is new\n";
  }
  for (const auto& [key, value] : a.metadata) {
    const auto other = b.metadata.find(key);
    if (other == b.metadata.end() || other->second != value) text += fmt::format("entry {} is not {}\n", key, value);
  }
  return text;
}

}  // namespace lockstep::testing
