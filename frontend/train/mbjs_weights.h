// SPDX-License-Identifier: Apache-2.0
// Parameters as MBJS files have them (frontend/io/mbjs.h).
//   trainer.upload(ls::readMbjsWeights(trainer.model(), ls::io::readMbjs("model.bin").orThrow()));
//   (void)ls::io::writeMbjs("model.bin", ls::formatMbjsWeights(trainer.model(), trainer.download())).orThrow();
#pragma once

#include <cstdint>

#include "frontend/io/mbjs.h"
#include "frontend/trace/host_values.h"
#include "frontend/trace/module.h"

namespace lockstep {

// Files have no names, so a model is matched by what it is made of: one nn::Embedding; for each layer, in the order of declaration, a
// module with the mixer and its nn::RMSNorm; one more nn::RMSNorm at the end; and no other parameters, as the head is the embedding.
//
//   layer     mixer                                                                                            what it computes
//   mamba1    nn::Mamba1 {.bias = true, .x_bias = true, .discretisation = Discretisation::ZeroOrderHold}       x + mixer(norm(x))
//   mamba2    nn::Mamba2 {.gate = false}, and {.activation = false} as MambaCode.js itself computes it         x + mixer(norm(x))
//   mamba3    the same with .complex                                                                           x + mixer(norm(x))
//   attention nn::MultiHeadAttention {.causal = true}; the feed-forward part is an nn::FeedForward beside it   h = x + mixer(norm(x)),
//             {.activation = Activation::Silu}, which has no norm of its own                                   then h + mlp(h)
//
// Norms have .eps = 1e-6 and not .around_one. Biases may be left out where the file has zeros. A mamba3 of a file is a complex state-space
// model with fixed eigenvalues, not what nn::Mamba3 computes, which is the published one. Of its b and c, the two parts of a number are
// neighbours.
//
// Errors "mbjs.model" for a model of other parts, of other layers than the file or with a gain around one; "mbjs.shape" for extents that
// differ, "mbjs.bias" for numbers other than 0 that the other side has no place for, "parameters.missing" for a parameter without values.

/// The values of all parameters of the model, by name.
ParameterValues readMbjsWeights(const Module& model, const io::MbjsFile& file);
/// The other way. Version 3 has numbers of 16 bits, 1 and 2 those of 32.
io::MbjsFile formatMbjsWeights(const Module& model, const ParameterValues& values, uint32_t version = 2);

}  // namespace lockstep
