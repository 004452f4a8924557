# The cuda preset: kernels by nvcc, for the card of this machine, or for a few common ones where there is none.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                    OUTPUT_VARIABLE capability OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(failed EQUAL 0 AND capability MATCHES "^[0-9]+\\.[0-9]")
        string(REGEX REPLACE "^([0-9]+)\\.([0-9]).*" "\\1\\2" capability "${capability}")
        # Hopper's own instructions exist only in the architecture-specific target.
        string(REGEX REPLACE "^90$" "90a" capability "${capability}")
        set(CMAKE_CUDA_ARCHITECTURES ${capability}-real)
    else()
        set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90a-real)
    endif()
    message(STATUS "CUDA architectures: ${CMAKE_CUDA_ARCHITECTURES}")
endif()
set(CMAKE_CUDA_STANDARD 20)
if(NOT CMAKE_CUDA_COMPILER)
    find_program(CMAKE_CUDA_COMPILER nvcc HINTS /usr/local/cuda/bin)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

add_library(device_runtime INTERFACE)
target_link_libraries(device_runtime INTERFACE CUDA::cudart)

function(add_kernels name file)
    add_library(${name} OBJECT ${file})
    set_source_files_properties(${file} PROPERTIES LANGUAGE CUDA)
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/common ${CMAKE_SOURCE_DIR}/common/cuda)
    target_compile_options(${name} PRIVATE -lineinfo $<$<BOOL:${ATTENTION_WERROR}>:-Werror=all-warnings>)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(${name} PUBLIC device_runtime)
endfunction()

# steps/NN_name/probes/WHAT.cu, a small program that asks the card one question, becomes bin/probes/WHAT.
function(add_probes)
    file(GLOB probes CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/steps/*/probes/*.cu)
    foreach(probe ${probes})
        get_filename_component(name ${probe} NAME_WE)
        add_executable(probe_${name} ${probe})
        set_source_files_properties(${probe} PROPERTIES LANGUAGE CUDA)
        set_target_properties(probe_${name} PROPERTIES OUTPUT_NAME ${name}
                              RUNTIME_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/probes)
    endforeach()
endfunction()

# libattention_steps.so: common/interface.h over the kernels of all steps, and nothing of the harness but its limits.
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # the harness goes into it as well
function(add_step_library)
    add_library(attention_steps SHARED ${CMAKE_SOURCE_DIR}/common/interface.c)
    target_include_directories(attention_steps PRIVATE ${CMAKE_BINARY_DIR})
    set_target_properties(attention_steps PROPERTIES LINKER_LANGUAGE CXX)
    target_link_options(attention_steps PRIVATE LINKER:--as-needed LINKER:--no-undefined LINKER:--exclude-libs,ALL)
    target_link_libraries(attention_steps PRIVATE ${ARGN} harness host_warnings)
endfunction()
