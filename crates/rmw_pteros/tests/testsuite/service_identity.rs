//! How client and server name a request. Service introspection reports both sides, and
//! its readers join them by the client's gid and the sequence number.

use std::ffi::c_void;

use rmw_pteros_cpp::abi::{Gid, Node, Ret, ServiceHandle, ServiceInfo, ret};

use crate::harness::*;

unsafe extern "C" {
    fn rmw_get_gid_for_client(client: *const ServiceHandle, gid: *mut Gid) -> Ret;
    fn rmw_service_server_is_available(
        node: *const Node,
        client: *const ServiceHandle,
        is_available: *mut bool,
    ) -> Ret;
}

fn gid(client: *const ServiceHandle) -> [u8; 16] {
    let mut gid: Gid = zeroed();
    // SAFETY: a client.
    assert_eq!(unsafe { rmw_get_gid_for_client(client, &mut gid) }, ret::OK);
    *gid.data.first_chunk().unwrap()
}

fn is_available(party: &Party, client: *const ServiceHandle) -> bool {
    let mut is_available = false;
    // SAFETY: a client of the node.
    let code = unsafe { rmw_service_server_is_available(party.node(), client, &mut is_available) };
    assert_eq!(code, ret::OK);
    is_available
}

/// Sends a request. Returns its number for the client.
fn ask(client: *const ServiceHandle, id: u32) -> i64 {
    let (request, mut sequence) = (Text::new(id, "question"), 0);
    // SAFETY: a request of the type.
    let code = unsafe { rmw_send_request(client, (&raw const request).cast(), &mut sequence) };
    assert_eq!(code, ret::OK);
    sequence
}

/// A request or a response, and how it is named; `None` if there is none.
fn take(
    function: unsafe extern "C" fn(
        *const ServiceHandle,
        *mut ServiceInfo,
        *mut c_void,
        *mut bool,
    ) -> Ret,
    of: *const ServiceHandle,
) -> Option<(u32, ServiceInfo)> {
    let (mut info, mut message, mut taken) = (zeroed(), Text::new(0, ""), false);
    // SAFETY: a message of the type.
    let code = unsafe { function(of, &mut info, (&raw mut message).cast(), &mut taken) };
    assert_eq!(code, ret::OK);
    taken.then_some((message.id, info))
}

fn answer(service: *const ServiceHandle, request: &mut ServiceInfo, id: u32) -> Ret {
    let mut answer = Text::new(id, "answer");
    // SAFETY: the name of a request, and a response of the type.
    unsafe {
        let request = &raw mut request.request_id;
        rmw_send_response(service, request, (&raw mut answer).cast())
    }
}

/// Two clients `here` and a server `there`: each request has one name on both sides.
fn names_agree(here: &Party, there: &Party) {
    let ty = service_type_support(Text::type_support());
    let clients = [here.client(ty), here.client(ty)];
    assert_ne!(gid(clients[0]), gid(clients[1]));
    // A request that no server gets has a number, too.
    assert_eq!(ask(clients[1], 99), 1);
    let service = there.service(ty);
    for client in clients {
        here.await_condition(|| {
            there.poll();
            is_available(here, client)
        });
    }
    for (id, client) in (0..6).zip(clients.into_iter().cycle()) {
        let sequence = ask(client, id);
        let mut asked = None;
        there.await_condition(|| {
            asked = take(rmw_take_request, service);
            asked.is_some()
        });
        let (number, mut request) = asked.unwrap();
        assert_eq!(number, id);
        assert_eq!(request.request_id.writer_guid, gid(client));
        assert_eq!(request.request_id.sequence_number, sequence);
        assert_eq!(answer(service, &mut request, id + 100), ret::OK);
        let mut answered = None;
        here.await_condition(|| {
            answered = take(rmw_take_response, client);
            answered.is_some()
        });
        let (number, response) = answered.unwrap();
        assert_eq!(number, id + 100);
        assert_eq!(response.request_id.writer_guid, gid(client));
        assert_eq!(response.request_id.sequence_number, sequence);
    }
    for client in clients {
        here.destroy_client(client);
    }
    there.destroy_service(service);
}

#[test]
fn a_request_has_one_name_within_a_context() {
    let party = Party::new(unused_domain());
    names_agree(&party, &party);
}

#[test]
fn a_request_has_one_name_in_two_contexts() {
    let domain = unused_domain();
    names_agree(&Party::new(domain), &Party::new(domain));
}

/// Cyclone DDS and Fast DDS send each response. The client takes the first and ignores
/// what follows it.
fn every_response_is_accepted(here: &Party, there: &Party) {
    let ty = service_type_support(Text::type_support());
    let (client, service) = (here.client(ty), there.service(ty));
    here.await_condition(|| {
        there.poll();
        is_available(here, client)
    });
    let mut requests = Vec::new();
    for id in 0..100 {
        ask(client, id);
        there.await_condition(|| {
            requests.extend(take(rmw_take_request, service).map(|(_, info)| info));
            requests.len() > id as usize
        });
    }
    let take_answer = || {
        let mut answered = None;
        here.await_condition(|| {
            answered = take(rmw_take_response, client);
            answered.is_some()
        });
        answered.unwrap().0
    };
    for (id, request) in (0..).zip(&mut requests) {
        assert_eq!(answer(service, request, id), ret::OK);
        assert_eq!(
            answer(service, request, id + 1_000),
            ret::OK,
            "a second one"
        );
        assert_eq!(take_answer(), id);
    }
    // Long after it was answered, and of clients that never asked or never were.
    assert_eq!(answer(service, &mut requests[0], 2_000), ret::OK);
    let mut never_sent = zeroed::<ServiceInfo>();
    never_sent.request_id.writer_guid = gid(client);
    never_sent.request_id.sequence_number = 5_000;
    assert_eq!(answer(service, &mut never_sent, 3_000), ret::OK);
    never_sent.request_id.writer_guid = [0xab; 16];
    assert_eq!(answer(service, &mut never_sent, 4_000), ret::OK);
    // A server that is asked meanwhile answers as before.
    ask(client, 101);
    let mut request = None;
    there.await_condition(|| {
        request = take(rmw_take_request, service);
        request.is_some()
    });
    let (_, mut request) = request.unwrap();
    assert_eq!(answer(service, &mut request, 101), ret::OK);
    assert_eq!(take_answer(), 101);
    assert!(take(rmw_take_response, client).is_none());
    here.destroy_client(client);
    there.destroy_service(service);
}

#[test]
fn a_second_response_is_sent_and_ignored_within_a_context() {
    let party = Party::new(unused_domain());
    every_response_is_accepted(&party, &party);
}

#[test]
fn a_second_response_is_sent_and_ignored_in_two_contexts() {
    let domain = unused_domain();
    every_response_is_accepted(&Party::new(domain), &Party::new(domain));
}
