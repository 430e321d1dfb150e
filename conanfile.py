# SPDX-License-Identifier: Apache-2.0
from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout


class Lockstep(ConanFile):
    name = "lockstep"
    version = "0.1.0"
    description = "Compiles and trains neural networks on any Vulkan GPU"
    license = "Apache-2.0"
    package_type = "static-library"
    settings = "os", "compiler", "build_type", "arch"
    options = {"vulkan": [True, False]}
    default_options = {"vulkan": True}
    exports_sources = (
        "CHANGELOG.md", "CMakeLists.txt", "LICENSE", "backends/*", "cmake/*", "conformance/*", "console/*", "README.md", "docs/*", "examples/*", "experiment/*",
        "frontend/*", "include/*", "ir/*", "passes/*", "runtime/*", "shaders/*", "tools/*",
    )

    def requirements(self):
        # What Debian 12 has or newer, up to where an interface that is used here changes. The registry also has glslang under numbers such
        # as 11.7.0, which are older than 1.3.239 and compare as newer.
        self.requires("cli11/[>=2.1 <3]")
        self.requires("nlohmann_json/[>=3.11 <4]")
        self.requires("fmt/[>=9.1 <10]")
        self.requires("libpng/[>=1.6 <2]")
        self.requires("onetbb/[>=2021.8 <2023]")
        self.requires("pcre2/[>=10.40 <11]")
        self.requires("utf8proc/[>=2.8 <3]")
        self.requires("zlib/[>=1.2.13 <2]")
        if self.options.vulkan:
            self.requires("glslang/[>=1.3.239 <1.4]")
            self.requires("spirv-tools/[>=1.3.239 <1.4]")
            self.requires("volk/[>=1.3.239 <2]")
            self.requires("vulkan-headers/[>=1.3.239 <2]")

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["LOCKSTEP_TESTS"] = False
        toolchain.cache_variables["LOCKSTEP_VULKAN"] = bool(self.options.vulkan)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # Our own CMake package is used, not one that Conan would write.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/lockstep"]
