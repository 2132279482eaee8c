vcpkg_download_distfile(archive
  URLS @ARCHIVES@/switchyard-@VERSION@.tar.gz
  FILENAME switchyard-@VERSION@.tar.gz
  SHA512 @SHA512@)
vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE ${archive})
vcpkg_check_features(OUT_FEATURE_OPTIONS options
  FEATURES device SWITCHYARD_DEVICE tbb SWITCHYARD_TBB)
vcpkg_cmake_configure(SOURCE_PATH ${SOURCE_PATH} OPTIONS ${options})
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/switchyard)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/debug/include ${CURRENT_PACKAGES_DIR}/debug/share)
vcpkg_install_copyright(FILE_LIST ${SOURCE_PATH}/LICENSE)
