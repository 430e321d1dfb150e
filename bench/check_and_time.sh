#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that is worth doing on a machine with a GPU, in one go: golden files, conformance, differential tests, random programs (RC_PARAMS says how
# many), samples, step times and PyTorch's.
# usage: bench/check_and_time.sh BIN_DIR GOLDEN_DIR   (BIN_DIR holds lockstep, bench_train_step, bench_attention, bench_matmul, bench_gpt, bench_gru and the test programs)
set -u
bin="$1" golden="$2"
"$bin/lockstep" devices
for file in "$golden"/ops.safetensors "$golden"/train_*.safetensors; do
  echo "== golden $(basename "$file")"
  "$bin/lockstep" verify golden "$file" --device vulkan | grep -vE '^(pass|unsupported)' | tail -n 12
done
for test in vulkan_conformance differential_test random_program_test; do
  [[ -x $bin/$test ]] || continue
  echo "== $test"
  "$bin/$test" 2>&1 | grep -E '^\[  (PASSED|FAILED)|error:|Failure' | tail -n 15
done
echo "== samples"
"$bin/lockstep" verify samples all --device vulkan --steps "${SAMPLE_STEPS:-2}"
echo "== step times"
"$bin/bench_train_step" vulkan
command -v python3 >/dev/null && python3 "$(dirname "$0")/peer_train_step.py"
if [[ -x $bin/bench_attention ]]; then
  echo "== attention"
  "$bin/bench_attention" vulkan
  command -v python3 >/dev/null && python3 "$(dirname "$0")/peer_attention.py"
fi
for name in matmul gpt; do
  [[ -x $bin/bench_$name ]] || continue
  echo "== $name"
  "$bin/bench_$name" vulkan
  command -v python3 >/dev/null && python3 "$(dirname "$0")/peer_$name.py"
done
if [[ -x $bin/bench_gru ]]; then
  echo "== GRU"
  "$bin/bench_gru" vulkan
  command -v python3 >/dev/null && python3 "$(dirname "$0")/peer_gru.py"
fi
echo "== training"
"$bin/lockstep" train sine --no-out --steps 200 --device vulkan | tail -n 1
"$bin/lockstep" train addition --no-out --device vulkan | tail -n 1
