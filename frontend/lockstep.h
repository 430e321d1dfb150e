// SPDX-License-Identifier: Apache-2.0
// All of the front end that a program includes.
#pragma once

// Alone and first, so that its error is the first.
#include "ir/support/compiler.h"

#include "frontend/checkpoint_folder.h"
#include "frontend/compiled.h"
#include "frontend/data/loader.h"
#include "frontend/data/random.h"
#include "frontend/function.h"
#include "frontend/host.h"
#include "frontend/kernel.h"
#include "frontend/losses.h"
#include "frontend/module.h"
#include "frontend/nn.h"
#include "frontend/ops.h"
#include "frontend/optim.h"
#include "frontend/tensor.h"
#include "frontend/trainer.h"
