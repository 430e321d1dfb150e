#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_blocks.sh PAGE TOOL FOLDER: runs the sh blocks of a page one after the other, as one script, in a new FOLDER with `lockstep` in PATH.
# The script stops at the first command that fails; a command that is meant to fail says so itself.
set -euo pipefail
page="$1" tool="$2" folder="$3"

rm -rf "$folder"
mkdir -p "$folder"
cd "$folder"
awk '/^```/ { inside = ($0 == "```sh"); next } inside' "$page" >.blocks.sh
[[ -s .blocks.sh ]] || { echo "$page has no sh block" >&2; exit 1; }
PATH="$(dirname "$tool"):$PATH" exec bash -euxo pipefail .blocks.sh
