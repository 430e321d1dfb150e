// SPDX-License-Identifier: Apache-2.0
// All of the front end that a program includes.
#pragma once

// Alone and first, so that its error is the first.
#include "ir/support/compiler.h"

#include "frontend/data/loader.h"
#include "frontend/data/random.h"
#include "frontend/nn/nn.h"
#include "frontend/ops/kernel.h"
#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "frontend/optim/optim.h"
#include "frontend/optim/precision.h"
#include "frontend/trace/host_values.h"
#include "frontend/trace/module.h"
#include "frontend/trace/tensor.h"
#include "frontend/train/checkpoint_folder.h"
#include "frontend/train/compiled.h"
#include "frontend/train/function.h"
#include "frontend/train/inference.h"
#include "frontend/train/mbjs_weights.h"
#include "frontend/train/trainer.h"
#include "runtime/program_trainer.h"
