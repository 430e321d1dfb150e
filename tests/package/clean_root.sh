#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Debian package as somebody meets it who has nothing else: a new Debian 12, made with debootstrap, gets the package, and in it the
# command trains and programs are compiled. usage: clean_root.sh PACKAGE.deb [WORK_FOLDER]
# Needs root, debootstrap and a mirror (LOCKSTEP_MIRROR, else the one that this machine's apt uses); without them it says so and ends with 77.
# Takes a few minutes and 2 GB.
set -euo pipefail
skip() { printf 'clean_root.sh: skipped: %s\n' "$*" >&2; exit 77; }
die() { printf 'clean_root.sh: %s\n' "$*" >&2; exit 1; }

[[ $# -ge 1 && -f $1 ]] || die "usage: clean_root.sh PACKAGE.deb [WORK_FOLDER]"
package="$(realpath "$1")"
here="$(dirname "$(realpath "${BASH_SOURCE[0]}")")"
mirror="${LOCKSTEP_MIRROR:-$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 2>/dev/null | sed -n 's/^bookworm //p' | head -n 1)}"
((EUID == 0)) || skip "a root can only be made by root"
[[ -n $mirror ]] || skip "apt has no source of Debian 12; name a mirror in LOCKSTEP_MIRROR"
for tool in debootstrap unshare chroot; do command -v "$tool" >/dev/null || skip "there is no $tool"; done

work="${2:-$(mktemp -d)}"
root="$work/root"
# All mounts are made in the name space of inside(), so nothing but files is left to remove.
trap 'rm -rf "$root"' EXIT
# inside COMMAND: in the root, with its own processes. No variable of this shell comes along.
inside() {
  unshare --mount --pid --fork --mount-proc="$root/proc" chroot "$root" \
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive bash -euo pipefail -c "$1"
}
step() { printf '== %s (%ss)\n' "$1" "$SECONDS"; }

step "a minimal Debian 12"
mkdir -p "$work"
debootstrap --variant=minbase bookworm "$root" "$mirror" >"$work/debootstrap.log" 2>&1 || {
  if grep -q "Failed getting release file" "$work/debootstrap.log"; then skip "$mirror cannot be reached"; fi
  tail -n 5 "$work/debootstrap.log" >&2
  die "debootstrap failed"
}
cp "$package" "$root/root/lockstep.deb"
cp -r "$here/consumer" "$root/root/consumer"

step "the package and what it depends on, nothing recommended"
inside 'apt-get update && apt-get install -y --no-install-recommends /root/lockstep.deb' >"$work/install.log" 2>&1 || {
  tail -n 20 "$work/install.log" >&2
  die "the package does not install"
}
inside 'lockstep --version'
inside 'lockstep doctor' || [[ $? == 3 ]] || die "doctor does not say that there is no GPU"
inside 'cd /root && lockstep train sine --steps 100 --device reference --no-out'
inside 'gzip -t /usr/share/man/man1/lockstep.1.gz && . /usr/share/bash-completion/completions/lockstep && complete -p lockstep'

step "a driver"
inside 'apt-get install -y --no-install-recommends mesa-vulkan-drivers' >>"$work/install.log" 2>&1
inside 'lockstep devices && cd /root && lockstep train sine --steps 100 --device vulkan --no-out'

step "what the package recommends"
inside 'recommended="$(dpkg-query -W -f="\${Recommends}" lockstep | tr -d ",")"
  apt-get install -y --no-install-recommends $recommended' >>"$work/install.log" 2>&1
inside 'cd /root && g++ -std=c++20 consumer/main.cpp -o by_pkg_config $(pkg-config --cflags --libs lockstep) && ./by_pkg_config'
inside 'cd /root && cmake -S consumer -B by_cmake >/dev/null && cmake --build by_cmake && by_cmake/consumer'
inside 'cd /root && lockstep new first_try && cd first_try && cmake -B build >/dev/null && cmake --build build && build/first_try --steps 100 --no-out'

step "gone again"
inside 'dpkg --purge lockstep >/dev/null && ! find / -xdev -path /proc -prune -o -path /root -prune -o -iname "*lockstep*" -print | grep .'
step "done"
