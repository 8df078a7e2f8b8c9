//! Stories of contexts that another transport joins, without RTPS between them.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use pteros::config::DiscoveryRange;
use pteros::interfaces::rmw_dds_common::msg::ParticipantEntitiesInfo;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::qos::ResourceLimits;
use pteros_rtps::discovery::data::EndpointData;
use pteros_rtps::id::Guid;
use pteros_rtps::qos::Liveliness;
use pteros_rtps::time::Instant;
use pteros_runtime::transport::{
    NodeName, OpenTransport, RemoteEndpointRecord, SampleTransport, Transport, TransportEvent,
    TransportSample,
};
use pteros_sim::{Simulation, TransportBus};

const SOON: Duration = Duration::from_secs(5);

fn open(sim: &Simulation, bus: &Arc<TransportBus>, process: usize) -> Context {
    let options = ContextOptions {
        discovery_range: Some(DiscoveryRange::Off),
        transports: vec![bus.transport()],
        ..ContextOptions::default()
    };
    Context::with_platform(sim.env(process, None), options).unwrap()
}

fn text(n: usize) -> Text {
    Text {
        data: n.to_string(),
    }
}

#[test]
fn an_unplugged_context_is_lost_and_found_again_with_its_history() {
    let sim = Simulation::new(&[1, 2, 3], 1);
    let bus = TransportBus::new(Duration::from_micros(200));
    let contexts = [0, 1, 2].map(|process| open(&sim, &bus, process));
    let [talker, one, other] = ["talker", "one", "other"];
    let soon = |done: &mut dyn FnMut() -> bool| contexts[1].graph().wait_until(SOON, done);
    let nodes: Vec<Node> = contexts
        .iter()
        .zip([talker, one, other])
        .map(|(context, name)| context.create_node(name).unwrap())
        .collect();
    let latched = || "chatter".keep_last(2).transient_local();
    let publisher: Publisher<Text> = nodes[0].create_publisher(latched()).unwrap();
    let listen =
        |node: &Node| -> Subscription<Text> { node.create_polled_subscription(latched()).unwrap() };
    let (near, far) = (listen(&nodes[1]), listen(&nodes[2]));
    assert!(soon(&mut || publisher.matched_count() == 2));
    let names = |context: &Context| {
        let nodes = context.graph().nodes().into_iter();
        let mut names: Vec<String> = nodes.map(|node| node.name).collect();
        names.sort();
        names
    };
    assert!(soon(&mut || names(&contexts[1]) == [one, other, talker]));

    publisher.publish(&text(1)).unwrap();
    let next = |subscription: &Subscription<Text>| {
        let mut taken = None;
        soon(&mut || {
            taken = subscription.take().map(|sample| Text::clone(&sample));
            taken.is_some()
        });
        taken
    };
    assert_eq!([next(&near), next(&far)], [Some(text(1)), Some(text(1))]);

    bus.unplug(contexts[2].guid().prefix);
    assert!(soon(&mut || publisher.matched_count() == 1));
    assert!(soon(&mut || far.matched_count() == 0));
    assert!(soon(&mut || names(&contexts[1]) == [one, talker]));
    assert_eq!(names(&contexts[2]), [other]);
    for n in 2..=4 {
        publisher.publish(&text(n)).unwrap();
    }
    assert_eq!(next(&far), None);

    bus.plug(contexts[2].guid().prefix);
    assert!(soon(&mut || publisher.matched_count() == 2));
    for n in [3, 4] {
        assert_eq!(next(&far), Some(text(n)), "kept for late joiners");
    }
    assert!(soon(&mut || names(&contexts[1]) == [one, other, talker]));

    drop((nodes, publisher));
    assert!(soon(&mut || near.matched_count() == 0));
    assert_eq!(sim.violations(), Vec::<String>::new());
}

#[test]
fn a_context_tells_why_a_transport_did_not_open() {
    let sim = Simulation::new(&[1], 1);
    let bus = TransportBus::new(Duration::ZERO);
    let open = |transports| {
        let options = ContextOptions {
            transports,
            ..ContextOptions::default()
        };
        let opened = Context::with_platform(sim.env(0, None), options);
        opened.map(|_| ()).unwrap_err().to_string()
    };
    let broken = OpenTransport::new("uplink", |_| Err("no router at 10.0.0.1:7447".into()));
    assert_eq!(
        open(vec![bus.transport(), broken]),
        "open the transport \"uplink\": no router at 10.0.0.1:7447"
    );
    assert_eq!(
        open(vec![bus.transport(); 5]),
        "5 transports beside RTPS; a context has at most 4"
    );
}

/// A reader that has space must not let a writer go on while another has none.
#[test]
fn a_writer_waits_for_the_slower_of_two_keep_all_readers_of_a_context() {
    let sim = Simulation::new(&[1, 2], 1);
    let bus = TransportBus::new(Duration::from_micros(200));
    let [sender, receiver] = [0, 1].map(|process| open(&sim, &bus, process));
    let talker = sender.create_node("talker").unwrap();
    let listener = receiver.create_node("listener").unwrap();
    let all = QosProfile::default()
        .keep_all()
        .resource_limits(ResourceLimits {
            max_samples: Some(4),
            ..ResourceLimits::default()
        });
    let publisher: Publisher<Text> = talker.create_publisher("t".qos(&all)).unwrap();
    let listen =
        || -> Subscription<Text> { listener.create_polled_subscription("t".qos(&all)).unwrap() };
    let (fast, slow) = (listen(), listen());
    assert!(publisher.wait_for_matched(2, SOON));
    let mut sent = 0;
    while publisher.publish(&text(sent)).is_ok() {
        sent += 1;
        while fast.take().is_some() {}
    }
    assert!(sent < 100, "nobody waits for the slow one");
    // Refused once more: that the fast one has space changes nothing.
    while fast.take().is_some() {}
    assert!(publisher.publish(&text(sent)).is_err());
    for n in 0..sent {
        let sample = slow.take_timeout(SOON);
        let sample = sample.unwrap_or_else(|| panic!("{n} of {sent}: {:?}", slow.counts()));
        assert_eq!(*sample, text(n));
        while fast.take().is_some() {}
    }
    assert_eq!([slow.counts().lost, fast.counts().lost], [0, 0]);
}

/// A transport that only looks at what it is told.
#[derive(Default)]
struct Watching {
    state: Mutex<Watched>,
    changed: Condvar,
}

#[derive(Default)]
struct Watched {
    /// Nodes that have announced an endpoint.
    nodes: BTreeSet<String>,
    lists: usize,
    /// A list came after the endpoint of a node that it does not have.
    outdated: bool,
}

impl Watching {
    fn wait(&self, time: Duration, done: impl Fn(&Watched) -> bool) -> MutexGuard<'_, Watched> {
        let state = self.state.lock().unwrap();
        let waited = self
            .changed
            .wait_timeout_while(state, time, |state| !done(state));
        waited.unwrap().0
    }
}

struct WatchingTransport(Arc<Watching>);

impl Transport for WatchingTransport {
    fn name(&self) -> &'static str {
        "watching"
    }
    fn announce(&self, _now: Instant, _endpoint: &Arc<EndpointData>) {}
    fn withdraw(&self, _now: Instant, _endpoint: Guid) {}
    fn assert_liveliness(&self, _now: Instant, _kind: Liveliness) {}
    fn poll(&self, _now: Instant, _events: &mut Vec<TransportEvent>) {}
    fn for_each_endpoint(&self, _see: &mut dyn FnMut(&dyn RemoteEndpointRecord)) {}
    fn exceeded_limit(&self) -> Option<(&'static str, usize, usize)> {
        None
    }
    fn close(&self, _now: Instant) {}
}

impl SampleTransport for WatchingTransport {
    fn attach_endpoint(&self, _now: Instant, _endpoint: Guid, node: &NodeName<'_>) {
        self.0.state.lock().unwrap().nodes.insert(node.name.into());
        self.0.changed.notify_all();
    }

    fn announce_nodes(&self, _now: Instant, nodes: &ParticipantEntitiesInfo) {
        let mut state = self.0.state.lock().unwrap();
        state.lists += 1;
        self.0.changed.notify_all();
        drop(state);
        // Takes its time, in which another thread may announce a second node.
        let waiting = Duration::from_millis(300);
        let mut state = self.0.wait(waiting, |state| state.nodes.len() == 2);
        let listed = |name: &String| {
            let nodes = &nodes.node_entities_info_seq;
            nodes.iter().any(|node| node.node_name == *name)
        };
        state.outdated |= !state.nodes.iter().all(listed);
    }

    fn assert_writer(&self, _now: Instant, _writer: Guid) {}
    fn write(&self, _now: Instant, _sample: &TransportSample) {}
    fn flush(&self, _now: Instant, _writer: Guid) {}
    fn hold(&self, _writer: Guid, _holds: bool) {}
    fn has_space(&self, _writer: Guid, _bytes: usize) -> bool {
        true
    }
    fn is_acknowledged(&self, _writer: Guid) -> bool {
        true
    }
}

/// Otherwise a transport that declares a node with its first endpoint would withdraw it again.
#[test]
fn no_node_list_is_older_than_the_endpoints_before_it() {
    let watching = Arc::new(Watching::default());
    let transport = watching.clone();
    let options = ContextOptions {
        discovery_range: Some(DiscoveryRange::Off),
        transports: vec![OpenTransport::new("watching", move |_| {
            Ok(Arc::new(WatchingTransport(transport.clone())))
        })],
        ..ContextOptions::default()
    };
    let context = Context::with_options(options).unwrap();
    let one = context.create_node("one").unwrap();
    let _first: Publisher<Text> = one.create_publisher("a").unwrap();
    // The context's own thread announces the list now.
    assert!(watching.wait(SOON, |state| state.lists > 0).lists > 0);
    let two = context.create_node("two").unwrap();
    let _second: Publisher<Text> = two.create_publisher("b").unwrap();
    let state = watching.wait(SOON, |state| state.lists > 1);
    assert!(state.lists > 1 && !state.outdated);
}
