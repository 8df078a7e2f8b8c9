//! Tests of plans: single bridges, and networks of bridges.

use std::collections::BTreeMap;
use std::sync::Arc;

use pteros_rtps::id::{EntityId, GuidPrefix};
use pteros_rtps::participant::ParticipantLimits;

use super::super::rules::{ENDPOINTS_MAX, RuleOptions};
use super::*;
use crate::key::{Place, request_names, topic_names};

const TEXT: &str = "std_msgs::msg::dds_::String_";
const ADD: &str = "example_interfaces::srv::dds_::AddTwoInts_";
const OWN: BridgeId = BridgeId(5);

fn path(ids: &[u32]) -> BridgePath {
    let start = BridgePath::default();
    ids.iter()
        .fold(start, |path, id| path.through(BridgeId(*id)).unwrap())
}

fn guid(participant: u8, number: u8, kind: u8) -> Guid {
    GuidPrefix([participant; 12]).with(EntityId::new([0, 0, number], kind))
}

fn hash_entry() -> String {
    format!("typehash={};", TypeHash::rihs01([7; 32]))
}

fn seen(guid: Guid, (topic, type_name): (String, String), ids: &[u32]) -> SeenEndpoint {
    let mut user_data = hash_entry();
    if !ids.is_empty() {
        user_data += &path(ids).user_data();
    }
    let qos = EndpointQos {
        user_data: user_data.into_bytes(),
        ..EndpointQos::default()
    };
    let data = Arc::new(EndpointData::new(guid, &topic, &type_name, qos));
    SeenEndpoint {
        place: Place::of(&data).unwrap(),
        path: BridgePath::of_endpoint(&data),
        vendor: VendorId::CYCLONE,
        data,
    }
}

fn publisher(participant: u8, name: &str, ids: &[u32]) -> SeenEndpoint {
    let guid = guid(participant, 1, EntityId::KIND_WRITER_NO_KEY);
    seen(guid, topic_names(name, TEXT), ids)
}

fn server(participant: u8, name: &str, ids: &[u32]) -> SeenEndpoint {
    let guid = guid(participant, 2, EntityId::KIND_READER_NO_KEY);
    seen(guid, request_names(name, ADD), ids)
}

fn view(endpoints: Vec<SeenEndpoint>, bridges: &[u32]) -> SideView {
    let bridges: BTreeSet<BridgeId> = bridges.iter().map(|id| BridgeId(*id)).collect();
    SideView {
        participants: endpoints.iter().map(|of| of.data.guid.prefix).collect(),
        known: bridges.clone(),
        bridges,
        endpoints,
    }
}

fn plan_of(own: BridgeId, options: &RuleOptions, rtps: &SideView, zenoh: &SideView) -> Plan {
    let rules = Rules::new(options.clone()).unwrap();
    let planner = Planner {
        own,
        rules: &rules,
        find_hash: &|_| None,
        age: &|_, _| STANDBY_DELAY,
    };
    planner.plan(rtps, zenoh)
}

/// Fewer than a bridge makes without options, so that crowds are small.
const BUDGET: usize = 880;

fn budgeted() -> RuleOptions {
    RuleOptions {
        endpoints_max: Some(BUDGET),
        ..RuleOptions::default()
    }
}

fn plan(rtps: &SideView, zenoh: &SideView) -> Plan {
    plan_of(OWN, &budgeted(), rtps, zenoh)
}

/// Regression: `rt/x$*` became a wildcard, which rules for `/x` do not select.
#[test]
fn names_that_are_none_of_ros_become_no_keys() {
    let long = format!("/{}", "a".repeat(10_000));
    let odd = "/x$*|/**|/*|/a/*/b|/a/**|/$*|/a$*b|/a//b|//|/a/|/a#|/#/b|/a?b|/a?_max=1|/@adv\
        |/a/@adv/pub|/a%b|/a b|/a\0b|/a\nb|/~/a|/{a}|/1a|/a;b|/\u{e9}|/a\u{200b}|/\u{1f600}/b";
    for name in odd.split('|').chain([&*long]) {
        for side in Side::BOTH {
            let here = view(vec![publisher(1, name, &[]), server(2, name, &[])], &[]);
            let empty = view(Vec::new(), &[]);
            let plan = match side {
                Side::Rtps => plan(&here, &empty),
                Side::Zenoh => plan(&empty, &here),
            };
            assert!(plan.topics.is_empty() && plan.services.is_empty(), "{name}");
            assert_eq!(plan.refused.len(), 2, "{name}");
        }
    }
    let odd_type = seen(
        guid(1, 1, EntityId::KIND_WRITER_NO_KEY),
        topic_names("/x", "a/**"),
        &[],
    );
    let found = plan(&view(vec![odd_type], &[]), &view(Vec::new(), &[]));
    assert!(found.topics.is_empty() && found.refused.len() == 1);
}

/// A participant with many publishers and servers.
fn crowd(participant: u8, publishers: u16, servers: u16) -> Vec<SeenEndpoint> {
    let guid = |number: u16, kind| {
        let [high, low] = number.to_be_bytes();
        GuidPrefix([participant; 12]).with(EntityId::new([kind, high, low], kind))
    };
    let publisher = |at| {
        let names = topic_names(&format!("/of_{participant}_t{at}"), TEXT);
        seen(guid(at, EntityId::KIND_WRITER_NO_KEY), names, &[])
    };
    let server = |at| {
        let names = request_names(&format!("/of_{participant}_{at}"), ADD);
        seen(guid(at, EntityId::KIND_READER_NO_KEY), names, &[])
    };
    let servers = (0..servers).map(server);
    (0..publishers).map(publisher).chain(servers).collect()
}

/// Endpoints of a plan by the participant that they come from.
fn endpoints_of(plan: &Plan, participant: u8) -> usize {
    let is_of_it = |key: &&RouteKey| match key {
        RouteKey::Topic((_, origin)) => origin.prefix == GuidPrefix([participant; 12]),
        RouteKey::Service(key) => key.name.starts_with(&format!("/of_{participant}_")),
    };
    let keys = plan.order.iter().filter(is_of_it);
    keys.map(RouteKey::endpoints).sum()
}

#[test]
fn no_participant_takes_the_endpoints_that_one_with_fewer_needs() {
    // Publishers and servers of each participant, and endpoints of its routes.
    let cases: [&[(u16, u16, usize)]; 7] = [
        &[(2_100, 0, 875), (1, 2, 5)],
        &[(0, 1_100, 862), (18, 0, 18)],
        &[(901, 877, 866), (2, 1, 4), (0, 5, 10)],
        // The bridge has room for all.
        &[(300, 90, 480), (150, 125, 400)],
        // Two with as many, and one that leaves its share to them.
        &[(1_300, 0, 390), (777, 0, 390), (100, 0, 100)],
        &[(441, 0, 440), (440, 0, 440)],
        &[(0, 500, 440), (1_000, 0, 440)],
    ];
    for (case, side) in cases
        .into_iter()
        .flat_map(|of| Side::BOTH.map(|side| (of, side)))
    {
        let crowds = (1..).zip(case);
        let endpoints =
            crowds.flat_map(|(at, (publishers, servers, _))| crowd(at, *publishers, *servers));
        let here = view(endpoints.collect(), &[]);
        let plan = match side {
            Side::Rtps => plan(&here, &view(Vec::new(), &[])),
            Side::Zenoh => plan(&view(Vec::new(), &[]), &here),
        };
        assert_eq!(plan.order.len(), plan.topics.len() + plan.services.len());
        for (at, (publishers, servers, routed)) in (1..).zip(case) {
            assert_eq!(endpoints_of(&plan, at), *routed, "{at} of {case:?}");
            let all = usize::from(*publishers) + 2 * usize::from(*servers);
            let above = plan.above_share.get(&(side, GuidPrefix([at; 12])));
            assert_eq!(above.is_some(), all > *routed, "{at} of {case:?}");
            let Some(above) = above else { continue };
            let reason = &above.example.reason;
            let says = |words: &str| assert!(reason.contains(words), "{reason}");
            says(&format!("participant {}", GuidPrefix([at; 12])));
            says("880 endpoints");
            says("another bridge");
        }
        let left_out = usize::from(
            case.iter()
                .map(|(of, servers, _)| of + servers)
                .sum::<u16>(),
        ) - plan.order.len();
        let counted: usize = plan.above_share.values().map(|of| of.count).sum();
        assert_eq!(counted, left_out);
    }
}

/// A participant that has been routed keeps its older routes when others come.
#[test]
fn the_newest_routes_of_the_greediest_participant_are_left_out() {
    let rules = Rules::new(budgeted()).unwrap();
    let number =
        |guid: Guid| i64::from(u16::from_be_bytes([guid.entity.key[1], guid.entity.key[2]]));
    // Endpoints with high numbers are older, and the modest participant is the newest.
    let age = |_, guid: Guid| match guid.prefix {
        GuidPrefix([1, ..]) => Duration::from_millis(10_000 + number(guid)),
        _ => Duration::from_millis(10),
    };
    let planner = Planner {
        own: OWN,
        rules: &rules,
        find_hash: &|_| None,
        age: &age,
    };
    let mut endpoints = crowd(1, 1_000, 0);
    endpoints.extend(crowd(2, 13, 3));
    let plan = planner.plan(&view(Vec::new(), &[]), &view(endpoints, &[]));
    assert_eq!(endpoints_of(&plan, 2), 19);
    let left = plan
        .topics
        .keys()
        .filter(|(_, origin)| origin.prefix == GuidPrefix([1; 12]));
    let mut left: Vec<i64> = left.map(|(_, origin)| number(*origin)).collect();
    left.sort_unstable();
    assert_eq!(left, (1_000 - 861..1_000).collect::<Vec<_>>());
}

/// Regression: services began in the order of their names, so that the ones of a participant
/// with thousands delayed the one of another.
#[test]
fn a_service_begins_in_its_participants_turn_whoever_else_serves_it() {
    let mut endpoints = crowd(9, 0, 700);
    endpoints.push(server(10, "/zone", &[]));
    // The crowd serves it as well.
    endpoints.push(server(9, "/zone", &[]));
    let plan = plan(&view(Vec::new(), &[]), &view(endpoints, &[]));
    let is_zone = |key: &RouteKey| matches!(key, RouteKey::Service(key) if key.name == "/zone");
    assert!(plan.order.iter().position(is_zone).unwrap() < 2);
    assert_eq!(plan.order.len(), BUDGET / 2);
}

/// A Pteros peer accepts all endpoints of a bridge, also while some are replaced.
#[test]
fn a_peer_accepts_the_endpoints_of_a_bridge() {
    let own = 16;
    let all = ENDPOINTS_MAX + super::super::routes::BEGUN_PER_LOOK + own;
    assert!(all <= ParticipantLimits::default().endpoints_per_participant);
}

/// The bridge with the larger id routes the names of which the first one routes nothing.
#[test]
fn a_parallel_bridge_routes_the_names_above_the_limit_of_the_first() {
    let zenoh = view(crowd(9, 1_100, 40), &[1, OWN.0]);
    let first = plan_of(
        BridgeId(1),
        &budgeted(),
        &view(Vec::new(), &[1, OWN.0]),
        &zenoh,
    );
    assert_eq!(first.above_share.len(), 1);
    let announced = |key: &RouteKey| match key {
        RouteKey::Topic(key) => {
            let wanted = &first.topics[key];
            let origin = Guid {
                prefix: GuidPrefix([1; 12]),
                ..key.1
            };
            seen(origin, topic_names(&wanted.name_there, TEXT), &[1])
        }
        RouteKey::Service(key) => server(1, &key.name, &[1]),
    };
    let rtps = view(first.order.iter().map(announced).collect(), &[1, OWN.0]);
    let second = plan(&rtps, &zenoh);
    assert!(second.above_share.is_empty());
    let both = first.order.iter().chain(&second.order);
    let both: BTreeSet<&RouteKey> = both.collect();
    assert_eq!(both.len(), 1_100 + 40);
    assert_eq!(first.order.len() + second.order.len(), both.len());
}

#[test]
fn publishers_and_servers_of_each_side_are_wanted_on_the_other() {
    let rtps = view(
        vec![publisher(1, "/chatter", &[]), server(1, "/add", &[])],
        &[],
    );
    let zenoh = view(
        vec![publisher(2, "/r1/cmd", &[]), publisher(3, "/other", &[])],
        &[],
    );
    let options = RuleOptions {
        namespace: "/r1".into(),
        ..RuleOptions::default()
    };
    let plan = plan_of(OWN, &options, &rtps, &zenoh);
    let names = plan.topics.iter().map(|((side, _), of)| {
        (
            *side,
            of.name.as_str(),
            of.name_there.as_str(),
            of.rtps_name.as_str(),
        )
    });
    let expected = [
        (Side::Rtps, "/chatter", "/r1/chatter", "/chatter"),
        (Side::Zenoh, "/r1/cmd", "/cmd", "/cmd"),
    ];
    assert!(names.eq(expected));
    assert!(plan.topics.values().all(|of| of.path == path(&[OWN.0])));
    let (key, service) = plan.services.first_key_value().unwrap();
    assert_eq!((key.side, key.name.as_str()), (Side::Rtps, "/add"));
    assert_eq!(service.name_there, "/r1/add");
    assert_eq!(service.hash, Some(TypeHash::rihs01([7; 32])));
}

#[test]
fn nothing_comes_back() {
    // Endpoints of this bridge, those that another bridge made of something routed
    // before, and those of a process on both sides.
    let cases = [
        (publisher(1, "/a", &[1, OWN.0, 2]), view(vec![], &[])),
        (publisher(1, "/a", &[1, 2]), view(vec![], &[1])),
        (publisher(1, "/a", &[1, 2]), view(vec![], &[2])),
        (
            publisher(1, "/a", &[]),
            view(vec![publisher(1, "/b", &[])], &[]),
        ),
    ];
    for (seen, there) in cases {
        let here = view(vec![seen.clone()], &[]);
        for plan in [plan(&here, &there), plan(&there, &here)] {
            let is_routed = plan.topics.keys().any(|(_, guid)| *guid == seen.data.guid);
            assert!(!is_routed || seen.place.name == "/b", "{:?}", seen.path);
        }
    }
    // A path of bridges on other networks does not prevent routing.
    let far = view(vec![publisher(1, "/a", &[1, 2])], &[2]);
    let plan = plan(&far, &view(vec![], &[]));
    assert_eq!(
        plan.topics.values().next().unwrap().path,
        path(&[1, 2, OWN.0])
    );
}

#[test]
fn the_smallest_of_parallel_bridges_routes_and_another_takes_over() {
    let rtps = view(vec![publisher(1, "/a", &[])], &[1, OWN.0]);
    let made = view(vec![publisher(2, "/a", &[1])], &[1, OWN.0]);
    assert!(plan(&rtps, &made).topics.is_empty());
    // It does not prevent this one.
    let empty = view(vec![], &[1, OWN.0]);
    assert_eq!(plan(&rtps, &empty).topics.len(), 1);
    // A bridge with a larger id is about to detect that it has to stand by.
    let younger = view(vec![publisher(2, "/a", &[9])], &[9]);
    let both = view(vec![publisher(1, "/a", &[])], &[9]);
    assert_eq!(plan(&both, &younger).topics.len(), 1);
    // It has lost one side, while its endpoints are still announced on the other.
    let gone = view(vec![publisher(2, "/a", &[1])], &[1]);
    let mut left = view(vec![publisher(1, "/a", &[])], &[]);
    left.known.insert(BridgeId(1));
    assert_eq!(plan(&left, &gone).topics.len(), 1);
}

#[test]
fn a_parallel_bridge_with_a_smaller_id_is_given_time() {
    let rules = Rules::new(RuleOptions::default()).unwrap();
    let planner = |own| Planner {
        own,
        rules: &rules,
        find_hash: &|_| None,
        age: &|_, _| Duration::ZERO,
    };
    let rtps = view(vec![publisher(1, "/a", &[]), server(1, "/b", &[])], &[1]);
    let zenoh = view(vec![], &[1]);
    let waits = planner(OWN).plan(&rtps, &zenoh);
    assert!(waits.topics.is_empty() && waits.services.is_empty() && waits.is_waiting);
    let first = planner(BridgeId(0)).plan(&rtps, &zenoh);
    assert!(first.topics.len() == 1 && first.services.len() == 1 && !first.is_waiting);
}

#[test]
fn a_request_goes_to_the_nearest_server_only() {
    let own = view(vec![server(1, "/add", &[])], &[]);
    assert_eq!(plan(&own, &view(vec![], &[])).services.len(), 1);
    // Another server of that name: each side has its own.
    let other = view(vec![server(2, "/add", &[])], &[]);
    assert!(plan(&own, &other).services.is_empty());
    // The same server by another path: the shorter path wins, then the smaller ids.
    for (there, is_served) in [
        (vec![1], true),
        (vec![9], false),
        (vec![1, 2], false),
        (vec![9, 1], false),
    ] {
        let made = view(vec![server(2, "/add", &there)], &[7]);
        let here = view(vec![server(1, "/add", &[])], &[1, 9]);
        assert_eq!(
            plan(&here, &made).services.is_empty(),
            is_served,
            "{there:?}"
        );
    }
    // Its bridge has lost this side.
    let stale = view(vec![server(2, "/add", &[1])], &[1]);
    assert_eq!(plan(&own, &stale).services.len(), 1);
}

#[test]
fn what_cannot_be_routed_is_refused_with_a_reason() {
    let mut keyed = publisher(1, "/a", &[]);
    let mut data = EndpointData::clone(&keyed.data);
    data.guid.entity.kind = EntityId::KIND_WRITER_WITH_KEY;
    keyed.data = Arc::new(data);
    let change = |change: &dyn Fn(&mut EndpointQos)| {
        let mut seen = publisher(1, "/a", &[]);
        let mut data = EndpointData::clone(&seen.data);
        change(&mut data.qos);
        seen.data = Arc::new(data);
        seen
    };
    let far = publisher(1, "/a", &[10, 11, 12, 13, 14, 15, 16, 17]);
    for (seen, word) in [
        (keyed, "key"),
        (change(&|qos| qos.partition = vec!["p".into()]), "partition"),
        (
            change(&|qos| qos.ownership = Ownership::Exclusive),
            "exclusive",
        ),
        (change(&|qos| qos.presentation.coherent = true), "coherent"),
        (change(&|qos| qos.user_data.clear()), "type hash"),
        (far, "8 bridges"),
    ] {
        let plan = plan(&view(vec![seen], &[]), &view(vec![], &[]));
        assert!(plan.topics.is_empty(), "{word}");
        let refused: Vec<_> = plan.refused.iter().map(|of| of.reason.as_str()).collect();
        assert!(
            refused.len() == 1 && refused[0].contains(word),
            "{word}: {refused:?}"
        );
    }
    let mut hostile = publisher(1, "/a", &[]);
    hostile.path = None;
    let plan = plan(&view(vec![hostile], &[]), &view(vec![], &[]));
    assert!(plan.topics.is_empty() && plan.refused.is_empty());
}

#[test]
fn a_publisher_keeps_its_qos() {
    let origin = EndpointQos {
        reliability: Reliability::Reliable,
        durability: Durability::TransientLocal,
        history: History::KeepLast(1),
        lifespan: pteros_rtps::time::Duration::from_secs(3),
        deadline: pteros_rtps::time::Duration::from_secs(2),
        liveliness: Liveliness::ManualByTopic,
        ..EndpointQos::default()
    };
    let made = publisher_qos(&origin, VendorId::CYCLONE, b"x");
    assert_eq!(made.durability, Durability::TransientLocal);
    assert_eq!(made.history, History::KeepLast(1));
    assert_eq!(
        (made.lifespan, made.deadline),
        (origin.lifespan, origin.deadline)
    );
    assert_eq!(made.liveliness, Liveliness::Automatic);
    // Fast DDS announces no depth.
    let made = publisher_qos(&origin, VendorId::FAST_DDS, b"x");
    assert_eq!(made.history, History::KeepLast(DEPTH_UNKNOWN));
    let volatile = EndpointQos {
        reliability: Reliability::BestEffort,
        durability: Durability::Volatile,
        ..origin
    };
    let made = publisher_qos(&volatile, VendorId::CYCLONE, b"x");
    assert_eq!(made.reliability, Reliability::BestEffort);
    assert_eq!(made.history, History::KeepLast(DEPTH_MIN));
    let forever = EndpointQos {
        durability: Durability::Persistent,
        history: History::KeepAll,
        ..volatile
    };
    let made = publisher_qos(&forever, VendorId::CYCLONE, b"x");
    assert_eq!(made.durability, Durability::TransientLocal);
    assert_eq!(made.history, History::KeepLast(DEPTH_MAX));
}

/// Networks (even numbers RTPS, odd ones Zenoh) and bridges between two of them each.
struct World {
    bridges: Vec<(BridgeId, [usize; 2])>,
    /// Endpoints of others per network: the paths of one name.
    paths: Vec<Vec<BridgePath>>,
}

impl World {
    fn new(networks: usize, bridges: &[(u32, [usize; 2])]) -> Self {
        Self {
            bridges: bridges
                .iter()
                .map(|(id, ends)| (BridgeId(*id), *ends))
                .collect(),
            paths: vec![Vec::new(); networks],
        }
    }

    fn view(&self, network: usize, role: Role, own: BridgeId) -> SideView {
        let paths = self.paths[network].iter();
        let others = paths.filter(|path| path.ids().last() != Some(&own));
        let endpoints = others.enumerate().map(|(at, path)| {
            let ids: Vec<u32> = path.ids().iter().map(|id| id.0).collect();
            // A process of its own.
            let participant = u8::try_from(network * 50 + at).unwrap();
            match role {
                Role::Publisher => publisher(participant, "/a", &ids),
                _ => server(participant, "/a", &ids),
            }
        });
        let endpoints = endpoints.collect();
        let here = |(_, ends): &&(BridgeId, [usize; 2])| ends.contains(&network);
        let bridges = self
            .bridges
            .iter()
            .filter(here)
            .filter(|(id, _)| *id != own);
        let bridges: Vec<u32> = bridges.map(|(id, _)| id.0).collect();
        view(endpoints, &bridges)
    }

    /// Reconciles all bridges until nothing changes, in the given or the reverse order.
    fn settle(&mut self, role: Role, natives: &[usize], is_reversed: bool) {
        let native = |network| natives.contains(&network).then(BridgePath::default);
        let mut made: BTreeMap<BridgeId, [Vec<BridgePath>; 2]> = BTreeMap::new();
        for round in 0.. {
            assert!(round < 20, "it does not settle: {:?}", self.paths);
            let before = self.paths.clone();
            let mut order = self.bridges.clone();
            if is_reversed {
                order.reverse();
            }
            for (id, ends) in order {
                let [rtps, zenoh] = ends.map(|network| self.view(network, role, id));
                let plan = plan_of(id, &RuleOptions::default(), &rtps, &zenoh);
                let mut of_it: [Vec<BridgePath>; 2] = [Vec::new(), Vec::new()];
                for ((side, _), wanted) in &plan.topics {
                    of_it[usize::from(*side == Side::Rtps)].push(wanted.path.clone());
                }
                for (key, wanted) in &plan.services {
                    of_it[usize::from(key.side == Side::Rtps)].push(wanted.path.clone());
                }
                made.insert(id, of_it);
                for network in 0..self.paths.len() {
                    let mut all: Vec<BridgePath> = native(network).into_iter().collect();
                    for (id, ends) in &self.bridges {
                        for (end, at) in ends.iter().enumerate() {
                            let of_it = made.get(id).filter(|_| *at == network);
                            all.extend(of_it.into_iter().flat_map(|of| of[end].clone()));
                        }
                    }
                    self.paths[network] = all;
                }
            }
            if self.paths == before {
                return;
            }
        }
    }
}

const ROLES: [Role; 2] = [Role::Publisher, Role::Server];

#[test]
fn a_ring_of_bridges_ends_and_brings_nothing_back() {
    // RTPS 0, Zenoh 1, RTPS 2, Zenoh 3.
    let ring = [(4, [0, 1]), (3, [2, 1]), (2, [2, 3]), (1, [0, 3])];
    for (role, is_reversed) in ROLES.into_iter().flat_map(|r| [(r, false), (r, true)]) {
        let mut world = World::new(4, &ring);
        world.settle(role, &[0], is_reversed);
        let counts: Vec<usize> = world.paths.iter().map(Vec::len).collect();
        match role {
            // Once by either direction of the ring, and only the origin in its own
            // network.
            Role::Publisher => assert_eq!(counts, [1, 2, 2, 2]),
            _ => assert_eq!(counts, [1, 1, 1, 1], "{:?}", world.paths),
        }
    }
}

#[test]
fn parallel_bridges_make_one_of_each() {
    for count in 2..=4 {
        let bridges: Vec<(u32, [usize; 2])> = (1..=count).map(|id| (id, [0, 1])).collect();
        for (role, is_reversed) in ROLES.into_iter().flat_map(|r| [(r, false), (r, true)]) {
            let mut world = World::new(2, &bridges);
            world.settle(role, &[0], is_reversed);
            assert_eq!(world.paths, [vec![path(&[])], vec![path(&[1])]], "{role:?}");
            // The first bridge ends.
            world.bridges.remove(0);
            world.settle(role, &[0], is_reversed);
            assert_eq!(world.paths[1], [path(&[2])], "{role:?}");
        }
    }
}

#[test]
fn a_star_joins_every_robot_with_the_cloud() {
    // Zenoh 1 in the middle, three robots, and parallel bridges to one of them.
    let star = [(1, [0, 1]), (2, [2, 1]), (3, [4, 1]), (4, [4, 1])];
    for is_reversed in [false, true] {
        let mut world = World::new(5, &star);
        world.settle(Role::Publisher, &[0, 4], is_reversed);
        assert_eq!(world.paths[1], [path(&[1]), path(&[3])]);
        assert_eq!(world.paths[0], [path(&[]), path(&[3, 1])]);
        assert_eq!(world.paths[2], [path(&[1, 2]), path(&[3, 2])]);
        assert_eq!(world.paths[4], [path(&[]), path(&[1, 3])]);
    }
}
