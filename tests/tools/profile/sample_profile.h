// SPDX-License-Identifier: Apache-2.0
// A profile by hand: three kernels and a copy on three levels, with round numbers.
#pragma once

#include "tools/profile/profile_data.h"

namespace lockstep::tools {

inline Profile sampleProfile() {
  Profile profile{.sample = "toy", .device = "vulkan:0", .device_name = "Toy GPU", .driver = "toy 1.2", .steps = 5};
  profile.commands = {
      {.label = "matmul+add",
       .kernel = "k0_tiled",
       .groups = {8, 1, 1},
       .level = 0,
       .start = 0,
       .seconds = 40e-6,
       .bytes = 100'000,
       .operations = 8'000'000,
       .lines = {{"models/toy.cpp", 12, 5}}},
      {.label = "sum",
       .kernel = "k1_rows",
       .groups = {2, 1, 1},
       .level = 0,
       .start = 40e-6,
       .seconds = 10e-6,
       .bytes = 4096,
       .operations = 1024},
      {.label = "matmul+add",
       .kernel = "k0_tiled",
       .groups = {8, 1, 1},
       .level = 1,
       .start = 50e-6,
       .seconds = 20e-6,
       .bytes = 100'000,
       .operations = 8'000'000,
       .lines = {{"models/toy.cpp", 12, 5}}},
      {.label = "own kernel",
       .kernel = "k2_own",
       .groups = {1, 2, 3},
       .level = 2,
       .start = 70e-6,
       .seconds = 29.9e-6,
       .bytes = 2'000'000,
       .operations = {}},
      {.label = "copy params", .level = 2, .start = 99.9e-6, .seconds = 0.1e-6, .bytes = 512},
  };
  profile.plain = {.batch = 3e-6, .submit = 7e-6, .wait = 80e-6};
  profile.timed = {.batch = 3e-6, .submit = 7e-6, .wait = 107e-6};
  profile.input_bytes = 2048;
  profile.output_bytes = 256;
  profile.peaks = Peaks{.bytes_per_second = 100e9,
                        .operations_per_second = 500e9,
                        .dispatch_seconds = 2e-6,
                        .barrier_seconds = 1e-6,
                        .timed_dispatch_seconds = 6e-6};
  profile.trace.host = {{"plain step", 0, 90e-6},      {"batch", 0, 3e-6},     {"submit", 3e-6, 7e-6},  {"wait", 10e-6, 80e-6},
                        {"timed step", 90e-6, 117e-6}, {"batch", 90e-6, 3e-6}, {"submit", 93e-6, 7e-6}, {"wait", 100e-6, 107e-6}};
  profile.trace.device_start = 100e-6;
  profile.trace.commands = profile.commands;
  return profile;
}

}  // namespace lockstep::tools
