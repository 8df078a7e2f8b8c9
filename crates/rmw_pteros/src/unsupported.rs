//! Functions that rmw lets a middleware decline: allocations in advance, sizes of
//! serialized messages, dynamic messages, loans, content filters and network flow
//! endpoints. Each answers RMW_RET_UNSUPPORTED.

use std::ffi::c_void;

use crate::abi::Ret;
use crate::error::{Failure, run};

/// Declares functions that only say so.
macro_rules! unsupported {
    ($($name:ident($($argument:ident),*) = $what:literal;)*) => {$(
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
    rmw_get_serialized_message_size(_type_support, _bounds, _size) = "the size of a bounded message";
    rmw_take_dynamic_message(_subscription, _message, _taken, _allocation) = "a dynamic message";
    rmw_take_dynamic_message_with_info(_subscription, _message, _taken, _info, _allocation) = "a dynamic message";
    rmw_serialization_support_init(_name, _allocator, _support) = "serialization of dynamic messages";
    rmw_subscription_set_content_filter(_subscription, _options) = "a content filter";
    rmw_subscription_get_content_filter(_subscription, _allocator, _options) = "a content filter";
    rmw_publisher_get_network_flow_endpoints(_publisher, _allocator, _endpoints) = "network flow endpoints";
    rmw_subscription_get_network_flow_endpoints(_subscription, _allocator, _endpoints) = "network flow endpoints";
    rmw_take_loaned_message(_subscription, _message, _taken, _allocation) = "a loan";
    rmw_take_loaned_message_with_info(_subscription, _message, _taken, _info, _allocation) = "a loan";
    rmw_return_loaned_message_from_subscription(_subscription, _message) = "a loan";
    rmw_borrow_loaned_message(_publisher, _type_support, _message) = "a loan";
    rmw_return_loaned_message_from_publisher(_publisher, _message) = "a loan";
    rmw_publish_loaned_message(_publisher, _message, _allocation) = "a loan";
}
