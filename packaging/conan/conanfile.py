# Copyright 2026 The Switchyard Authors
# SPDX-License-Identifier: Apache-2.0
import os

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, get


class SwitchyardConan(ConanFile):
    name = "switchyard"
    version = "@VERSION@"
    # address: set
    # homepage = "@ADDRESS@"
    # address: end
    license = "Apache-2.0"
    description = "SIMD kernels for Mixture-of-Experts layers on CPUs"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "device": [True, False], "tbb": [True, False]}
    default_options = {"shared": False, "device": False, "tbb": False}

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("Switchyard is for Linux")

    def layout(self):
        cmake_layout(self, src_folder="src")

    def requirements(self):
        self.requires("highway/[>=1.0.3 <2]")
        if self.options.tbb:
            self.requires("onetbb/[>=2021]")

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for option in ("shared", "device", "tbb"):
            toolchain.cache_variables[f"SWITCHYARD_{option.upper()}"] = bool(getattr(self.options, option))
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # Consumers use the package's own CMake and pkg-config files.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "switchyard")]
