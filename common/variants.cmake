# Variants: kernels that a chapter measures beside its own. They are built like steps, tested by tests/test_variants.c and
# timed by plots/record_variants.sh, but are no rungs of the ladder.
#
#   steps/NN_name/variants/WHAT.cu       a kernel file of its own: the program bin/variants/NN_WHAT
#   steps/NN_name/variants/I_WHAT.patch  the chapter's kernels (and device.cuh) after the patches 1 to I, in this order
find_program(PATCH patch) # run.sh installs it
if(NOT PATCH)
    message(STATUS "patch is not installed: no variants are built")
    return()
endif()

# add_variant(NAME SOURCE)
function(add_variant name source)
    add_kernels(kernels_${name} ${source})
    add_step_program(${name} kernels_${name} step_${name})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/variants)
endfunction()

foreach(step ${STEPS})
    string(SUBSTRING ${step} 0 3 number_)
    string(SUBSTRING ${step} 3 -1 file)
    set(folder ${CMAKE_SOURCE_DIR}/steps/${step})
    set(names)
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/variants/*.cu)
    foreach(source ${sources})
        get_filename_component(name ${source} NAME_WE)
        add_variant(${number_}${name} ${source})
        list(APPEND names ${number_}${name})
    endforeach()

    file(GLOB patches CONFIGURE_DEPENDS ${folder}/variants/[1-9]_*.patch)
    set(originals ${folder}/${file}.cu ${CMAKE_SOURCE_DIR}/common/device.cuh)
    set(patched ${originals})
    foreach(patch ${patches})
        string(REGEX REPLACE ".*/[1-9]_(.*)\\.patch" "${number_}\\1" name ${patch})
        set(copies ${CMAKE_BINARY_DIR}/variants/${name})
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${originals} ${patch})
        set(new ${CMAKE_BINARY_DIR}/patched/${name})
        file(REMOVE_RECURSE ${new})
        file(COPY ${patched} DESTINATION ${new})
        execute_process(COMMAND ${PATCH} --quiet --fuzz=0 -p1 -d ${new} -i ${patch} RESULT_VARIABLE failed
                        OUTPUT_VARIABLE output ERROR_VARIABLE output)
        if(failed)
            message(FATAL_ERROR "${patch} does not apply:\n${output}")
        endif()
        # The struct step gets the variant's name; files that stay as they were are left alone, and not compiled again.
        file(READ ${new}/${file}.cu text)
        string(REGEX REPLACE "(\\.name = \"|step step_)[0-9a-z_]+" "\\1${name}" text "${text}")
        file(CONFIGURE OUTPUT ${copies}/${file}.cu CONTENT "${text}" @ONLY)
        configure_file(${new}/device.cuh ${copies}/device.cuh COPYONLY)
        set(patched ${new}/${file}.cu ${new}/device.cuh)
        add_variant(${name} ${copies}/${file}.cu)
        list(APPEND names ${name})
    endforeach()

    foreach(name ${names})
        list(APPEND VARIANT_KERNELS kernels_${name})
        if(step MATCHES bwd)
            string(APPEND BACKWARD_VARIANT_CALLS " X(${name})")
        else()
            string(APPEND FORWARD_VARIANT_CALLS " X(${name})")
        endif()
    endforeach()
endforeach()

# FOR_EACH_FORWARD_VARIANT(X) calls X(05_split_k) and so on; likewise those of the backward pass.
file(CONFIGURE OUTPUT variant_list.h CONTENT "#define FOR_EACH_FORWARD_VARIANT(X)${FORWARD_VARIANT_CALLS}
#define FOR_EACH_BACKWARD_VARIANT(X)${BACKWARD_VARIANT_CALLS}
")
