#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check.sh WORDS LINES COMPILER...: the compiler fails, says WORDS, and says no more than LINES lines.
words=$1 most=$2
shift 2
if text=$("$@" 2>&1); then
  echo "it compiles"
  exit 1
fi
lines=$(printf '%s\n' "$text" | wc -l)
printf '%s\n' "$text"
case $text in *"$words"*) ;; *) echo "the compiler does not say: $words"; exit 1 ;; esac
[ "$lines" -le "$most" ] || { echo "$lines lines, more than $most"; exit 1; }
