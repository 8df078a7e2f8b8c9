//! Clients and servers of a service, as rmw lists them since Lyrical.

use std::ffi::{CStr, c_char};

use rmw_pteros_cpp::abi::{Allocator, Node, Ret, ServiceEndpointInfoArray, ret};

use crate::failing_allocators::fails_cleanly_until_enough;
use crate::harness::*;

type Ask = unsafe extern "C" fn(
    *const Node,
    *mut Allocator,
    *const c_char,
    bool,
    *mut ServiceEndpointInfoArray,
) -> Ret;

unsafe extern "C" {
    fn rmw_get_clients_info_by_service(
        node: *const Node,
        allocator: *mut Allocator,
        name: *const c_char,
        no_mangle: bool,
        out: *mut ServiceEndpointInfoArray,
    ) -> Ret;
    fn rmw_get_servers_info_by_service(
        node: *const Node,
        allocator: *mut Allocator,
        name: *const c_char,
        no_mangle: bool,
        out: *mut ServiceEndpointInfoArray,
    ) -> Ret;
}

/// Node, service type, kind, and whether the first endpoint reads and the second one
/// writes, of each entry.
fn list(ask: Ask, party: &Party) -> Vec<(String, String, u32, [bool; 2])> {
    let mut out: ServiceEndpointInfoArray = zeroed();
    let (name, allocator) = (c"/s".as_ptr(), &mut allocator());
    // SAFETY: valid arguments.
    let code = unsafe { ask(party.node(), allocator, name, false, &mut out) };
    assert_eq!(code, ret::OK);
    let mut found = Vec::new();
    for at in 0..out.size {
        // SAFETY: so many entries, each with two endpoints; the memory is freed here.
        unsafe {
            let info = out.info_array.add(at).read();
            let text = |text: *const c_char| {
                let owned = CStr::from_ptr(text).to_str().unwrap().to_owned();
                free_memory(text.cast_mut());
                owned
            };
            assert_eq!(info.endpoint_count, 2);
            let gids = [0, 1].map(|at| info.endpoint_gids.add(at).read());
            // The entity kinds of readers and writers with and without a key.
            let is_reader = |gid: [u8; 16]| matches!(gid[15] & 0x0f, 4 | 7);
            let qos = [0, 1].map(|at| info.qos_profiles.add(at).read().reliability);
            assert_eq!(qos, [1, 1], "reliable");
            let name = text(info.node_namespace) + &text(info.node_name);
            let roles = [is_reader(gids[0]), !is_reader(gids[1])];
            found.push((name, text(info.service_type), info.endpoint_type, roles));
            free_memory(info.endpoint_gids);
            free_memory(info.qos_profiles);
        }
    }
    free_memory(out.info_array);
    found.sort();
    found
}

#[test]
fn clients_and_servers_of_two_contexts_are_listed_with_reader_and_writer() {
    let domain = unused_domain();
    let here = Party::with_node(domain, c"here");
    let there = Party::with_node(domain, c"there");
    let ty = service_type_support(Text::type_support());
    let (client, other) = (here.client(ty), there.client(ty));
    let service = there.service(ty);
    let entry = |node: &str, kind| (node.to_owned(), "test/msg/Text".to_owned(), kind, [true; 2]);
    for party in [&here, &there] {
        party.await_condition(|| {
            here.poll();
            there.poll();
            list(rmw_get_clients_info_by_service, party) == [entry("/here", 3), entry("/there", 3)]
        });
        party.await_condition(|| {
            here.poll();
            there.poll();
            list(rmw_get_servers_info_by_service, party) == [entry("/there", 4)]
        });
    }
    let node = here.node();
    let ask = |allocator: &mut Allocator, no_mangle| {
        let mut out: ServiceEndpointInfoArray = zeroed();
        let name = c"/s".as_ptr();
        // SAFETY: valid arguments, and a structure that is zero.
        unsafe { rmw_get_clients_info_by_service(node, allocator, name, no_mangle, &mut out) }
    };
    assert_eq!(ask(&mut allocator(), true), ret::INVALID_ARGUMENT);
    let needed = fails_cleanly_until_enough("clients", |mut scarce| ask(&mut scarce, false));
    assert!(needed >= 11, "two clients: {needed}");
    here.destroy_client(client);
    there.destroy_client(other);
    there.destroy_service(service);
    here.await_condition(|| list(rmw_get_clients_info_by_service, &here).is_empty());
}
