// SPDX-License-Identifier: Apache-2.0
// Whether a pass kept the meaning of a golden text, by computing it on both sides.
#pragma once

#include "passes/stage.h"

namespace lockstep::passes {

/// Graphs are evaluated on random leaves; they must share an output, and gradients that are new are compared with differences of the loss.
/// Programs run on the reference and are compared with the evaluated graph, or bit by bit with the program that they were made from, the
/// states that a step leaves included.
///
/// With a precision the outputs are those of values that were rounded to it; gradients are compared with differences of what it was before.
void expectSameMeaning(const Form& before, const Form& after, std::optional<graph::DType> precision = {});

}  // namespace lockstep::passes
