//! Content filters, within a context and between two; and network flow endpoints.

use std::ffi::{CStr, CString};
use std::ptr::null_mut;

use rmw_pteros_cpp::abi::{ContentFilterOptions, ret};

use crate::harness::*;

type Small = Frame<4>;

#[test]
fn a_filter_admits_what_it_names_until_it_is_changed_or_removed() {
    let domain = unused_domain();
    let (here, there) = (Party::new(domain), Party::new(domain));
    let ty = Small::type_support();
    let parameter = CString::new("7").unwrap();
    let mut parameters = [parameter.as_ptr().cast_mut()];
    let mut options = filter(c"id = %0", &mut parameters);
    let subscription = here.subscription(ty, &raw mut options);
    let (near, far) = (here.publisher(ty), there.publisher(ty));
    here.await_match(near, 1);
    here.await_match(far, 1);
    let received = |id: u32| {
        publish(near, &*Small::boxed(id, 0));
        publish(far, &*Small::boxed(id, 1));
        // A message that passes every filter of this test follows. So the wait ends.
        publish(near, &*Small::boxed(7, 2));
        publish(far, &*Small::boxed(7, 3));
        let (mut message, mut seen, mut ends) = (Small::boxed(0, 0), Vec::new(), 0);
        while ends < 2 {
            here.wait_for_message(subscription);
            while take(subscription, &mut *message) {
                if message.data[0] >= 2 {
                    ends += 1;
                } else {
                    seen.push((message.id, message.data[0]));
                }
            }
        }
        seen.sort_unstable();
        seen
    };
    // SAFETY: handles and options of this test.
    unsafe {
        assert!((*subscription).is_cft_enabled);
        assert!(
            (*subscription).options.content_filter.is_null(),
            "it is the caller's"
        );
        assert_eq!(received(6), []);
        assert_eq!(received(7), [(7, 0), (7, 1)]);
        let mut copy: ContentFilterOptions = zeroed();
        let code = rmw_subscription_get_content_filter(subscription, &allocator(), &mut copy);
        assert_eq!(code, ret::OK);
        assert_eq!(CStr::from_ptr(copy.filter_expression), c"id = %0");
        assert_eq!(copy.expression_parameters.size, 1);
        let value = *copy.expression_parameters.data;
        assert_eq!(CStr::from_ptr(value), c"7");
        free_memory(value);
        free_memory(copy.expression_parameters.data);
        free_memory(copy.filter_expression);

        let changed = filter(c"id >= 6", &mut []);
        let code = rmw_subscription_set_content_filter(subscription, &raw const changed);
        assert_eq!(code, ret::OK);
        here.await_condition(|| received(6) == [(6, 0), (6, 1)]);
        assert_eq!(received(5), []);

        let wrong = filter(c"no_such_field = 1", &mut []);
        let code = rmw_subscription_set_content_filter(subscription, &raw const wrong);
        assert_eq!(code, ret::ERROR);
        assert_eq!(received(5), [], "the one before is in force");

        let removed = filter(c"", &mut []);
        let code = rmw_subscription_set_content_filter(subscription, &raw const removed);
        assert_eq!(code, ret::OK);
        assert!(!(*subscription).is_cft_enabled);
        let code = rmw_subscription_get_content_filter(subscription, &allocator(), &mut copy);
        assert_eq!(code, ret::ERROR, "there is none");
        here.await_condition(|| received(5) == [(5, 0), (5, 1)]);
    }
    here.destroy_publisher(near);
    there.destroy_publisher(far);
    here.destroy_subscription(subscription);
}

#[test]
fn network_flow_endpoints_are_the_sockets_of_the_context() {
    let party = Party::new(unused_domain());
    let publisher = party.publisher(Small::type_support());
    let mut endpoints = zeroed();
    let allocator = allocator();
    // SAFETY: valid arguments, and an array of `size` endpoints.
    unsafe {
        let code = rmw_publisher_get_network_flow_endpoints(publisher, &allocator, &mut endpoints);
        assert_eq!(code, ret::OK);
        let list = std::slice::from_raw_parts(endpoints.endpoints, endpoints.size);
        let is_loopback = list
            .iter()
            .any(|one| one.internet_address.starts_with(b"127.0.0.1\0"));
        assert!(is_loopback);
        assert!(list.iter().all(|one| one.transport_port > 7400));
        let code = rmw_publisher_get_network_flow_endpoints(publisher, &allocator, &mut endpoints);
        assert_eq!(code, ret::INVALID_ARGUMENT, "the array is not zero");
        let code = rmw_publisher_get_network_flow_endpoints(publisher, &allocator, null_mut());
        assert_eq!(code, ret::INVALID_ARGUMENT);
    }
    free_memory(endpoints.endpoints);
    party.destroy_publisher(publisher);
}

#[test]
fn the_size_of_a_bounded_type_is_that_of_its_largest_message() {
    let mut size = 0;
    let ty = Small::type_support();
    // SAFETY: valid arguments.
    let code = unsafe { rmw_get_serialized_message_size(ty, std::ptr::null(), &mut size) };
    // Header, boolean, gap, number and four bytes.
    assert_eq!((code, size), (ret::OK, 4 + 1 + 3 + 4 + 4));
}
