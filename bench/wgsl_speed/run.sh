#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# WGSL text -> validated module: Lockstep, Tint and naga in turns. usage: bench/wgsl_speed/run.sh BUILD_DIR [CORPUS [ROUNDS]]
# CORPUS: a folder of *.wgsl or a gzip'd file of JSON lines with a field "wgsl"; else every kernel of the samples.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
build="$(cd "$1" && pwd)" corpus="${2:-}" rounds="${3:-15}"
source "$here/../../tests/webgpu/packages.sh"
need_packages "$build/bench/packages" "$here/compare.mjs"
if [[ -z $corpus ]]; then
  corpus="$build/bench/kernels"
  rm -rf "$corpus"
  "$build/tests/webgpu/webgpu_dump" kernels "$corpus"
fi
node "$build/bench/packages/compare.mjs" "$build/bench/bench_wgsl" "$corpus" "$rounds"
