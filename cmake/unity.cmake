# SPDX-License-Identifier: Apache-2.0
# LOCKSTEP_UNITY: sources in batches of eight, which share what they include. Half of a source's time is its headers.
# A batch of a library or tool has sources of one folder in the order of their names, so a new file changes batches of its folder only.
# A name of an anonymous namespace may clash with a neighbour's. After "redefinition" or "ambiguous" between two files of a batch, rename
# one of the two, or name a file after APART (of a test, in tests/unity.cmake) to compile it by itself. The preset "release" and
# clang-tidy compile each source by itself, so an include that only a neighbour has is found there.

# lockstep_apart(<target> <file>...): paths from the top of the tree.
function(lockstep_apart target)
  if(NOT LOCKSTEP_UNITY OR NOT TARGET ${target})
    return()
  endif()
  foreach(file IN LISTS ARGN)
    if(NOT EXISTS ${PROJECT_SOURCE_DIR}/${file})
      message(FATAL_ERROR "lockstep_apart(${target}): there is no source ${file}; remove it from the list")
    endif()
  endforeach()
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE files)
  set_source_files_properties(${files} TARGET_DIRECTORY ${target} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# lockstep_batches(<target> [APART <file>...]): the files are paths from the top of the tree.
function(lockstep_batches target)
  cmake_parse_arguments(ARG "" "" "APART" ${ARGN})
  if(NOT LOCKSTEP_UNITY OR NOT TARGET ${target})
    return()
  endif()
  lockstep_apart(${target} ${ARG_APART})
  get_target_property(sources ${target} SOURCES)
  get_target_property(folder ${target} SOURCE_DIR)
  list(TRANSFORM ARG_APART PREPEND ${PROJECT_SOURCE_DIR}/)
  list(SORT sources)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} NORMALIZE)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${source} is_generated)
    if(is_generated OR source IN_LIST ARG_APART OR NOT source MATCHES "\\.cpp$")
      continue()
    endif()
    cmake_path(GET source PARENT_PATH room)
    cmake_path(RELATIVE_PATH room BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(MAKE_C_IDENTIFIER ${room} room)
    if(NOT DEFINED count_${room})
      set(count_${room} 0)
    endif()
    math(EXPR batch "${count_${room}} / 8")
    math(EXPR count_${room} "${count_${room}} + 1")
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${room}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# Not here: lockstep_recipes, whose sources use the same names.
# Apart, because tests/docs/extending replaces them alone: frontend/ops/element.cpp, passes/pipeline.cpp, passes/schedule/choose_contract.cpp.
lockstep_batches(lockstep_support)
lockstep_batches(lockstep_kernel APART ir/kernel/validate_types.cpp)
lockstep_batches(lockstep_graph APART ir/graph/text.cpp ir/graph/validate.cpp)
lockstep_batches(lockstep_program)
lockstep_batches(lockstep_backends APART backends/sanitize.cpp)
lockstep_batches(lockstep_reference APART backends/reference/lower_values.cpp backends/reference/sanitize/influence.cpp)
lockstep_batches(
  lockstep_wgsl
  APART frontend/wgsl/contract.cpp
        frontend/wgsl/analyse/uniformity_expressions.cpp
        frontend/wgsl/check/builtins.cpp
        frontend/wgsl/check/const_eval_builtins.cpp
        frontend/wgsl/check/layout.cpp
        frontend/wgsl/lint/index_corners.cpp
        frontend/wgsl/lint/index_form.cpp
        frontend/wgsl/lint/invocation_flow.cpp
        frontend/wgsl/lint/lint_workgroup_size.cpp)
lockstep_batches(
  lockstep_passes
  APART passes/emit/body_memory.cpp
        passes/emit/emit_held_rows.cpp
        passes/emit/emit_row_chain.cpp
        passes/graph/split_scans.cpp
        passes/graph/update_sgd.cpp
        passes/pipeline.cpp
        passes/schedule/choose_contract.cpp
        passes/schedule/schedule.cpp
        passes/schedule/split_dispatches.cpp)
lockstep_batches(lockstep_io APART frontend/io/zip.cpp)
lockstep_batches(lockstep_text)
lockstep_batches(lockstep_runtime)
lockstep_batches(lockstep_tracing APART frontend/ops/element.cpp)
lockstep_batches(lockstep_frontend)
lockstep_batches(lockstep_llm)
lockstep_batches(lockstep_console APART console/guarded_main.cpp)
lockstep_batches(lockstep_experiment)
lockstep_batches(lockstep_wgsl_conformance)
lockstep_batches(lockstep_toolkit APART tools/devices/driver_child.cpp)
lockstep_batches(lockstep_profile)
lockstep_batches(lockstep_tune)
lockstep_batches(lockstep_explore)
lockstep_batches(lockstep_verify APART tools/verify/stage_build.cpp)
lockstep_batches(lockstep_tool)
lockstep_batches(lockstep_spirv)
lockstep_batches(lockstep_vulkan)
