# SPDX-License-Identifier: Apache-2.0
# The kernel templates that are compiled into the library, by file name without the extension.
set(LOCKSTEP_SHADERS
    attend_cache_split attend_gradient_keys_matrix attend_gradient_keys_stream attend_gradient_keys_tiled attend_gradient_queries_matrix attend_gradient_queries_stream attend_gradient_queries_tiled attend_gradient_whole attend_matrix attend_stream attend_tiled attend_whole
    draw_from_chunks_whole
    matmul_matrix_tiled matmul_quad_tiled matmul_register_rows matmul_shared_tiled
    multiply_quantized_digits
    rank_chunks_whole
    scan_chunk_gradient_states_stream scan_chunk_gradient_stream scan_chunk_outputs_stream scan_chunk_states_stream)
