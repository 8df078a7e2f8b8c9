# find_package(rmw_pteros_cpp): the target rmw_pteros_cpp::rmw_pteros_cpp.
set(rmw_pteros_cpp_FOUND_AMENT_PACKAGE TRUE)
get_filename_component(_rmw_pteros_cpp_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

include(CMakeFindDependencyMacro)
find_dependency(rmw)

if(NOT TARGET rmw_pteros_cpp::rmw_pteros_cpp)
  add_library(rmw_pteros_cpp::rmw_pteros_cpp SHARED IMPORTED)
  set_target_properties(rmw_pteros_cpp::rmw_pteros_cpp PROPERTIES
    IMPORTED_LOCATION "${_rmw_pteros_cpp_prefix}/lib/librmw_pteros_cpp.so"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_LINK_LIBRARIES "rmw::rmw")
endif()
set(rmw_pteros_cpp_TARGETS rmw_pteros_cpp::rmw_pteros_cpp)
set(rmw_pteros_cpp_LIBRARIES rmw_pteros_cpp::rmw_pteros_cpp)
unset(_rmw_pteros_cpp_prefix)
