// SPDX-License-Identifier: Apache-2.0
// Layers: modules with the usual parameters. A layer is called like a function inside a loss or forward function. Matrices are called W,
// biases b, gains g.
#pragma once

#include "frontend/nn/attention.h"
#include "frontend/nn/conv.h"
#include "frontend/nn/linear.h"
#include "frontend/nn/mamba.h"
#include "frontend/nn/norm.h"
#include "frontend/nn/recurrent.h"
#include "frontend/nn/weight.h"
