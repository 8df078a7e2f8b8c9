//! A writer and readers on fake time: one test per rule of RTPS 2.5 §8.4 and of the
//! QoS policies, and one per known failure of other stacks.

use pteros_test_support::rtps::pair;

mod acknowledgements;
mod amplification;
mod datagram_count;
mod destinations;
mod forged;
mod fragments;
mod history;
mod instances;
mod late_joiners;
mod losses;
mod peer_restart;
mod retransmission;
mod shared_memory;
mod stalls;
mod time;

use bytes::Bytes;
use pair::net::{DatagramFate, SubmessageSummary};
use pair::{Pair, R, W, transient_local};
use pteros_rtps::history::{CacheChange, ChangeKind};
use pteros_rtps::id::{EntityId, VendorId};
use pteros_rtps::locator::{Route, RouteKind};
use pteros_rtps::outbox::Outbox;
use pteros_rtps::qos::{EndpointQos, History, Liveliness, Reliability, ResourceLimits};
use pteros_rtps::reader::{ReaderEvent, WriterProxyConfig};
use pteros_rtps::receiver::{MessageReader, Source};
use pteros_rtps::seq::SequenceNumber;
use pteros_rtps::time::{Duration, Timestamp};
use pteros_rtps::wire::{AckNack, Gap, Header, Heartbeat, SequenceSet, Submessage};
use pteros_rtps::writer::{
    Burst, NewChange, PayloadForm, ReaderProxyConfig, WriteError, WriterEvent,
};

fn reliable() -> EndpointQos {
    EndpointQos::default()
}

fn best_effort() -> EndpointQos {
    EndpointQos {
        reliability: Reliability::BestEffort,
        ..EndpointQos::default()
    }
}

fn keep_all(max_samples: u32) -> EndpointQos {
    EndpointQos {
        history: History::KeepAll,
        resource_limits: ResourceLimits {
            max_samples: Some(max_samples),
            ..ResourceLimits::default()
        },
        ..EndpointQos::default()
    }
}

/// One writer on node 0, one reader on node 1, matched and quiet.
fn joined(writer: EndpointQos, reader: EndpointQos) -> (Pair, W, R) {
    let (mut pair, w, r) = Pair::matched(writer, reader);
    pair.run_ms(50);
    pair.net.log.clear();
    (pair, w, r)
}

fn is_data(number: i64) -> impl Fn(&SubmessageSummary) -> bool {
    move |summary| matches!(summary, SubmessageSummary::Data(n) if *n == number)
}

fn is_acknack(summary: &SubmessageSummary) -> bool {
    matches!(summary, SubmessageSummary::AckNack(..))
}

// Test helpers.

fn is_heartbeat(summary: &SubmessageSummary) -> bool {
    matches!(summary, SubmessageSummary::Heartbeat(..))
}

fn number(n: i64) -> NewChange {
    NewChange {
        payload: Bytes::copy_from_slice(&n.to_le_bytes()),
        ..NewChange::default()
    }
}

fn lost(pair: &Pair, r: R) -> u64 {
    let stats = pair.readers[r.0].machine.stats().lost;
    let events: u64 = pair.readers[r.0]
        .events
        .iter()
        .map(|event| match event {
            ReaderEvent::SampleLost { count, .. } => *count,
            _ => 0,
        })
        .sum();
    assert_eq!(stats, events, "every loss is an event");
    stats
}

/// From now on data arrives, but no heartbeat: as from a stack that sends separate
/// heartbeats, which are lost.
fn strip_heartbeats(pair: &mut Pair) {
    pair.net.strip_heartbeats = true;
}

fn source() -> Source {
    Source::of(Header::ours(pair::prefix(0)))
}

fn image(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n * 7 % 251) as u8).collect()
}
