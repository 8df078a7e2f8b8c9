//! Test support: two or more writers and readers on fake time, connected by a
//! [`Net`].
//!
//! `run` jumps from one wake-up to the next, so a simulated second costs
//! microseconds. It detects a state machine that requests a wake-up at the same
//! instant again and again.

pub mod net;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use net::{Net, Sent};
use pteros_rtps::history::CacheChange;
use pteros_rtps::id::{EntityId, Guid, GuidPrefix, VendorId};
use pteros_rtps::locator::{Locator, Route};
use pteros_rtps::memory_budget::SampleCharge;
use pteros_rtps::outbox::Outbox;
use pteros_rtps::qos::{Durability, EndpointQos, History};
use pteros_rtps::reader::{Reader, ReaderConfig, ReaderEvent, WriterProxyConfig};
use pteros_rtps::retransmission_window::RetransmissionWindow;
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::wire::Submessage;
use pteros_rtps::writer::{
    Burst, NewChange, PayloadForm, ReaderProxyConfig, WriteError, Writer, WriterConfig, WriterEvent,
};

/// Names a writer of a [`Pair`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct W(pub usize);
/// Names a reader of a [`Pair`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct R(pub usize);

pub struct WriterSide {
    pub machine: Writer,
    pub node: usize,
    pub events: Vec<WriterEvent>,
    pub vendor: VendorId,
    /// It sends when the test calls for it.
    pub flow_controlled: bool,
}

pub struct ReaderSide {
    pub machine: Reader,
    pub node: usize,
    pub received: Vec<CacheChange>,
    pub events: Vec<ReaderEvent>,
    /// No samples are polled while this is set.
    pub paused: bool,
    /// Its participant refuses the writers that it is not matched with.
    pub refuses: bool,
}

pub struct Pair {
    pub net: Net,
    pub writers: Vec<WriterSide>,
    pub readers: Vec<ReaderSide>,
    /// The process of this node has no processor for its timers and its sockets.
    stalled: Option<usize>,
    /// Retransmission windows by the nodes of writers and readers, as each participant
    /// has them.
    windows: BTreeMap<(usize, usize), Arc<RetransmissionWindow>>,
    out: Outbox,
}

pub fn prefix(node: usize) -> GuidPrefix {
    let mut prefix = [7; 12];
    prefix[11] = u8::try_from(node).unwrap();
    GuidPrefix(prefix)
}

pub fn locator(node: usize) -> Locator {
    Locator::udp_v4([10, 0, 0, u8::try_from(node + 1).unwrap()], 7411)
}

pub fn route(node: usize) -> Route {
    Route::by_socket(&[locator(node)], false)
}

/// The shared-memory locator of a node, the same for all.
pub fn shared_memory_locator(node: usize) -> Locator {
    Locator::shared_memory(u32::try_from(node).unwrap(), prefix(node))
}

/// TRANSIENT_LOCAL with a history of `depth` samples.
pub fn transient_local(depth: u32) -> EndpointQos {
    EndpointQos {
        durability: Durability::TransientLocal,
        history: History::KeepLast(depth),
        ..EndpointQos::default()
    }
}

impl Pair {
    pub fn new() -> Self {
        Self::with_seed(1)
    }

    /// A writer at node 0 and a reader at node 1, not matched.
    pub fn unmatched(writer: EndpointQos, reader: EndpointQos) -> (Self, W, R) {
        let mut pair = Self::new();
        let w = pair.writer(0, writer);
        let r = pair.reader(1, reader);
        (pair, w, r)
    }

    /// The same two, matched.
    pub fn matched(writer: EndpointQos, reader: EndpointQos) -> (Self, W, R) {
        let (mut pair, w, r) = Self::unmatched(writer, reader);
        pair.join(w, r);
        (pair, w, r)
    }

    pub fn with_seed(seed: u64) -> Self {
        Self {
            net: Net::new(seed),
            writers: Vec::new(),
            readers: Vec::new(),
            stalled: None,
            windows: BTreeMap::new(),
            out: Outbox::new(),
        }
    }

    pub fn now(&self) -> Instant {
        self.net.now
    }

    pub fn writer(&mut self, node: usize, qos: EndpointQos) -> W {
        self.writer_with(node, qos, |_| {})
    }

    pub fn writer_with(
        &mut self,
        node: usize,
        qos: EndpointQos,
        change: impl FnOnce(&mut WriterConfig),
    ) -> W {
        let key = u8::try_from(self.writers.len()).unwrap();
        let guid = prefix(node).with(EntityId::new([0, 1, key], EntityId::KIND_WRITER_NO_KEY));
        let mut config = WriterConfig::new(guid, qos);
        change(&mut config);
        self.writers.push(WriterSide {
            flow_controlled: config.flow_controlled,
            machine: Writer::new(config),
            node,
            events: Vec::new(),
            vendor: VendorId::PTEROS,
        });
        W(self.writers.len() - 1)
    }

    pub fn reader(&mut self, node: usize, qos: EndpointQos) -> R {
        self.reader_with(node, qos, |_| {})
    }

    pub fn reader_with(
        &mut self,
        node: usize,
        qos: EndpointQos,
        change: impl FnOnce(&mut ReaderConfig),
    ) -> R {
        let key = u8::try_from(self.readers.len()).unwrap();
        let guid = prefix(node).with(EntityId::new([0, 2, key], EntityId::KIND_READER_NO_KEY));
        let mut config = ReaderConfig::new(guid, qos);
        change(&mut config);
        self.readers.push(ReaderSide {
            machine: Reader::new(config),
            node,
            received: Vec::new(),
            events: Vec::new(),
            paused: false,
            refuses: false,
        });
        R(self.readers.len() - 1)
    }

    /// Switches both sides to a shared-memory connection, or back to UDP.
    pub fn reroute(&mut self, w: W, r: R, via_shared_memory: bool) {
        let (writer, reader) = (&mut self.writers[w.0], &mut self.readers[r.0]);
        let to = |node| {
            if via_shared_memory {
                Route::by_shared_memory(shared_memory_locator(node))
            } else {
                route(node)
            }
        };
        let (to_reader, to_writer) = (to(reader.node), to(writer.node));
        writer
            .machine
            .update_route(reader.machine.guid(), to_reader);
        reader
            .machine
            .update_route(writer.machine.guid(), to_writer);
        self.flush();
    }

    /// Both sides learn of each other at once.
    pub fn join(&mut self, w: W, r: R) {
        self.match_reader_only(w, r);
        self.match_writer_only(r, w);
    }

    pub fn match_reader_only(&mut self, w: W, r: R) {
        self.match_reader_with(w, r, VendorId::PTEROS);
    }

    pub fn match_reader_with(&mut self, w: W, r: R, vendor: VendorId) {
        self.match_reader_in_form(w, r, vendor, None);
    }

    pub fn match_reader_in_form(
        &mut self,
        w: W,
        r: R,
        vendor: VendorId,
        payload_form: Option<PayloadForm>,
    ) {
        let reader = &self.readers[r.0];
        let config = ReaderProxyConfig {
            guid: reader.machine.guid(),
            qos: reader.machine.qos().clone().into(),
            route: route(reader.node),
            expects_inline_qos: false,
            vendor,
            content_filter: reader.machine.content_filter().cloned(),
            payload_form,
        };
        let now = self.now();
        let (prefix, to) = (config.guid.prefix, reader.node);
        let writer = &mut self.writers[w.0];
        assert!(writer.machine.match_reader(now, config));
        let window = self.windows.entry((writer.node, to));
        let window = window.or_insert_with(RetransmissionWindow::new);
        writer
            .machine
            .readers_mut()
            .share_retransmission_window(prefix, window);
        self.flush();
    }

    pub fn match_writer_only(&mut self, r: R, w: W) {
        let writer = &self.writers[w.0];
        let config = WriterProxyConfig {
            guid: writer.machine.guid(),
            qos: writer.machine.qos().clone().into(),
            route: route(writer.node),
            vendor: writer.vendor,
        };
        let now = self.now();
        assert!(self.readers[r.0].machine.match_writer(now, config));
        self.flush();
    }

    /// The process of a node handles no timer and receives nothing from now on. What is
    /// sent to it waits. Its user code may still write.
    pub fn stall(&mut self, node: usize) {
        self.stalled = Some(node);
        self.net.held = vec![locator(node), shared_memory_locator(node)];
    }

    /// It goes on.
    pub fn end_stall(&mut self) {
        self.stalled = None;
        self.net.held.clear();
    }

    pub fn guid(&self, r: R) -> Guid {
        self.readers[r.0].machine.guid()
    }

    pub fn writer_guid(&self, w: W) -> Guid {
        self.writers[w.0].machine.guid()
    }

    pub fn try_write(&mut self, w: W, change: NewChange) -> Result<SequenceNumber, WriteError> {
        let now = self.now();
        let result = self.writers[w.0].machine.write(now, change);
        self.flush();
        result
    }

    pub fn write(&mut self, w: W, payload: &[u8]) -> SequenceNumber {
        let change = NewChange {
            payload: Bytes::copy_from_slice(payload),
            ..NewChange::default()
        };
        self.try_write(w, change).expect("room")
    }

    /// Writes samples whose payload is their number, `count` of them.
    pub fn write_many(&mut self, w: W, count: usize) {
        for _ in 0..count {
            let number = self.writers[w.0].machine.next_sequence().0;
            self.write(w, &number.to_le_bytes());
        }
    }

    pub fn write_for(&mut self, w: W, r: R, payload: &[u8]) -> SequenceNumber {
        let change = NewChange {
            payload: Bytes::copy_from_slice(payload),
            directed_to: Some(self.guid(r)),
            ..NewChange::default()
        };
        self.try_write(w, change).expect("room")
    }

    /// Numbers of the samples received, in their order.
    pub fn numbers(&self, r: R) -> Vec<i64> {
        let received = &self.readers[r.0].received;
        received.iter().map(|change| change.sequence.0).collect()
    }

    pub fn run_ms(&mut self, millis: i64) {
        self.run(Duration::from_millis(millis));
    }

    /// Lets time pass.
    pub fn run(&mut self, span: Duration) {
        let end = self.now().after(span);
        let mut turns_at_instant = 0;
        loop {
            self.poll_all();
            let Some(next) = self.next_wake().filter(|next| *next <= end) else {
                break;
            };
            turns_at_instant = if next > self.net.now {
                0
            } else {
                turns_at_instant + 1
            };
            assert!(
                turns_at_instant < 1_000,
                "woken again and again at one instant"
            );
            self.net.now = next.max(self.net.now);
        }
        self.net.now = end;
    }

    fn next_wake(&self) -> Option<Instant> {
        let runs = |node| self.stalled != Some(node);
        let writers = self.writers.iter().filter(|w| runs(w.node));
        let writers = writers.filter_map(|w| w.machine.next_timeout());
        let readers = self.readers.iter().filter(|r| runs(r.node));
        let readers = readers.filter_map(|r| r.machine.next_timeout());
        writers.chain(readers).chain(self.net.next_arrival()).min()
    }

    /// Delivers what has arrived and does what is due.
    fn poll_all(&mut self) {
        while let Some((to, sent)) = self.net.receive() {
            self.deliver_sent(to, &sent);
            self.flush();
        }
        let now = self.now();
        let stalled = self.stalled;
        let runs = |node| stalled != Some(node);
        for writer in self.writers.iter_mut().filter(|w| runs(w.node)) {
            if writer.machine.next_timeout().is_some_and(|at| at <= now) {
                writer.machine.handle_timeout(now);
            }
        }
        for reader in self.readers.iter_mut().filter(|r| runs(r.node)) {
            if reader.machine.next_timeout().is_some_and(|at| at <= now) {
                reader.machine.handle_timeout(now);
            }
        }
        self.flush();
    }

    /// Gives a datagram to the machines it is for, as a driver would.
    pub fn deliver(&mut self, to: Locator, bytes: &[u8]) {
        let sent = Sent {
            head: bytes.to_vec(),
            body: Bytes::new(),
            tail: Vec::new(),
        };
        self.deliver_sent(to, &sent);
    }

    fn deliver_sent(&mut self, to: Locator, sent: &Sent) {
        let now = self.now();
        let here = |node: &usize| locator(*node) == to || shared_memory_locator(*node) == to;
        let Some(node) = (0..32).find(here) else {
            return;
        };
        let Some(messages) = sent.read(prefix(node)) else {
            return;
        };
        for (source, submessage) in messages {
            let is_for = |own: Guid, entity: EntityId| {
                own.prefix == prefix(node) && (entity == EntityId::UNKNOWN || entity == own.entity)
            };
            for reader in self.readers.iter_mut().filter(|r| r.node == node) {
                let own = reader.machine.guid();
                let machine = &mut reader.machine;
                match &submessage {
                    Submessage::Data(d) if is_for(own, d.reader) => {
                        machine.handle_data_shared(now, &source, d, Some(&sent.body));
                    }
                    Submessage::DataFrag(d) if is_for(own, d.reader) => {
                        machine.handle_data_frag(now, &source, d);
                    }
                    Submessage::Heartbeat(h) if is_for(own, h.reader) => {
                        machine.handle_heartbeat(now, &source, h);
                        if reader.refuses {
                            let node = usize::from(source.prefix.0[11]);
                            machine.acknowledge_refused(
                                source.prefix,
                                h,
                                &route(node),
                                &mut self.out,
                            );
                        }
                    }
                    Submessage::HeartbeatFrag(h) if is_for(own, h.reader) => {
                        machine.handle_heartbeat_frag(now, &source, h);
                    }
                    Submessage::Gap(g) if is_for(own, g.reader) => {
                        machine.handle_gap(now, &source, g);
                    }
                    _ => {}
                }
            }
            for writer in self.writers.iter_mut().filter(|w| w.node == node) {
                let own = writer.machine.guid();
                match &submessage {
                    Submessage::AckNack(a) if is_for(own, a.writer) => {
                        writer.machine.handle_acknack(now, source.prefix, a);
                    }
                    Submessage::NackFrag(n) if is_for(own, n.writer) => {
                        writer.machine.handle_nack_frag(now, source.prefix, n);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Polls everything until there is no output.
    pub fn flush(&mut self) {
        let now = self.now();
        for writer in &mut self.writers {
            let mut polls = 0;
            while !writer.flow_controlled && writer.machine.poll_transmit(now, &mut self.out) {
                self.net.send(&mut self.out);
                polls += 1;
                assert!(polls < 10_000, "a writer that never ends its bursts");
            }
            self.net.send(&mut self.out);
            while let Some(event) = writer.machine.poll_event() {
                writer.events.push(event);
            }
        }
        for reader in &mut self.readers {
            while !reader.paused
                && let Some(mut change) = reader.machine.poll_sample()
            {
                // Taken by the application.
                change.charge = SampleCharge::default();
                reader.received.push(change);
            }
            while reader.machine.poll_transmit(now, &mut self.out) {
                self.net.send(&mut self.out);
            }
            self.net.send(&mut self.out);
            while let Some(event) = reader.machine.poll_event() {
                reader.events.push(event);
            }
        }
    }

    /// Lets a flow-controlled writer send this many datagrams; true if it has more.
    pub fn send(&mut self, w: W, datagrams: usize) -> bool {
        let now = self.now();
        let one = Burst {
            datagrams: 1,
            bytes: usize::MAX,
        };
        let mut more = true;
        for _ in 0..datagrams {
            let machine = &mut self.writers[w.0].machine;
            more = machine.poll_transmit_up_to(now, one, &mut self.out);
            self.net.send(&mut self.out);
            if !more {
                break;
            }
        }
        self.flush();
        more
    }
}
