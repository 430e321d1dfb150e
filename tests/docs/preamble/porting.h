// SPDX-License-Identifier: Apache-2.0
// What the fragments of docs/porting.md stand behind: each is a piece of one program, in order.
#pragma once

#include <fmt/format.h>

#include <cmath>

#include "frontend/data/loader.h"
#include "frontend/io/safetensors.h"
#include "frontend/lockstep.h"
