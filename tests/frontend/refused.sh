#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# refused.sh MESSAGE COMPILER ARGUMENT...: the compiler must refuse its source file with one error, whose line has the message.
set -euo pipefail
message="$1"; shift
if answer="$("$@" 2>&1)"; then
  printf 'the file was compiled\n'
  exit 1
fi
errors="$(grep -c 'error:' <<<"$answer" || true)"
if [[ $errors != 1 ]] || ! grep 'error:' <<<"$answer" | grep -qF "$message"; then
  printf 'wanted one error with "%s", got %s:\n%s\n' "$message" "$errors" "$answer"
  exit 1
fi
