//! TypeLookup between participants (XTypes 1.3 §7.6.3.3): types offered and
//! requested.

use pteros_test_support::rtps::domain;

use domain::{Domain, address, config, endpoint, prefix};
use pteros_interfaces::nav_msgs::msg::Odometry;
use pteros_msg::Message;
use pteros_msg::typeobject::TypeObjects;
use pteros_msg::typeobject::lookup::{LookupOperation, LookupRequest, SampleIdentity};
use pteros_rtps::discovery::type_lookup::RemoteType;
use pteros_rtps::id::{EntityId, Guid};
use pteros_rtps::participant::ParticipantEvent;
use pteros_rtps::qos::EndpointQos;
use pteros_rtps::time::Duration;

/// Node 0 has a writer of odometry, announced with its type.
fn with_odometry(domain: &mut Domain) -> Guid {
    let objects = TypeObjects::new(Odometry::type_description()).unwrap();
    let machine = &mut domain.nodes[0].machine;
    machine.offer_type_lazily(Odometry::TYPE_INFORMATION, Odometry::type_description);
    let guid = domain.new_guid(0, EntityId::KIND_WRITER_NO_KEY);
    let mut data = endpoint(guid, "rt/odom", &objects.name, EndpointQos::default());
    data.type_information = Some(Odometry::TYPE_INFORMATION.into());
    domain.write_endpoint(0, data);
    domain.run_for(Duration::from_millis(500));
    guid
}

fn ask(domain: &mut Domain, node: usize, guid: Guid) -> Option<RemoteType> {
    let now = domain.now;
    let answer = domain.nodes[node].machine.remote_type(now, guid);
    domain.flush(node);
    answer
}

/// Requests a type as the owner of a participant does. Returns the answer, and the
/// number of requests.
fn request_until_known(domain: &mut Domain, guid: Guid) -> (RemoteType, usize) {
    for count in 1.. {
        match ask(domain, 1, guid) {
            Some(RemoteType::Requested) => domain.run_for(Duration::from_millis(500)),
            Some(other) => return (other, count),
            None => panic!("the endpoint is gone"),
        }
    }
    unreachable!()
}

/// The description of odometry without defaults, which TypeObjects do not carry.
fn assert_is_odometry(found: &RemoteType) {
    let RemoteType::Known(description) = found else {
        panic!("{found:?}");
    };
    let expected = Odometry::type_description();
    let names = |fields: &[pteros_msg::describe::Field]| -> Vec<String> {
        fields.iter().map(|field| field.name.clone()).collect()
    };
    let own = &description.type_description;
    assert_eq!(own.type_name, "nav_msgs/msg/Odometry");
    assert_eq!(names(&own.fields), names(&expected.type_description.fields));
    assert_eq!(description.referenced.len(), expected.referenced.len());
}

#[test]
fn a_peer_that_does_not_know_a_type_requests_it_and_gets_it() {
    let mut domain = Domain::met(2);
    let guid = with_odometry(&mut domain);
    assert_eq!(ask(&mut domain, 1, guid), Some(RemoteType::Requested));
    domain.run_for(Duration::from_millis(50));
    let events = &domain.nodes[1].events;
    assert!(
        events.contains(&ParticipantEvent::TypeObjectsReceived),
        "{events:?}"
    );
    let found = ask(&mut domain, 1, guid).unwrap();
    assert_is_odometry(&found);
}

#[test]
fn a_type_is_received_at_33_percent_loss() {
    for seed in 1..20 {
        let mut domain = Domain::new(seed);
        domain.join(config(0, 0));
        domain.join(config(1, 0));
        domain.run_for(Duration::from_millis(500));
        let guid = with_odometry(&mut domain);
        domain.loss = 33;
        let (found, _) = request_until_known(&mut domain, guid);
        assert_is_odometry(&found);
    }
}

/// TypeObjects are charged to the memory of the peer that sent them.
#[test]
fn type_objects_take_receive_memory_and_are_refused_without_it() {
    let records = |memory: Option<usize>| {
        let mut domain = Domain::new(1);
        domain.join(config(0, 0));
        let mut small = config(1, 0);
        if let Some(bytes) = memory {
            small.limits.participant_memory_bytes = bytes;
        }
        domain.join(small);
        domain.run_for(Duration::from_millis(500));
        let guid = with_odometry(&mut domain);
        let used = |domain: &Domain| domain.nodes[1].machine.receive_memory_use().records;
        let before = used(&domain);
        let (found, _) = request_until_known(&mut domain, guid);
        (found, before, used(&domain) - before)
    };
    let (found, before, taken) = records(None);
    assert_is_odometry(&found);
    assert!((500..50_000).contains(&taken), "{taken} bytes");
    // An eighth of the memory is for records: half of the objects find it.
    let (found, ..) = records(Some(8 * (before + taken / 2)));
    assert_eq!(found, RemoteType::TimedOut);
}

#[test]
fn a_peer_that_never_answers_gets_four_requests() {
    let mut domain = Domain::met(2);
    let guid = with_odometry(&mut domain);
    domain.cuts = vec![(0, 1)];
    let (found, count) = request_until_known(&mut domain, guid);
    assert_eq!((found, count), (RemoteType::TimedOut, 5));
}

#[test]
fn a_peer_without_type_information_gets_no_request() {
    let mut domain = Domain::met(2);
    let guid = domain.add_writer(0, "rt/odom", EndpointQos::default());
    domain.run_for(Duration::from_millis(500));
    assert_eq!(ask(&mut domain, 1, guid), Some(RemoteType::NotAnnounced));
}

#[test]
fn only_the_requesting_peer_gets_the_reply() {
    let mut domain = Domain::met(3);
    let guid = with_odometry(&mut domain);
    let before = domain.sent.get(&address(2)).copied();
    assert_eq!(ask(&mut domain, 1, guid), Some(RemoteType::Requested));
    domain.run_for(Duration::from_millis(50));
    let after = domain.sent.get(&address(2)).copied();
    let bytes = |sent: Option<(usize, usize)>| sent.map_or(0, |(_, bytes)| bytes);
    assert!(bytes(after) - bytes(before) < 1_000, "{before:?} {after:?}");
}

/// DATA with that number of node 1's request writer, then its HEARTBEAT.
fn request_datagram(number: u32, payload: &[u8]) -> Vec<u8> {
    let ids = [
        EntityId::TYPE_REQUEST_READER.to_bytes(),
        EntityId::TYPE_REQUEST_WRITER.to_bytes(),
    ]
    .concat();
    let first = [[0; 4], 1_u32.to_le_bytes()].concat();
    let count = number.to_le_bytes();
    let number = [[0; 4], count].concat();
    let data = [&[0, 0, 16, 0], &ids[..], &number, payload].concat();
    let heartbeat = [&ids[..], &first, &number, &count].concat();
    let submessage = |id: u8, flags: u8, content: &[u8]| {
        let length = u16::try_from(content.len()).unwrap().to_le_bytes();
        [&[id, flags, length[0], length[1]], content].concat()
    };
    [
        &b"RTPS\x02\x03\x01\x50"[..],
        &prefix(1, 0).0,
        &submessage(0x15, 5, &data),
        &submessage(0x07, 1, &heartbeat),
    ]
    .concat()
}

#[test]
fn a_thousand_repeats_of_a_request_get_one_answer() {
    let mut domain = Domain::met(2);
    with_odometry(&mut domain);
    let objects = TypeObjects::new(Odometry::type_description()).unwrap();
    let request = LookupRequest {
        identity: SampleIdentity::default(),
        instance: String::new(),
        operation: LookupOperation::Types,
        ids: vec![objects.own.complete.id; 1_000],
    };
    let sent = |domain: &Domain| domain.sent.get(&address(1)).map_or(0, |(_, bytes)| *bytes);
    let before = sent(&domain);
    let datagram = request_datagram(1, &request.encode());
    domain.deliver(0, Some(address(1)), &datagram);
    domain.flush(0);
    let bytes = sent(&domain) - before;
    assert!((300..2_000).contains(&bytes), "{bytes} bytes");
}

#[test]
fn a_burst_of_requests_loses_no_reply() {
    let mut domain = Domain::met(2);
    with_odometry(&mut domain);
    let objects = TypeObjects::new(Odometry::type_description()).unwrap();
    let sent = |domain: &Domain| domain.sent.get(&address(1)).map_or(0, |(_, bytes)| *bytes);
    let before = sent(&domain);
    for number in 1..=500 {
        let request = LookupRequest {
            identity: SampleIdentity::default(),
            instance: String::new(),
            operation: LookupOperation::Types,
            ids: vec![objects.own.complete.id],
        };
        let datagram = request_datagram(number, &request.encode());
        domain.deliver(0, Some(address(1)), &datagram);
    }
    domain.flush(0);
    domain.run_for(Duration::from_secs(1));
    let bytes = sent(&domain) - before;
    assert!(bytes >= 500 * 300, "{bytes} bytes");
}

#[test]
fn an_unmatched_peer_gets_no_reply() {
    let mut domain = Domain::met(2);
    with_odometry(&mut domain);
    let objects = TypeObjects::new(Odometry::type_description()).unwrap();
    let request = LookupRequest {
        identity: SampleIdentity::default(),
        instance: String::new(),
        operation: LookupOperation::Types,
        ids: vec![objects.own.complete.id],
    };
    let mut datagram = request_datagram(1, &request.encode());
    datagram[8..20].copy_from_slice(&prefix(9, 9).0);
    let before = domain.datagrams;
    domain.deliver(0, Some(address(7)), &datagram);
    domain.flush(0);
    assert_eq!(domain.datagrams, before);
}
