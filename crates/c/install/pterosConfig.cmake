# Targets: pteros::pteros (shared), pteros::pteros_static.
# Function: pteros_generate_interfaces(TARGET PACKAGE...) makes a library of C structs, with
# the command `pteros`.
# The generated sources are C.
enable_language(C)
get_filename_component(_pteros_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET pteros::pteros)
  add_library(pteros::pteros SHARED IMPORTED)
  set_target_properties(pteros::pteros PROPERTIES
    IMPORTED_LOCATION "${_pteros_prefix}/lib/libpteros.so"
    IMPORTED_SONAME "libpteros.so.0"
    INTERFACE_INCLUDE_DIRECTORIES "${_pteros_prefix}/include")
  add_library(pteros::pteros_static STATIC IMPORTED)
  set_target_properties(pteros::pteros_static PROPERTIES
    IMPORTED_LOCATION "${_pteros_prefix}/lib/libpteros.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_pteros_prefix}/include"
    INTERFACE_LINK_LIBRARIES "gcc_s;rt;pthread;m;dl")
endif()

function(pteros_generate_interfaces target)
  find_program(PTEROS_COMMAND pteros REQUIRED)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}")
  execute_process(
    COMMAND "${PTEROS_COMMAND}" interface generate --c "${folder}" ${ARGN}
    OUTPUT_VARIABLE sources
    COMMAND_ERROR_IS_FATAL ANY)
  string(STRIP "${sources}" sources)
  string(REPLACE "\n" ";" sources "${sources}")
  add_library(${target} STATIC ${sources})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} PUBLIC "${folder}")
  target_link_libraries(${target} PUBLIC pteros::pteros)
endfunction()
