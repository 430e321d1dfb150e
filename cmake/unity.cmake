# SPDX-License-Identifier: Apache-2.0
# Sources that are compiled by themselves where LOCKSTEP_UNITY compiles the others in batches, because they and a neighbour have a name
# of their own in common. A "redefinition" or "ambiguous" error between two files of a batch: rename one, or add it here. What is
# installed is never compiled in batches: there a name could be found in a neighbour.
if(NOT LOCKSTEP_UNITY)
  return()
endif()

# lockstep_apart(<target> <file>...): paths from the top of the tree.
function(lockstep_apart target)
  if(NOT TARGET ${target})
    return()
  endif()
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
  set_source_files_properties(${files} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# Ops and rules of optimizers have the same few functions each.
file(GLOB op_files RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS ir/ops/*/*.cpp)
list(FILTER op_files EXCLUDE REGEX "ir/ops/support/")
lockstep_apart(lockstep_graph ${op_files} ir/graph/packed_element.cpp ir/graph/text.cpp ir/graph/validate.cpp)
lockstep_apart(lockstep_kernel ir/kernel/validate_types.cpp)
lockstep_apart(lockstep_passes passes/graph/update_lion.cpp passes/graph/update_sgd.cpp passes/graph/split_scans.cpp passes/emit/emit_scatter.cpp
               passes/emit/lane_reduction.cpp passes/emit/body_memory.cpp passes/schedule/schedule.cpp passes/schedule/row_slices.cpp passes/schedule/split_dispatches.cpp)
lockstep_apart(lockstep_backends backends/sanitize.cpp)
lockstep_apart(lockstep_reference backends/reference/lower_subgroups.cpp backends/reference/lower_values.cpp backends/reference/machine_wraps.cpp
               backends/reference/sanitize/accuracy.cpp)
lockstep_apart(lockstep_wgsl frontend/wgsl/check/builtins.cpp frontend/wgsl/contract.cpp frontend/wgsl/lint/index_form.cpp frontend/wgsl/lint/index_corners.cpp frontend/wgsl/lint/invocation_flow.cpp
               frontend/wgsl/lint/lint_dead_store.cpp frontend/wgsl/lint/lint_workgroup_size.cpp)
lockstep_apart(lockstep_io frontend/io/zip.cpp)
lockstep_apart(lockstep_console console/guarded_main.cpp)
lockstep_apart(lockstep_toolkit tools/devices/driver_child.cpp)
lockstep_apart(lockstep_verify tools/verify/stage_build.cpp)
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
lockstep_apart(profiles_test tests/passes/profiles_test.cpp tests/passes/split_scans_test.cpp)
lockstep_apart(sanitize_test tests/sanitize/sanitize_test.cpp)
lockstep_apart(toolkit_test tests/tools/cli/golden_test.cpp)
# Many names of their own.
foreach(test differential_test frontend_trainer_test mixed_plans_test)
  if(TARGET ${test})
    set_target_properties(${test} PROPERTIES UNITY_BUILD OFF)
  endif()
endforeach()
