//! Functions that a middleware may decline. Each returns RMW_RET_UNSUPPORTED.
//!
//! - Allocation in advance: memory comes from the chunk pool, which reuses the memory of
//!   earlier messages. A prepared allocation would have no effect. Cyclone DDS and Fast
//!   DDS decline as well.
//! - Dynamic messages: they need a `rosidl_dynamic_typesupport` serialization library.
//!   The only one is Fast DDS's, which a ROS 2 need not have. rcl uses it only if a user
//!   subscribes by a type description. Cyclone DDS declines as well.

use std::ffi::c_void;

use crate::abi::Ret;
use crate::error::{Failure, run};

/// Declares functions that return RMW_RET_UNSUPPORTED.
macro_rules! unsupported {
    ($($name:ident($($argument:ident),*) = $what:literal;)*) => {
        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($name),)*];
    $(
        #[doc = concat!("`", stringify!($name), "`: not supported.")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: *const c_void),*) -> Ret {
            run(stringify!($name), || {
                let _ = ($($argument,)*);
                Err(Failure::unsupported($what))
            })
        }
    )*};
}

unsupported! {
    rmw_init_publisher_allocation(_type_support, _bounds, _allocation) = "allocation in advance";
    rmw_fini_publisher_allocation(_allocation) = "allocation in advance";
    rmw_init_subscription_allocation(_type_support, _bounds, _allocation) = "allocation in advance";
    rmw_fini_subscription_allocation(_allocation) = "allocation in advance";
    rmw_take_dynamic_message(_subscription, _message, _taken, _allocation) = "a dynamic message";
    rmw_take_dynamic_message_with_info(_subscription, _message, _taken, _info, _allocation) = "a dynamic message";
    rmw_serialization_support_init(_name, _allocator, _support) = "serialization of dynamic messages";
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_function_that_declines_is_documented() {
        let page = include_str!("../../../docs/how_to/ros2_on_pteros.md");
        for name in super::NAMES {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
