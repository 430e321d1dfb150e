# SPDX-License-Identifier: Apache-2.0
# SpirvBuilder::SpirvBuilder: glslang's spv::Builder and SPIRV-Tools, both static, so that the result runs where only a Vulkan driver is
# installed. Installed with the package, whose users link the same two.
find_path(SpirvBuilder_GLSLANG_DIR glslang/SPIRV/SpvBuilder.h)
find_path(SpirvBuilder_TOOLS_DIR spirv-tools/libspirv.h)
find_library(SpirvBuilder_BUILDER_LIBRARY libSPIRV.a)
find_library(SpirvBuilder_TOOLS_LIBRARY libSPIRV-Tools.a)
mark_as_advanced(SpirvBuilder_GLSLANG_DIR SpirvBuilder_TOOLS_DIR SpirvBuilder_BUILDER_LIBRARY SpirvBuilder_TOOLS_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(SpirvBuilder REQUIRED_VARS SpirvBuilder_GLSLANG_DIR SpirvBuilder_TOOLS_DIR SpirvBuilder_BUILDER_LIBRARY
                                                             SpirvBuilder_TOOLS_LIBRARY)
if(SpirvBuilder_FOUND AND NOT TARGET SpirvBuilder::SpirvBuilder)
  add_library(SpirvBuilder::SpirvBuilder INTERFACE IMPORTED)
  target_include_directories(SpirvBuilder::SpirvBuilder INTERFACE ${SpirvBuilder_GLSLANG_DIR} ${SpirvBuilder_TOOLS_DIR})
  target_link_libraries(SpirvBuilder::SpirvBuilder INTERFACE ${SpirvBuilder_BUILDER_LIBRARY} ${SpirvBuilder_TOOLS_LIBRARY})
  # Their symbols are visible; a shared library would export them, and take those of another that does the same. So are the containers of
  # their types that our own archive instantiates.
  target_link_options(SpirvBuilder::SpirvBuilder INTERFACE LINKER:--exclude-libs,libSPIRV.a:libSPIRV-Tools.a:liblockstep.a)
endif()
