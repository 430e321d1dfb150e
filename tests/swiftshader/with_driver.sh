#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# with_driver.sh COMMAND...: runs a test on the driver whose manifest VK_DRIVER_FILES names. Ends with 77, and says why, where there is
# none; with LOCKSTEP_ONLY_NIGHTLY also where LOCKSTEP_NIGHTLY is not set.
set -euo pipefail
patience=400 # seconds

if [[ -n ${LOCKSTEP_ONLY_NIGHTLY:-} && -z ${LOCKSTEP_NIGHTLY:-} ]]; then
  printf 'skipped: LOCKSTEP_NIGHTLY is not set\n'
  exit 77
fi

if [[ ! -f $VK_DRIVER_FILES ]]; then
  printf 'skipped: there is no %s; it comes with the Debian package chromium (./dev packages browser)\n' "$VK_DRIVER_FILES"
  exit 77
fi
# The driver may hang on a machine that is busy: then it gets a second try. A test that fails does not.
for try in first second; do
  status=0
  timeout -k 5 "$patience" "$@" || status=$?
  [[ $status == 124 || $status == 137 ]] || exit "$status"
  printf 'the %s try was still not done after %s seconds\n' "$try" "$patience"
done
exit 1
