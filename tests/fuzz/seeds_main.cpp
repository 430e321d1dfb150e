// SPDX-License-Identifier: Apache-2.0
// usage: fuzz_seeds FOLDER
#include <cstdio>

#include "tests/fuzz/seeds.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: fuzz_seeds FOLDER\n", stderr);
    return 2;
  }
  lockstep::fuzz::writeSeeds(argv[1]);
}
