# The target of the library that this package installs.
if(NOT TARGET rmw_pteros_cpp::rmw_pteros_cpp)
  get_filename_component(_rmw_pteros_cpp_prefix "${rmw_pteros_cpp_DIR}/../../.." ABSOLUTE)
  add_library(rmw_pteros_cpp::rmw_pteros_cpp SHARED IMPORTED)
  set_target_properties(rmw_pteros_cpp::rmw_pteros_cpp PROPERTIES
    IMPORTED_LOCATION "${_rmw_pteros_cpp_prefix}/lib/librmw_pteros_cpp.so"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_LINK_LIBRARIES "rmw::rmw")
  unset(_rmw_pteros_cpp_prefix)
endif()
list(APPEND rmw_pteros_cpp_TARGETS rmw_pteros_cpp::rmw_pteros_cpp)
list(APPEND rmw_pteros_cpp_LIBRARIES rmw_pteros_cpp::rmw_pteros_cpp)
