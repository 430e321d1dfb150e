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
    # No text of the package may hold a path of this tree, or a flag that only our sources are compiled with.
    if grep -rIn -e "$source" -e "$work" -e "-Werror" "$prefix"; then die "the lines above know where the package was made"; fi
    # docs/install.md states the sizes.
    archive="$(find "$prefix" -name liblockstep.a)"
    if objdump -h "$archive" "$prefix/bin/lockstep" | grep -q '\.debug_'; then die "debug information is installed"; fi
    (($(stat -c %s "$archive") < 40000000 && $(stat -c %s "$prefix/bin/lockstep") < 20000000)) || die "the archive or the command has become large"
    ;;
  documents)
    # explain names a page that is there, wherever the tree has been moved.
    page="$("$prefix/bin/lockstep" explain matmul.C3 | tail -n 1)"
    [[ $page == "$prefix/share/doc/lockstep/docs/ops.md#matmul" ]] || die "explain names '$page'"
    grep -q '^### matmul$' "${page%#*}" || die "${page%#*} has no section of matmul"
    while read -r file; do
      [[ -s $prefix/share/doc/lockstep/$file ]] || die "$file is not installed"
    done < <(git -C "$source" ls-files README.md docs)
    ;;
  compilers)
    # The versions are macros, so any compiler can play another. The library's own headers are not looked at.
    header="$prefix/include/lockstep/ir/support/compiler.h"
    # Whether a compiler with these macros is accepted; what it says goes to $work/answer.
    accepts() { "$cxx" -w -E -U__clang__ -U__GNUC__ "$@" -x c++ "$header" >/dev/null 2>"$work/answer"; }
    gcc="$(grep -o '__GNUC__ < [0-9]*' "$header" | grep -o '[0-9]*$')" clang="$(grep -o '__clang_major__ < [0-9]*' "$header" | grep -o '[0-9]*$')"
    accepts -std=c++20 -D__GNUC__="$gcc" || die "g++ $gcc is refused: $(<"$work/answer")"
    accepts -std=c++20 -D__clang__ -D__GNUC__=4 -U__clang_major__ -D__clang_major__="$clang" || die "clang $clang is refused: $(<"$work/answer")"
    for macros in "-std=c++20 -D__GNUC__=$((gcc - 1))" "-std=c++17 -D__GNUC__=$gcc" \
      "-std=c++20 -D__clang__ -D__GNUC__=4 -U__clang_major__ -D__clang_major__=$((clang - 1))"; do
      # shellcheck disable=SC2086
      if accepts $macros; then die "a compiler with $macros is accepted"; fi
      grep -q "at least g++ $gcc or clang $clang: see docs/install.md" "$work/answer" || die "the error is $(<"$work/answer")"
    done
    grep -q "g++ $gcc or later, or clang $clang or later" "$source/docs/install.md" || die "docs/install.md states another minimum"
    # Both headers that programs include look first.
    for name in lockstep experiment; do
      if "$cxx" -w -std=c++17 -fsyntax-only -I"$prefix/include" -I"$prefix/include/lockstep" -include "lockstep/$name.h" -x c++ /dev/null 2>"$work/answer"; then
        die "lockstep/$name.h takes C++17"
      fi
      grep -m 1 'error' "$work/answer" | grep -q 'see docs/install.md' || die "the first error of lockstep/$name.h is $(grep -m 1 error "$work/answer")"
    done
    ;;
  find_package)
    configure -S "$source/tests/package/consumer" -B "$work/consumer"
    cmake --build "$work/consumer"
    "$work/consumer/consumer"
    ;;
  shared_library)
    # What the consumer's shared library hands on. Weak symbols are what its own source makes of inline functions; none may come from the
    # archives that ours is linked with.
    exported="$(nm -DC --defined-only "$work/consumer/libplugin.so")"
    strong="$(awk '$2 !~ /^[WVu]$/' <<<"$exported")"
    [[ $(awk '{ print $3 }' <<<"$strong") == plugin_loss ]] || die "a shared library exports more than its own function:"$'\n'"$strong"
    if grep -E ' (spv|spvtools|glslang)::' <<<"$exported"; then die "the symbols above are those of other archives"; fi
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
  recipe)
    # conanfile.py says which files leave the tree for a build elsewhere. They configure, and lack nothing that is compiled or installed.
    rm -rf "$work/exported" "$work/exported_build"
    sed -n '/exports_sources = (/,/^    )/p' "$source/conanfile.py" | grep -o '"[^"]*"' | tr -d '"' | sed 's,/\*$,,' >"$work/exports"
    while read -r path; do
      mkdir -p "$work/exported/$(dirname "$path")"
      cp -r "$source/$path" "$work/exported/$(dirname "$path")"
    done <"$work/exports"
    configure -S "$work/exported" -B "$work/exported_build" -DLOCKSTEP_TESTS=OFF
    ninja -C "$work/exported_build" -n lockstep lockstep_tool >/dev/null
    while read -r file; do
      [[ -e $file ]] || die "conanfile.py does not export $file"
    done < <(grep -rhoE --include=cmake_install.cmake "\"$work/exported/[^\"]+\"" "$work/exported_build" | tr -d '"')
    ;;
  headers)
    # Each one alone: it must say what it needs, bring none of the libraries that the archive is made with, and stay small. Ours are the
    # ones with a relative path.
    cd "$prefix/include/lockstep"
    find . -name '*.h' -printf '%P\n' | sort >"$work/headers"
    xargs -P 2 -I{} "$cxx" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I.. -I. -include {} -x c++ /dev/null <"$work/headers"
    while read -r header; do
      "$cxx" -std=c++20 -E -I.. -I. -include "$header" -x c++ /dev/null >"$work/preprocessed"
      private="$(grep -Eom 1 '^# [0-9]+ "/.*/(vulkan|volk|tbb|oneapi|glslang|SPIRV|spirv-tools|nlohmann|fmt|CLI|png|zlib|pcre2|utf8proc)[/.][^"]*' "$work/preprocessed" || true)"
      [[ -z $private ]] || die "$header includes $private"
      printf '%7d lines of %s\n' "$(grep -vc '^#' "$work/preprocessed")" "$header"
    done <"$work/headers" | sort -rn | head -n 3 | tee "$work/largest"
    # Nine tenths are the standard library's <functional>, <filesystem> and <string>.
    read -r lines _ <"$work/largest"
    ((lines < 120000)) || die "a header has become large"
    ;;
  scaffold)
    cd "$work"
    rm -rf first_try
    "$prefix/bin/lockstep" new first_try
    # As its README.md says.
    (cd first_try && CXX="$cxx" CXXFLAGS="-Wall -Wextra -Werror" cmake -B build -DCMAKE_PREFIX_PATH="$prefix" && cmake --build build)
    first_try/build/first_try --steps 5 --device reference --no-out
    # What is there stays as it is.
    echo mine >first_try/main.cpp
    if "$prefix/bin/lockstep" new first_try 2>"$work/answer"; then die "a folder was written into"; fi
    grep -q new.exists "$work/answer"
    [[ $(cat first_try/main.cpp) == mine ]] || die "a file was overwritten"
    ;;
  manual)
    page="$prefix/share/man/man1/lockstep.1"
    text="$(sed -e 's/\\f[BIR]//g' -e 's/\\-/-/g' "$page")"
    verbs=0
    while read -r verb; do
      verbs=$((verbs + 1))
      grep -qx -- ".SS $verb" "$page" || die "the manual lacks the verb $verb"
      section="$(sed -n "/^\.SS $verb\$/,/^\.S[HS]/p" <<<"$text")"
      while read -r option; do
        grep -qE -- "^(.*, )?$option( |,|\$)" <<<"$section" || die "the manual of $verb lacks $option"
      done < <("$prefix/bin/lockstep" "$verb" --help | sed -n 's/^  \(-[-a-z,]*\).*/\1/p' | tr , '\n')
    done < <("$prefix/bin/lockstep" --help | sed -n 's/^  \([a-z]*\)  .*/\1/p')
    ((verbs >= 9)) || die "the help lists $verbs verbs"
    if command -v groff >/dev/null; then
      warnings="$(groff -man -Tutf8 -Kutf8 -wall "$page" 2>&1 >/dev/null)"
      [[ -z $warnings ]] || die "groff: $warnings"
    fi
    ;;
  completions)
    share="$prefix/share"
    bash -n "$share/bash-completion/completions/lockstep"
    if command -v zsh >/dev/null; then zsh -n "$share/zsh/site-functions/_lockstep"; fi
    if command -v fish >/dev/null; then
      fish -n "$share/fish/vendor_completions.d/lockstep.fish"
      offered="$(fish -c "source $share/fish/vendor_completions.d/lockstep.fish; complete -C 'lockstep verify go'")"
      [[ $offered == golden* ]] || die "fish offers '$offered'"
    fi
    # shellcheck source=/dev/null
    source "$share/bash-completion/completions/lockstep"
    # offers EXPECTED WORD...: what bash offers for the last word.
    offers() {
      local expected="$1"
      shift
      COMP_WORDS=(lockstep "$@") COMP_CWORD=$#
      _lockstep
      [[ "${COMPREPLY[*]}" == "$expected" ]] || die "bash offers '${COMPREPLY[*]}' for '$*', not '$expected'"
    }
    offers "train" tr
    offers "--steps" train sine --st
    offers "sine" train si
    offers "reference" train sine --device ref
    offers "" train --out si
    ;;
  deb)
    cpack --config "$build/CPackConfig.cmake" -B "$work/deb" >/dev/null
    package="$(echo "$work"/deb/lockstep_*.deb)"
    depends="$(dpkg-deb -f "$package" Depends)"
    for library in libc6 libfmt libpcre2-8 libpng16 libtbb libutf8proc zlib1g; do
      [[ $depends == *"$library"* ]] || die "the package does not depend on $library: $depends"
    done
    rm -rf "$work/extracted"
    dpkg-deb -x "$package" "$work/extracted"
    "$work/extracted/usr/bin/lockstep" --version
    for file in lib/liblockstep.a include/lockstep/lockstep.h share/man/man1/lockstep.1.gz share/doc/lockstep/copyright; do
      [[ -s $work/extracted/usr/$file ]] || die "the package lacks $file"
    done
    if command -v lintian >/dev/null; then lintian --allow-root --fail-on error,warning "$package"; fi
    ;;
  *) die "unknown step '$step'" ;;
esac
