// SPDX-License-Identifier: Apache-2.0
// What the samples share: the front end's results in the form of `lockstep train`.
#pragma once

#include <memory>
#include <vector>

#include "frontend/trainer.h"
#include "tools/sample.h"

namespace lockstep::tools {

SampleFacts sampleFacts(const ProgramFacts& facts);
std::vector<float> lossesOf(const std::vector<StepResult>& results);

std::unique_ptr<SampleRun> makeSine(const SampleOptions& options);
std::unique_ptr<SampleRun> makeAddition(const SampleOptions& options);

}  // namespace lockstep::tools
