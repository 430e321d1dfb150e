#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares with other implementations of WebGPU, from npm. usage: check.sh DUMP_TOOL SCRATCH kernels|run [SAMPLE]
#   kernels      Tint and naga take every text that webgpu_dump writes
#   run SAMPLE   its steps on Dawn and the SwiftShader of Debian's chromium give what the reference gives
# Ends with 77, and says why, where something that it needs is not there.
set -euo pipefail
sources="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
dump="$1" scratch="$2" what="$3" sample="${4:-}"
swiftshader=/usr/lib/chromium/vk_swiftshader_icd.json
packages="$scratch/packages"
patience=280 # seconds for the steps of one sample: SwiftShader compiles slowly

source "$sources/packages.sh"

case "$what" in
  kernels)
    need_packages "$packages"
    rm -rf "$scratch/kernels"
    "$dump" kernels "$scratch/kernels"
    timeout 280 node "$packages/check_kernels.mjs" "$scratch/kernels"
    ;;
  run)
    [[ -f $swiftshader ]] || skip "there is no $swiftshader (Debian package chromium)"
    need_packages "$packages"
    rm -rf "$scratch/$sample"
    "$dump" run "$sample" "$scratch/$sample"
    # The driver may hang or crash on a machine that is busy: it gets a second try, a wrong result does not.
    for try in first second; do
      status=0
      VK_ICD_FILENAMES="$swiftshader" timeout -k 5 "$patience" node "$packages/run_steps.mjs" "$scratch/$sample" || status=$?
      case "$status" in
        0) exit 0 ;;
        1) exit 1 ;;
        3) skip "Dawn does not take this SwiftShader" ;;
      esac
      printf 'the %s try ended with %s\n' "$try" "$status"
    done
    exit 1
    ;;
  *)
    echo "usage: check.sh DUMP_TOOL SCRATCH kernels|run [SAMPLE]" >&2
    exit 2
    ;;
esac
