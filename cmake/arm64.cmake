# Cross-compiles for 64-bit ARM with Debian's compiler. ARM64_LIBRARIES: a folder with the libraries of that
# architecture, as scripts/test-cpus makes it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES ARM64_LIBRARIES)
set(CMAKE_FIND_ROOT_PATH ${ARM64_LIBRARIES} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)

set(CMAKE_SKIP_RPATH ON) # qemu looks into that folder

set(headers "-isystem ${ARM64_LIBRARIES}/usr/include -isystem ${ARM64_LIBRARIES}/usr/include/aarch64-linux-gnu")
set(CMAKE_C_FLAGS_INIT ${headers})
set(CMAKE_CXX_FLAGS_INIT ${headers})
foreach(folder usr/lib lib)
  string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -Wl,-rpath-link,${ARM64_LIBRARIES}/${folder}/aarch64-linux-gnu")
endforeach()
