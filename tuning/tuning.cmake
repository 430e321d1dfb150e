# SPDX-License-Identifier: Apache-2.0
# The tables of measured plans that are compiled into the library, by file name without the extension.
set(LOCKSTEP_TUNING_TABLES h100 lavapipe)
