#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares tokenizers and chat templates with implementations from npm. usage: check.sh TEXT_DUMP SCRATCH
# With LOCKSTEP_NIGHTLY 100,000 texts for each tokenizer, else 2,000. Ends with 77, and says why, where npm or a package is not there.
set -euo pipefail
sources="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
tool="$1" scratch="$2"
count=2000
[[ -z "${LOCKSTEP_NIGHTLY:-}" ]] || count=100000

package_sources="$sources"
source "$sources/../webgpu/packages.sh"
need_packages "$scratch/packages"
cd "$scratch/packages"
# The package of Hugging Face's library has a program for each kind of machine.
node -e 'require("@anush008/tokenizers")' 2>/dev/null || skip "@anush008/tokenizers has no program for this machine"
golden="$sources/../../../shared/golden/llm"
node compare.mjs "$tool" "$sources/data" "$scratch" "$count" "$golden"/{gpt2,qwen2_bf16_shards,mistral_window}/tokenizer.json
