# SPDX-License-Identifier: Apache-2.0
# `cpack` in a build tree makes lockstep_<version>_<architecture>.deb with the command, the library and its headers.
set(LOCKSTEP_PACKAGE_CONTACT "Lockstep maintainers <maintainers@lockstep.example>" CACHE STRING "Maintainer of the Debian package")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lockstep)
set(CPACK_PACKAGE_CONTACT "${LOCKSTEP_PACKAGE_CONTACT}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The loader is opened at run time; the rest is what a program links that uses the archive, and what the folder of `lockstep new` is
# built with.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS
    "libvulkan1, libfmt-dev, libpng-dev, libtbb-dev, zlib1g-dev, libpcre2-dev, libutf8proc-dev, glslang-dev, spirv-tools, pkg-config, g++, cmake, make")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "mesa-vulkan-drivers")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "compiles and trains neural networks on any Vulkan GPU
Lockstep traces models that are written in C++, differentiates and plans
them and emits compute kernels. They run on Vulkan and on a CPU reference,
which are compared on every operation. The package has the lockstep command,
the library as an archive, its headers, and files for CMake and pkg-config.")
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_tree.cmake)
include(CPack)
