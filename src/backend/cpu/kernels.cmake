# kernels.cmake: the kernels of the cpu backend (kernel/*.c, product/*.c), compiled once for every
# instruction set and for both types that activations can have. Which one runs is decided when a device is
# opened (isa.c). avx512bf16 differs from avx512 only by how floats are rounded: bf16 alone.
file(GLOB cpu_tiles CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/tile/*.c)
target_sources(fth_cpu PRIVATE ${cpu_tiles})
file(GLOB cpu_kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/kernel/*.c ${CMAKE_CURRENT_LIST_DIR}/product/*.c)
set(cpu_isas plain)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND cpu_isas avx2 avx512 avx512bf16)
  set(cpu_flags_avx2 -mavx2 -mfma)
  set(cpu_flags_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512)
  set(cpu_flags_avx512bf16 ${cpu_flags_avx512} -mavx512bf16)
  target_compile_definitions(fth_cpu PRIVATE FTH_CPU_X86)
endif()
foreach(isa ${cpu_isas})
  set(reals f32 bf16)
  if(isa STREQUAL avx512bf16)
    set(reals bf16)
  endif()
  foreach(real ${reals})
    set(library fth_cpu_${isa}_${real})
    add_library(${library} OBJECT ${cpu_kernels})
    # fth_flags by hand, since its -ffp-contract=off must come before the kernels' own choice
    target_include_directories(${library} PRIVATE
      $<TARGET_PROPERTY:fth_flags,INTERFACE_INCLUDE_DIRECTORIES>)
    target_compile_options(${library} PRIVATE
      $<TARGET_PROPERTY:fth_flags,INTERFACE_COMPILE_OPTIONS> ${cpu_flags_${isa}}
      -ffp-contract=fast -fno-trapping-math -fno-signed-zeros -fopenmp-simd
      -fno-tree-loop-distribute-patterns) # short copies: calls of memcpy cost more
    target_compile_definitions(${library} PRIVATE
      $<TARGET_PROPERTY:fth_flags,INTERFACE_COMPILE_DEFINITIONS> FTH_ISA=${isa} FTH_REAL=${real} FTH_REAL_IS_${real})
    target_sources(fth_cpu PRIVATE $<TARGET_OBJECTS:${library}>)
  endforeach()
endforeach()
