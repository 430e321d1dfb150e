#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One step of the test of the package. usage: check.sh STEP SOURCE BUILD WORK CXX
# "install" comes first; the others use the installed tree, which has been moved since, so nothing may know where it was.
set -euo pipefail
step="$1" source="$2" build="$3" work="$4" cxx="$5"
prefix="$work/moved"
die() { printf 'check.sh: %s\n' "$*" >&2; exit 1; }

configure() { cmake -G Ninja -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$prefix" "$@"; }

case "$step" in
  install)
    rm -rf "$work"
    cmake --install "$build" --prefix "$work/first" >"$work.log"
    mv "$work/first" "$prefix"
    "$prefix/bin/lockstep" --version
    # No text of the package may hold a path of this tree, or a flag that only our sources are compiled with.
    if grep -rIn -e "$source" -e "$work" -e "-Werror" "$prefix"; then die "the lines above know where the package was made"; fi
    ;;
  find_package)
    configure -S "$source/tests/package/consumer" -B "$work/consumer"
    cmake --build "$work/consumer"
    "$work/consumer/consumer"
    ;;
  pkg_config)
    PKG_CONFIG_PATH="$(dirname "$(find "$prefix" -name lockstep.pc)")"
    export PKG_CONFIG_PATH
    read -ra flags <<<"$(pkg-config --cflags --libs lockstep)"
    "$cxx" -std=c++20 "$source/tests/package/consumer/main.cpp" -o "$work/by_pkg_config" "${flags[@]}"
    "$work/by_pkg_config"
    ;;
  subdirectory)
    # Building everything once more takes minutes; that it configures as part of another project is what breaks.
    configure -S "$source/tests/package/consumer" -B "$work/subdirectory" -DLOCKSTEP_SOURCE="$source"
    ;;
  headers)
    # Each one that programs include, alone: it must say what it needs. Those of ir/ are reached through these.
    cd "$prefix/include/lockstep"
    find frontend experiment ./*.h -name '*.h' -print0 | xargs -0 -P 2 -I{} "$cxx" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I.. -I. -include {} -x c++ /dev/null
    ;;
  *) die "unknown step '$step'" ;;
esac
