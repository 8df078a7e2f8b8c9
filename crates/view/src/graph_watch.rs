//! Graph watch: a thread that follows the graph while someone looks, and tells the viewers
//! of channels, the connection graph and statistics.
//!
//! It alone waits for type descriptions, so that neither messages nor viewers wait for them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pteros::interfaces::rosgraph_msgs::msg::Clock;
use pteros::msg::dynamic::DynamicType;
use pteros::msg::hash::rihs01;
use pteros::type_description::definition_text;
use pteros::{NamedQosExt, Sample, Subscription};

use crate::channel::{ChannelKey, NewChannel};
use crate::client::Client;
use crate::connection_graph::ConnectionGraph;
use crate::feed::Offer;
use crate::graph_snapshot::GraphSnapshot;
use crate::options::CHANNELS_MAX;
use crate::protocol;
use crate::server::Server;
use crate::statistics::Statistics;

/// Shortest time between two looks at the graph. A flood of announcements changes it all
/// the time.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
/// Time between two reports of statistics.
const STATISTICS_PERIOD: Duration = Duration::from_secs(1);
/// Timeout for the description of a type.
const TYPE_TIMEOUT: Duration = Duration::from_millis(500);
/// Simulated time, as ROS 2 names it.
const CLOCK_TOPIC: &str = "/clock";

/// Follows the graph until the server ends.
pub fn run(server: &Arc<Server>) {
    let mut revision = None;
    let mut clock = None;
    let mut statistics = Statistics::default();
    let mut next_statistics = Instant::now();
    loop {
        if !server.has_viewers() {
            // Nothing is read, and simulated time is not subscribed to.
            clock = None;
            revision = None;
        }
        if !server.wait_for_viewers() {
            return;
        }
        let now = server.graph.revision();
        if revision != Some(now) {
            revision = Some(now);
            look(server);
            follow_clock(server, &mut clock);
        }
        if Instant::now() >= next_statistics {
            next_statistics = Instant::now() + STATISTICS_PERIOD;
            statistics.report(server, now);
            server.report_skipped();
        }
        server.pause(LOOK_PERIOD);
    }
}

/// Brings all viewers up to date.
fn look(server: &Arc<Server>) {
    let filter = &server.options.filter;
    let snapshot = Arc::new(GraphSnapshot::read(&server.graph, &server.node, filter));
    server.set_snapshot(snapshot.clone());
    follow_offers(server, &snapshot);
    let keys = snapshot.channel_keys();
    let (gone, new) = server.with_channels(|channels, viewers| {
        let gone = channels.retain(&keys);
        if !gone.is_empty() {
            let ids: Vec<u32> = gone.iter().map(|channel| channel.id).collect();
            viewers.broadcast(&protocol::unadvertise(&ids));
        }
        let unknown = keys.iter().filter(|key| !channels.contains(key));
        (gone, unknown.cloned().collect::<Vec<ChannelKey>>())
    });
    let feeds = gone.iter().flat_map(|channel| channel.feeds());
    feeds.for_each(|feed| feed.end());
    // Those with a definition first, at once; nobody waits for the descriptions of others.
    let described = new
        .iter()
        .map(|key| (key, known_definition(server, &snapshot, key)));
    let (known, unknown): (Vec<_>, Vec<_>) = described.partition(|(_, schema)| schema.is_some());
    advertise(
        server,
        known
            .into_iter()
            .map(|(key, schema)| new_channel(&snapshot, key, schema)),
    );
    for (key, _) in unknown {
        if server.is_stopped() {
            return;
        }
        let fetched = server.node.fetch_topic_type(&key.0, TYPE_TIMEOUT);
        let schema = fetched
            .inspect_err(|error| tracing::debug!("type of {}: {error}", key.0))
            .ok()
            .filter(|ty| ty.name() == key.1)
            .map(|ty| text_of(server, &ty));
        advertise(server, [new_channel(&snapshot, key, schema)].into_iter());
    }
    report_connections(server, &snapshot);
    if server.options.allowed.services {
        server.with_viewers(|viewers| {
            let changes = viewers.services.update(&server.options.library, &snapshot);
            changes
                .iter()
                .for_each(|message| viewers.broadcast(message));
        });
    }
}

/// Tells the viewers that want it how nodes are connected now.
fn report_connections(server: &Server, snapshot: &GraphSnapshot) {
    let now = ConnectionGraph::of(snapshot);
    server.with_viewers(|viewers| {
        let before = std::mem::replace(&mut viewers.connections, now);
        if before == viewers.connections {
            return;
        }
        let message = viewers.connections.update_since(&before);
        let clients = viewers.clients.values();
        for client in clients.filter(|client| Client::wants(&client.wants_graph)) {
            client.outbox.send(message.clone());
        }
    });
}

fn text_of(server: &Server, ty: &DynamicType) -> String {
    definition_text(&ty.description(), &server.options.library)
}

fn new_channel(snapshot: &GraphSnapshot, key: &ChannelKey, schema: Option<String>) -> NewChannel {
    let publishers = snapshot.publishers(&key.0).iter();
    let mut of_type = publishers.filter(|publisher| publisher.topic_type == key.1);
    NewChannel {
        key: key.clone(),
        schema: schema.unwrap_or_default(),
        type_hash: of_type.find_map(|publisher| publisher.type_hash),
    }
}

fn advertise(server: &Server, new: impl Iterator<Item = NewChannel>) {
    server.with_channels(|channels, viewers| {
        let space = CHANNELS_MAX.saturating_sub(channels.len());
        let added: Vec<_> = new.take(space).map(|new| channels.add(new)).collect();
        let messages = protocol::advertise(added.iter().map(|channel| &**channel));
        messages
            .iter()
            .for_each(|message| viewers.broadcast(message));
    });
}

/// The library's definition of a type, if it is the one that the publishers announce.
fn known_definition(
    server: &Server,
    snapshot: &GraphSnapshot,
    (topic, type_name): &ChannelKey,
) -> Option<String> {
    let library = &server.options.library;
    let known = library.describe(type_name).ok()?;
    let publishers = snapshot.publishers(topic).iter();
    let mut hashes = publishers
        .filter(|p| p.topic_type == *type_name)
        .filter_map(|p| p.type_hash);
    let is_announced = hashes.next().is_none_or(|hash| rihs01(&known) == hash);
    is_announced.then(|| definition_text(&known, library))
}

/// Passes simulated time on while someone publishes it.
fn follow_clock(server: &Arc<Server>, clock: &mut Option<Subscription<Clock>>) {
    let is_simulated = !server.snapshot().publishers(CLOCK_TOPIC).is_empty();
    if is_simulated == clock.is_some() {
        return;
    }
    *clock = None;
    if !is_simulated {
        return;
    }
    let own = Arc::downgrade(server);
    let tell = move |sample: Sample<Clock>| {
        let Some(server) = own.upgrade() else {
            return;
        };
        let (seconds, rest) = (sample.clock.sec, sample.clock.nanosec);
        let seconds = u64::try_from(seconds).unwrap_or_default();
        let frame = protocol::time_frame(seconds * 1_000_000_000 + u64::from(rest));
        server.with_viewers(|viewers| {
            let clients = viewers.clients.values();
            clients.for_each(|client| client.outbox.set_time(frame.clone()));
        });
    };
    let qos = CLOCK_TOPIC.best_effort().keep_last(1);
    match server.node.create_subscription(qos, tell) {
        Ok(subscription) => *clock = Some(subscription),
        Err(error) => tracing::warn!("{CLOCK_TOPIC}: {error}"),
    }
}

/// Subscribes anew where publishers with another QoS have come.
fn follow_offers(server: &Server, snapshot: &GraphSnapshot) {
    let channels: Vec<_> = server.with_channels(|channels, _| channels.all().cloned().collect());
    for channel in channels {
        let publishers = snapshot.publishers(&channel.topic);
        if publishers.is_empty() {
            continue;
        }
        let offer = Offer::of(publishers);
        for feed in channel.feeds() {
            if let Err(error) = feed.follow(&server.node, &channel, offer) {
                tracing::warn!("{}: subscribing anew: {error}", channel.topic);
            }
        }
    }
}
