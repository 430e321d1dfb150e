# SPDX-License-Identifier: Apache-2.0
# What programs outside of this tree use: one archive with the objects of every library, its headers, a CMake package and a pkg-config
# file. The libraries of the tree stay out of the package, and with them our warnings and the precompiled header.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(packaged
    lockstep_support lockstep_kernel lockstep_graph lockstep_program lockstep_passes lockstep_reference lockstep_backends lockstep_wgsl
    lockstep_io lockstep_text lockstep_runtime lockstep_tracing lockstep_frontend lockstep_llm lockstep_data lockstep_console lockstep_experiment)
set(package_vulkan_libraries "")
if(LOCKSTEP_VULKAN)
  list(APPEND packaged lockstep_spirv lockstep_vulkan lockstep_volk)
  find_package(SpirvBuilder REQUIRED)
  set(package_vulkan_libraries "-lSPIRV -lSPIRV-Tools -Wl,--exclude-libs,libSPIRV.a:libSPIRV-Tools.a:liblockstep.a ")
endif()
find_package(PNG REQUIRED)
find_package(TBB REQUIRED)
find_package(Threads REQUIRED)
find_package(UnicodeText REQUIRED)
find_package(ZLIB REQUIRED)

# Static whatever BUILD_SHARED_LIBS says: docs/decisions/0011-one-static-library.md.
add_library(lockstep STATIC)
add_library(lockstep::lockstep ALIAS lockstep)
foreach(library IN LISTS packaged)
  target_sources(lockstep PRIVATE $<TARGET_OBJECTS:${library}>)
endforeach()
set_target_properties(lockstep PROPERTIES LINKER_LANGUAGE CXX)
target_compile_features(lockstep INTERFACE cxx_std_20)
target_include_directories(
  lockstep
  INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
            $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/lockstep>)
target_link_libraries(lockstep PRIVATE fmt::fmt PNG::PNG TBB::tbb Threads::Threads UnicodeText::UnicodeText ZLIB::ZLIB ${CMAKE_DL_LIBS})
# There when Vulkan was built in; the archive is the same.
if(LOCKSTEP_VULKAN)
  target_link_libraries(lockstep PRIVATE SpirvBuilder::SpirvBuilder)
  add_library(lockstep_vulkan_component INTERFACE)
  add_library(lockstep::vulkan ALIAS lockstep_vulkan_component)
  set_target_properties(lockstep_vulkan_component PROPERTIES EXPORT_NAME vulkan)
  target_link_libraries(lockstep_vulkan_component INTERFACE lockstep)
  install(TARGETS lockstep_vulkan_component EXPORT lockstep-targets)
endif()

# Headers keep the paths that they are included by: <prefix>/include/lockstep/frontend/lockstep.h.
include(${CMAKE_CURRENT_LIST_DIR}/public_headers.cmake)
foreach(header IN LISTS public_headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lockstep/${folder} COMPONENT dev)
endforeach()
install(FILES include/lockstep/lockstep.h include/lockstep/experiment.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lockstep COMPONENT dev)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
install(TARGETS lockstep EXPORT lockstep-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(EXPORT lockstep-targets NAMESPACE lockstep:: DESTINATION ${package_dir} COMPONENT dev)
set_target_properties(lockstep_tool PROPERTIES EXPORT_NAME tool)
install(TARGETS lockstep_tool EXPORT lockstep-tools RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
install(EXPORT lockstep-tools NAMESPACE lockstep:: DESTINATION ${package_dir} COMPONENT tools)
if(NOT LOCKSTEP_INSTALL_DEBUG)
  # Line tables are nine tenths of the archive that the preset dev makes. Dates stay, or each installation would copy everything anew.
  install(CODE "
    foreach(file IN ITEMS ${CMAKE_INSTALL_LIBDIR}/$<TARGET_FILE_NAME:lockstep> ${CMAKE_INSTALL_BINDIR}/$<TARGET_FILE_NAME:lockstep_tool>)
      cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY \${CMAKE_INSTALL_PREFIX})
      if(EXISTS \$ENV{DESTDIR}\${file})
        execute_process(COMMAND ${CMAKE_STRIP} --strip-debug --preserve-dates \$ENV{DESTDIR}\${file} COMMAND_ERROR_IS_FATAL ANY)
      endif()
    endforeach()" ALL_COMPONENTS)
endif()
# The manual page and the completions of shells, in the folders where these look for them.
install(DIRECTORY ${PROJECT_BINARY_DIR}/tools/documents/ DESTINATION ${CMAKE_INSTALL_DATADIR} COMPONENT tools)

configure_package_config_file(cmake/lockstep-config.cmake.in ${PROJECT_BINARY_DIR}/package/lockstep-config.cmake
                              INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/lockstep-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/lockstep-config.cmake ${PROJECT_BINARY_DIR}/package/lockstep-config-version.cmake
              cmake/FindSpirvBuilder.cmake cmake/FindUnicodeText.cmake
        DESTINATION ${package_dir} COMPONENT dev)

set(package_pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX}/${package_pkgconfig_dir} OUTPUT_VARIABLE package_prefix)
configure_file(cmake/lockstep.pc.in ${PROJECT_BINARY_DIR}/package/lockstep.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/package/lockstep.pc DESTINATION ${package_pkgconfig_dir} COMPONENT dev)

# The pages that `lockstep explain` names, at the paths that link them to each other.
install(FILES LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT dev)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tools)
