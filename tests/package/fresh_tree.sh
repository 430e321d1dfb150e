#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Somebody's first hour: the files of the repository in a new folder, where the console blocks of docs/install.md, and then those of
# docs/first_model.md, run as they stand, each page in one shell. usage: fresh_tree.sh WORK_FOLDER
# The home folder is a new one too, but for the compiler's cache. Takes the time of a release build: 12 minutes of one core.
set -euo pipefail
die() { printf 'fresh_tree.sh: %s\n' "$*" >&2; exit 1; }
[[ $# -eq 1 ]] || die "usage: fresh_tree.sh WORK_FOLDER"
source="$(realpath "$(dirname "$(realpath "${BASH_SOURCE[0]}")")/../..")"
mkdir -p "$1"
work="$(realpath "$1")"
tree="$work/lockstep" home="$work/home"
step() { printf '== %s (%ss)\n' "$1" "$SECONDS"; }

# As the working tree has them: what git knows, without what was built.
rm -rf "$tree" "$home"
mkdir -p "$tree" "$home"
git -C "$source" ls-files -z | (cd "$source" && tar --null --files-from=- --ignore-failed-read -cf - 2>/dev/null) | tar -xf - -C "$tree"
export CCACHE_DIR="${CCACHE_DIR:-$(ccache --get-config cache_dir 2>/dev/null || true)}"
[[ -n $CCACHE_DIR ]] || unset CCACHE_DIR
export HOME="$home"

# run_page PAGE: its console blocks, one after the other.
run_page() {
  awk '/^```/ { inside = ($0 == "```console"); next } inside' "$tree/$1" >"$work/lines.sh"
  [[ -s $work/lines.sh ]] || die "$1 has no console block"
  # Where there is no man, its input is still read.
  command -v man >/dev/null || printf 'man() { cat >/dev/null; }\n' | cat - "$work/lines.sh" >"$work/with_man.sh"
  [[ ! -e $work/with_man.sh ]] || mv "$work/with_man.sh" "$work/lines.sh"
  (cd "$tree" && bash -euxo pipefail "$work/lines.sh")
}

step "docs/install.md"
run_page docs/install.md
[[ -s $home/lockstep/share/man/man1/lockstep.1 ]] || die "the manual page is not installed"
page="$("$home/lockstep/bin/lockstep" explain file.read | tail -n 1)"
[[ -s ${page%#*} && $page == "$home"/* ]] || die "explain names '$page', which is not installed"

step "docs/first_model.md"
rm -rf "$tree/my_model"
run_page docs/first_model.md

step "done"
