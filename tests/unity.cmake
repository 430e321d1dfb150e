# SPDX-License-Identifier: Apache-2.0
# Test sources that are compiled by themselves, as in cmake/unity.cmake.
lockstep_apart(lockstep_conformance tests/backends/subgroup_suite.cpp)
lockstep_apart(reference_checks tests/backends/perturb_test.cpp)
lockstep_apart(docs_blocks_test tests/docs/links_test.cpp)
lockstep_apart(browser_test tests/browser/trace_view_test.cpp)
lockstep_apart(frontend_core_test tests/frontend/module_test.cpp tests/frontend/nn_test.cpp tests/frontend/ops_conv_test.cpp tests/frontend/ops_test.cpp
               tests/frontend/ops_view_test.cpp tests/frontend/optim_test.cpp)
lockstep_apart(io_test tests/frontend/io/safetensors_test.cpp)
lockstep_apart(wgsl_test tests/frontend/wgsl/defects_test.cpp tests/frontend/wgsl/error_test.cpp tests/frontend/wgsl/format_test.cpp
               tests/frontend/wgsl/subgroup_test.cpp)
lockstep_apart(lockstep_fuzz_system_entries tests/fuzz/entries_sanitize.cpp)
lockstep_apart(house_test tests/house/manifests_test.cpp tests/house/source_rules_test.cpp)
lockstep_apart(ir_program_test tests/ir/program_text_test.cpp tests/ir/tuning_test.cpp)
lockstep_apart(passes_test tests/passes/row_slices_test.cpp)
lockstep_apart(profiles_test tests/passes/chain_rows_test.cpp tests/passes/profiles_test.cpp tests/passes/split_scans_test.cpp)
lockstep_apart(sanitize_test tests/sanitize/sanitize_test.cpp)
lockstep_apart(toolkit_test tests/tools/cli/golden_test.cpp)
# Most files of these use names of their neighbours.
foreach(test differential_test frontend_trainer_test mixed_plans_test)
  if(TARGET ${test})
    set_target_properties(${test} PROPERTIES UNITY_BUILD OFF)
  endif()
endforeach()
