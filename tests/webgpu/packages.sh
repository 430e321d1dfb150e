# SPDX-License-Identifier: Apache-2.0
# For bash scripts that compare with implementations from npm; they source it.

skip() { printf 'skipped: %s\n' "$*"; exit 77; }

# need_packages FOLDER [SCRIPT...]: the packages of package-lock.json, installed when it has changed, and beside them, where Node looks for
# packages, the scripts of this folder and the SCRIPTs. Another folder's where package_sources names one. Ends with 77, and says why, when
# that cannot be.
need_packages() {
  local folder="$1" sources
  shift
  sources="${package_sources:-$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)}"
  command -v node >/dev/null && command -v npm >/dev/null || skip "there is no node or npm"
  mkdir -p "$folder"
  exec 9>"$folder/lock"
  flock 9
  cp "$sources"/*.mjs "$sources/package.json" "$@" "$folder/"
  if ! cmp -s "$sources/package-lock.json" "$folder/node_modules/installed-lock.json"; then
    cp "$sources/package-lock.json" "$folder/"
    if ! (cd "$folder" && timeout 120 npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >"$folder/npm.log" 2>&1; then
      cat "$folder/npm.log"
      skip "npm does not install the packages of package-lock.json"
    fi
    cp "$sources/package-lock.json" "$folder/node_modules/installed-lock.json"
  fi
  flock -u 9
}
