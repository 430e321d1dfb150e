# SPDX-License-Identifier: Apache-2.0
# The kernel templates that are compiled into the library, by file name without the extension.
set(LOCKSTEP_SHADERS matmul_register_rows matmul_shared_tiled)
