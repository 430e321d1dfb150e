// SPDX-License-Identifier: Apache-2.0
// The operations on tensors. Every function checks shapes and element types at the call and throws Error with the code of the broken
// constraint (docs/errors.md), both shapes, the place of the call and where each operand was made.
#pragma once

#include "frontend/ops/conv.h"
#include "frontend/ops/element.h"
#include "frontend/ops/gradient.h"
#include "frontend/ops/index.h"
#include "frontend/ops/loop.h"
#include "frontend/ops/losses.h"
#include "frontend/ops/network.h"
#include "frontend/ops/quantized.h"
#include "frontend/ops/random.h"
#include "frontend/ops/reduce.h"
#include "frontend/ops/scan.h"
#include "frontend/ops/shape.h"
#include "frontend/ops/state_space.h"
