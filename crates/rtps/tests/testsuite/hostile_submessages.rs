//! A matched pair under arbitrary submessages: no call panics or takes long, memory
//! stays bounded, and afterwards the pair becomes quiet.

use pteros_test_support::rtps::pair;

use pair::{Pair, R, W};
use pteros_rtps::id::EntityId;
use pteros_rtps::qos::{Durability, EndpointQos, History, Reliability};
use pteros_rtps::receiver::Source;
use pteros_rtps::seq::{FragmentNumber, SequenceNumber};
use pteros_rtps::wire::{
    AckNack, Data, DataFrag, FragmentSet, Gap, Header, Heartbeat, HeartbeatFrag, InlineQos,
    NackFrag, SequenceSet,
};
use pteros_test_support::random::Random;

struct RandomSubmessages {
    random: Random,
    pair: Pair,
    w: W,
    r: R,
    count: u32,
}

#[test]
fn arbitrary_submessages_never_panic_and_the_pair_becomes_quiet() {
    for seed in 0..60 {
        let mut attack = RandomSubmessages::new(seed);
        for _ in 0..400 {
            attack.step();
        }
        attack.rest();
    }
}

impl RandomSubmessages {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let qos = |random: &mut Random| EndpointQos {
            reliability: if random.percent(75) {
                Reliability::Reliable
            } else {
                Reliability::BestEffort
            },
            durability: if random.percent(50) {
                Durability::TransientLocal
            } else {
                Durability::Volatile
            },
            history: History::KeepLast(1 + u32::try_from(random.below(20)).unwrap()),
            ..EndpointQos::default()
        };
        let mut pair = Pair::with_seed(seed);
        let w = pair.writer(0, qos(&mut random));
        let r = pair.reader(1, qos(&mut random));
        pair.join(w, r);
        Self {
            random,
            pair,
            w,
            r,
            count: 0,
        }
    }

    fn number(&mut self) -> i64 {
        let near = i64::try_from(self.random.below(600)).unwrap();
        match self.random.below(8) {
            0 => i64::MAX - near,
            1 => (1 << 32) + near,
            2 => i64::try_from(self.random.next() >> 1).unwrap(),
            _ => near + 1,
        }
        .max(1)
    }

    fn set(&mut self) -> SequenceSet {
        let base = self.number().min(i64::MAX - 300);
        let mut set = SequenceSet::empty(SequenceNumber(base));
        for _ in 0..self.random.below(40) {
            let offset = i64::try_from(self.random.below(256)).unwrap();
            set.insert(SequenceNumber(base + offset));
        }
        set
    }

    fn fragment(&mut self) -> u32 {
        match self.random.below(4) {
            0 => u32::try_from(self.random.next() >> 32).unwrap(),
            1 => u32::MAX,
            _ => u32::try_from(self.random.below(400)).unwrap(),
        }
    }

    fn step(&mut self) {
        let source = Source::of(Header::ours(pair::prefix(0)));
        let from = pair::prefix(1);
        let writer = self.pair.writer_guid(self.w).entity;
        let reader = self.pair.guid(self.r).entity;
        let now = self.pair.now();
        self.count = if self.random.percent(5) {
            self.fragment()
        } else {
            self.count.wrapping_add(1)
        };
        let count = self.count;
        let sequence = SequenceNumber(self.number());
        let payload = vec![1; usize::try_from(self.random.below(3_000)).unwrap()];
        let (x, y) = (self.fragment(), self.fragment());
        let list = self.set();
        let is_final = self.random.percent(50);
        let kind = self.random.below(9);
        let to = &mut self.pair.readers[self.r.0].machine;
        let back = &mut self.pair.writers[self.w.0].machine;
        match kind {
            0 => to.handle_data(
                now,
                &source,
                &Data {
                    reader: EntityId::UNKNOWN,
                    writer,
                    sequence,
                    inline_qos: InlineQos::default(),
                    payload: &payload,
                    key_only: false,
                    non_standard_payload: false,
                },
            ),
            1 => to.handle_data_frag(
                now,
                &source,
                &DataFrag {
                    reader: EntityId::UNKNOWN,
                    writer,
                    sequence,
                    first_fragment: FragmentNumber(x),
                    fragment_count: u16::try_from(y % 5).unwrap(),
                    fragment_size: u16::try_from(x % 1_500).unwrap(),
                    sample_size: y,
                    inline_qos: InlineQos::default(),
                    payload: &payload,
                    key_only: false,
                },
            ),
            2 => to.handle_heartbeat(
                now,
                &source,
                &Heartbeat {
                    reader: EntityId::UNKNOWN,
                    writer,
                    first: sequence,
                    last: list.base().max(sequence.previous()),
                    count,
                    is_final,
                    liveliness: is_final,
                    group_info: None,
                },
            ),
            3 => to.handle_heartbeat_frag(
                now,
                &source,
                &HeartbeatFrag {
                    reader: EntityId::UNKNOWN,
                    writer,
                    sequence,
                    last_fragment: FragmentNumber(x.max(1)),
                    count,
                },
            ),
            4 => to.handle_gap(
                now,
                &source,
                &Gap {
                    reader: EntityId::UNKNOWN,
                    writer,
                    start: sequence,
                    list,
                },
            ),
            5 => back.handle_acknack(
                now,
                from,
                &AckNack {
                    reader,
                    writer,
                    state: list,
                    count,
                    is_final,
                },
            ),
            6 => back.handle_nack_frag(
                now,
                from,
                &NackFrag {
                    reader,
                    writer,
                    sequence,
                    state: FragmentSet::from_numbers(
                        FragmentNumber(x),
                        (0..9).map(|n| FragmentNumber(x.saturating_add(n * 7))),
                    ),
                    count,
                },
            ),
            7 => {
                self.pair.write(self.w, &payload);
            }
            _ => self.pair.run_ms(i64::from(x % 30)),
        }
        self.pair.flush();
    }

    /// Nothing is asserted of what was delivered: the attacker could claim
    /// anything. But neither side may be left spinning.
    fn rest(&mut self) {
        self.pair.run_ms(2_000);
        self.pair.net.log.clear();
        self.pair.run_ms(2_000);
        let sent = self.pair.net.log.len();
        // A reader with announced samples that do not exist requests them five
        // times a second, and gets a GAP.
        assert!(sent <= 60, "{sent} datagrams in 2 s");
    }
}
