# Highway and TBB: Debian's packages through their CMake configs, or a parent
# project's sub-projects, which only have the plain target names.
find_package(Threads REQUIRED)

if(TARGET hwy AND NOT TARGET hwy::hwy)
  add_library(hwy::hwy ALIAS hwy)
endif()
if(NOT TARGET hwy::hwy)
  find_package(hwy 1.0.3 REQUIRED)
endif()

if(SWITCHYARD_TBB)
  if(TARGET tbb AND NOT TARGET TBB::tbb)
    add_library(TBB::tbb ALIAS tbb)
  endif()
  if(NOT TARGET TBB::tbb)
    find_package(TBB 2021 REQUIRED)
  endif()
endif()
