// SPDX-License-Identifier: Apache-2.0
// What the program of README.md includes.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <vector>

#include "frontend/lockstep.h"
