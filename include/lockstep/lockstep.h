// SPDX-License-Identifier: Apache-2.0
// For programs that use an installed Lockstep: tensors, layers, losses, optimizers, compile() and the trainer, loaders and random numbers
// of data.
#pragma once

#include "frontend/lockstep.h"
