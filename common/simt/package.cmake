# simt-nvcc_VERSION_ARCH.deb, by cpack in the build folder. Each version has a folder of its own, so that two can be installed side
# by side; /usr/bin/simt-nvcc is the newest, which `update-alternatives --config simt-nvcc` changes.
set(CPACK_PACKAGE_VERSION 1.0 CACHE STRING "The version of the Debian package of simt-nvcc")
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY TRUE CACHE INTERNAL "") # of the chapters nothing is in it
install(FILES simt.gdb DESTINATION lib/simt)
install(FILES ${CMAKE_SOURCE_DIR}/docs/your-programs.md ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION share/doc/simt-nvcc)

set(package simt-nvcc-${CPACK_PACKAGE_VERSION})
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ${package})
set(CPACK_PACKAGE_CONTACT "The authors of Attention, step by step")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "compiles and checks CUDA programs without a GPU")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "simt-nvcc takes nvcc's place: a program that it compiles runs on a simulated device,
which stops at the source line of a race, of an access out of bounds or of a barrier that not all threads reach, and counts
memory requests.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr/lib/${package})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "g++, libboost-context-dev, libcjson-dev, libdw-dev, libopenblas-dev")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(bin ${CPACK_PACKAGING_INSTALL_PREFIX}/bin/simt-nvcc)
string(REPLACE . "" priority ${CPACK_PACKAGE_VERSION})
file(WRITE ${CMAKE_BINARY_DIR}/package/postinst "#!/bin/sh
set -e
update-alternatives --install /usr/bin/simt-nvcc simt-nvcc ${bin} ${priority}
")
file(WRITE ${CMAKE_BINARY_DIR}/package/prerm "#!/bin/sh
set -e
[ \"$1\" = upgrade ] || update-alternatives --remove simt-nvcc ${bin}
")
file(CHMOD ${CMAKE_BINARY_DIR}/package/postinst ${CMAKE_BINARY_DIR}/package/prerm
     FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/package/postinst ${CMAKE_BINARY_DIR}/package/prerm)
include(CPack)
