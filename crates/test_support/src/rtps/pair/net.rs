//! A network on fake time: datagrams between locators, with latency, an MTU, seeded
//! faults, and rules for single datagrams.

use std::collections::BTreeMap;

use bytes::Bytes;
use pteros_rtps::id::GuidPrefix;
use pteros_rtps::locator::Locator;
use pteros_rtps::outbox::Outbox;
use pteros_rtps::receiver::MessageReader;
use pteros_rtps::time::{Duration, Instant};
use pteros_rtps::wire::Submessage;

use crate::random::Random;

/// One submessage of a datagram, summarised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubmessageSummary {
    /// DATA and its number.
    Data(i64),
    /// DATA_FRAG: sample and fragment.
    Frag(i64, u32),
    /// HEARTBEAT: first, last, final.
    Heartbeat(i64, i64, bool),
    HeartbeatFrag(i64, u32),
    /// ACKNACK: base and the number of requested samples.
    AckNack(i64, usize),
    /// NACK_FRAG: sample and the number of requested fragments.
    NackFrag(i64, usize),
    /// GAP: start and base.
    Gap(i64, i64),
    Other,
}

/// One datagram in transit, in its parts on shared memory.
#[derive(Clone, Debug)]
pub struct Sent {
    pub head: Vec<u8>,
    pub body: Bytes,
    pub tail: Vec<u8>,
}

impl Sent {
    fn plain(bytes: Vec<u8>) -> Self {
        Self {
            head: bytes,
            body: Bytes::new(),
            tail: Vec::new(),
        }
    }

    pub fn read(&self, own: GuidPrefix) -> Option<MessageReader<'_>> {
        MessageReader::in_parts(&self.head, &self.body, &self.tail, own).ok()
    }

    fn len(&self) -> usize {
        self.head.len() + self.body.len() + self.tail.len()
    }
}

pub fn submessages_of(datagram: &Sent) -> Vec<SubmessageSummary> {
    // Parse as the participant that the datagram addresses.
    let own = destination(&datagram.head).unwrap_or(GuidPrefix::UNKNOWN);
    let Some(reader) = datagram.read(own) else {
        return Vec::new();
    };
    reader
        .filter_map(|(_, submessage)| match submessage {
            Submessage::Data(d) => Some(SubmessageSummary::Data(d.sequence.0)),
            Submessage::DataFrag(d) => {
                Some(SubmessageSummary::Frag(d.sequence.0, d.first_fragment.0))
            }
            Submessage::Heartbeat(h) => Some(SubmessageSummary::Heartbeat(
                h.first.0, h.last.0, h.is_final,
            )),
            Submessage::HeartbeatFrag(h) => Some(SubmessageSummary::HeartbeatFrag(
                h.sequence.0,
                h.last_fragment.0,
            )),
            Submessage::AckNack(a) => {
                Some(SubmessageSummary::AckNack(a.state.base().0, a.state.len()))
            }
            Submessage::NackFrag(n) => {
                Some(SubmessageSummary::NackFrag(n.sequence.0, n.state.len()))
            }
            Submessage::Gap(g) => Some(SubmessageSummary::Gap(g.start.0, g.list.base().0)),
            Submessage::InfoTimestamp(_) | Submessage::InfoDestination(_) => None,
            _ => Some(SubmessageSummary::Other),
        })
        .collect()
}

/// The participant that the first INFO_DST names.
fn destination(datagram: &[u8]) -> Option<GuidPrefix> {
    let mut at = 20;
    while let Some([id, _, low, high]) = datagram.get(at..at + 4) {
        if *id == 0x0e {
            let prefix = datagram.get(at + 4..at + 16)?;
            return Some(GuidPrefix(prefix.try_into().ok()?));
        }
        at += 4 + usize::from(u16::from_le_bytes([*low, *high]));
    }
    None
}

/// A datagram without submessages of this id.
fn without(datagram: &[u8], id: u8) -> Vec<u8> {
    let mut kept = datagram[..20].to_vec();
    let mut at = 20;
    while let Some([this, _, low, high]) = datagram.get(at..at + 4) {
        let end = at + 4 + usize::from(u16::from_le_bytes([*low, *high]));
        if *this != id {
            kept.extend_from_slice(&datagram[at..end]);
        }
        at = end;
    }
    kept
}

/// The effect of a rule on the datagrams it matches.
#[derive(Clone, Copy, Debug)]
pub enum DatagramFate {
    Drop,
    Duplicate,
    Delay(Duration),
}

/// Whether a rule matches a datagram with these submessages.
type DatagramPredicate = Box<dyn Fn(&[SubmessageSummary]) -> bool>;

struct Rule {
    names: DatagramPredicate,
    times: usize,
    fate: DatagramFate,
}

/// Seeded faults on every datagram.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub loss_percent: u64,
    pub duplicate_percent: u64,
    /// Extra latency, evenly up to this: datagrams overtake each other.
    pub jitter: Duration,
}

pub struct Net {
    pub now: Instant,
    pub latency: Duration,
    pub mtu: usize,
    pub faults: Faults,
    /// All that was sent, in order, before any fault.
    pub log: Vec<Vec<SubmessageSummary>>,
    pub bytes_sent: usize,
    /// The same by destination.
    pub bytes_to: BTreeMap<Locator, usize>,
    /// Datagrams that need not wake who sleeps.
    pub deferrable: usize,
    /// Heartbeats are cut out of datagrams before they fly.
    pub strip_heartbeats: bool,
    /// Datagrams to these wait: their process has no processor.
    pub held: Vec<Locator>,
    /// By arrival, then by departure.
    flights: BTreeMap<(Instant, u64), (Locator, Sent)>,
    rules: Vec<Rule>,
    random: Random,
    order: u64,
}

impl Net {
    pub fn new(seed: u64) -> Self {
        Self {
            // Time does not begin at zero, nor at a round number.
            now: Instant::from_nanos(7_000_000_123),
            latency: Duration::from_micros(50),
            mtu: 65_507,
            faults: Faults::default(),
            log: Vec::new(),
            bytes_sent: 0,
            deferrable: 0,
            bytes_to: BTreeMap::new(),
            strip_heartbeats: false,
            held: Vec::new(),
            flights: BTreeMap::new(),
            rules: Vec::new(),
            random: Random::new(seed),
            order: 0,
        }
    }

    /// The next `times` datagrams with a submessage that `names` accepts meet
    /// this fate.
    pub fn rule(
        &mut self,
        times: usize,
        fate: DatagramFate,
        names: impl Fn(&SubmessageSummary) -> bool + 'static,
    ) {
        self.rules.push(Rule {
            names: Box::new(move |all| all.iter().any(&names)),
            times,
            fate,
        });
    }

    pub fn drop_next(
        &mut self,
        times: usize,
        names: impl Fn(&SubmessageSummary) -> bool + 'static,
    ) {
        self.rule(times, DatagramFate::Drop, names);
    }

    /// Forgets all rules and faults.
    pub fn heal(&mut self) {
        self.rules.clear();
        self.strip_heartbeats = false;
        self.faults = Faults::default();
    }

    /// Takes all datagrams of an outbox and clears it.
    pub fn send(&mut self, out: &mut Outbox) {
        let mut datagrams = Vec::new();
        for datagram in out.iter() {
            self.deferrable += usize::from(datagram.is_deferrable);
            for to in datagram.to {
                let sent = match to.to_connection() {
                    None => Sent::plain(datagram.to_vec()),
                    Some(_) => Sent {
                        head: datagram.parts[0].to_vec(),
                        // A payload in shared memory is not copied.
                        body: datagram.body.clone(),
                        tail: datagram.parts[2].to_vec(),
                    },
                };
                datagrams.push((*to, sent));
            }
        }
        out.clear();
        for (to, sent) in datagrams {
            self.launch_one(to, sent);
        }
    }

    fn launch_one(&mut self, to: Locator, mut bytes: Sent) {
        if self.strip_heartbeats {
            bytes.head = without(&bytes.head, 0x07);
        }
        let all = submessages_of(&bytes);
        self.bytes_sent += bytes.len();
        *self.bytes_to.entry(to).or_default() += bytes.len();
        let rule = self
            .rules
            .iter_mut()
            .find(|rule| rule.times > 0 && (rule.names)(&all));
        let fate = rule.map(|rule| {
            rule.times -= 1;
            rule.fate
        });
        self.log.push(all);
        let fits = to.to_connection().is_some() || bytes.len() <= self.mtu;
        if !fits || matches!(fate, Some(DatagramFate::Drop)) {
            return;
        }
        let copies = if matches!(fate, Some(DatagramFate::Duplicate)) {
            2
        } else {
            1
        };
        let extra = match fate {
            Some(DatagramFate::Delay(extra)) => extra,
            _ => Duration::ZERO,
        };
        for _ in 0..copies {
            self.launch(to, &bytes, extra);
        }
        if self.random.percent(self.faults.duplicate_percent) {
            self.launch(to, &bytes, extra);
        }
    }

    fn launch(&mut self, to: Locator, bytes: &Sent, extra: Duration) {
        if self.random.percent(self.faults.loss_percent) {
            return;
        }
        let jitter = self
            .random
            .below(self.faults.jitter.as_nanos().unsigned_abs() + 1);
        self.order += 1;
        let jitter = Duration::from_nanos(i64::try_from(jitter).unwrap());
        let at = self.now.after(self.latency).after(extra).after(jitter);
        self.flights.insert((at, self.order), (to, bytes.clone()));
    }

    /// When the next datagram arrives.
    pub fn next_arrival(&self) -> Option<Instant> {
        self.next_flight().map(|(at, _)| at)
    }

    fn next_flight(&self) -> Option<(Instant, u64)> {
        let mut flights = self.flights.iter();
        let next = flights.find(|(_, (to, _))| !self.held.contains(to));
        next.map(|(key, _)| *key)
    }

    /// The next datagram that has arrived by now.
    pub fn receive(&mut self) -> Option<(Locator, Sent)> {
        let next = self.next_flight().filter(|(at, _)| *at <= self.now)?;
        self.flights.remove(&next)
    }

    /// The number of matching submessages so far.
    pub fn count(&self, names: impl Fn(&SubmessageSummary) -> bool) -> usize {
        self.log
            .iter()
            .flatten()
            .filter(|summary| names(summary))
            .count()
    }
}
