// SPDX-License-Identifier: Apache-2.0
#include "frontend/llm/sequence_states.h"

#include <span>
#include <string>
#include <utility>

#include "frontend/ops/ops.h"

namespace lockstep::llm {

std::vector<std::vector<float>> SequenceStates::read(Step& step, const Where& where) {
  if (!reader_) {
    reader_ = step.attach({.forward =
                               [](const GeneratorSession& session, const Inputs&) {
                                 std::vector<std::pair<std::string, Tensor>> all;
                                 for (const auto& buffer : session.kept) all.emplace_back(buffer->path(), *buffer);
                                 return Outputs(std::move(all));
                               }},
                          where);
  }
  const ForwardResult result = reader_->run({}, {}, where);
  const auto& kept = step.model().kept;
  std::vector<std::vector<float>> values;
  for (const auto& buffer : kept) {
    const std::span<const float> floats = kept.size() == 1 ? result.output.floats() : result.outputs.get(buffer->path()).floats();
    values.emplace_back(floats.begin(), floats.end());
  }
  return values;
}

void SequenceStates::write(Step& step, const std::vector<std::vector<float>>& values, const Where& where) {
  const auto& kept = step.model().kept;
  if (!writer_) {
    std::vector<InputSpec> inputs;
    for (const auto& buffer : kept) inputs.push_back({buffer->path(), buffer->type()});
    writer_ = step.attach({.inputs = inputs,
                           .forward = [](const GeneratorSession& session, const Inputs& in) -> Outputs {
                             for (const auto& buffer : session.kept) buffer->update(in[buffer->path()]);
                             return zeros({1});
                           },
                           .updates_buffers = true},
                          where);
  }
  Batch batch;
  for (size_t i = 0; i < values.size(); ++i) batch.emplace_back(kept[i]->path(), values[i]);
  (void)writer_->run(batch, {}, where);
}

void SequenceStates::uncount(Step& step, size_t sequence, const TokenList& fed, const Where& where) {
  const TensorType& type = step.model().seen->type();
  if (!counter_) {
    counter_ = step.attach({.inputs = {{"gone", type}},
                            .forward = [](const GeneratorSession& session, const Inputs& in) -> Outputs {
                              session.seen->update(*session.seen - in["gone"]);
                              return zeros({1});
                            },
                            .updates_buffers = true},
                           where);
  }
  const auto ids = static_cast<size_t>(type.shape.extent(1));
  std::vector<float> gone(static_cast<size_t>(type.shape.elementCount()));
  for (const int32_t id : fed) gone[sequence * ids + static_cast<size_t>(id)] += 1;
  (void)counter_->run({{"gone", gone}}, {}, where);
}

}  // namespace lockstep::llm
