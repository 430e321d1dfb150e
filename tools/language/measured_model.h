// SPDX-License-Identifier: Apache-2.0
// A language model as something to look at: the program of one token, for verbs that also take samples.
#pragma once

#include <cstdint>
#include <string>

#include "frontend/llm/generator.h"
#include "tools/language/weight_choices.h"
#include "tools/profile/profile_data.h"

namespace lockstep::tools {

/// Whether it is a folder with a config.json.
bool isLanguageModel(const std::string& folder);

/// A generator of one sequence with room for `context` tokens, 0: 1024, or as many as the model has. No tokenizer is needed.
Result<llm::Generator> generatorToMeasure(const std::string& folder, const std::string& device, const WeightChoices& weights,
                                          int64_t context, const std::string& dump_ir = {});
/// A token after half of the generator's room.
ProfiledStep stepOf(llm::Generator& generator);
/// "memory: weights 1.2 GB, keys, values and other states 67 MB, activations 1.1 MB"
std::string memoryText(const llm::GeneratorMemory& memory);

}  // namespace lockstep::tools
