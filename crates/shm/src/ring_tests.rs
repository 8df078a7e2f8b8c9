//! The ring in ordinary memory: by one thread against a model, and by two.
//! Runs under miri too: `cargo +nightly miri test -p pteros-shm --lib ring`.
#![allow(clippy::disallowed_methods, reason = "threads stand for processes")]

use std::collections::VecDeque;
use std::sync::Arc;

use super::*;

/// One direction of a connection, in ordinary memory.
struct Connection {
    words: Vec<AtomicU64>,
    tail: AtomicU64,
    head: AtomicU64,
}

impl Connection {
    fn new(words: usize) -> Self {
        Self {
            words: (0..words).map(|_| AtomicU64::new(0)).collect(),
            tail: AtomicU64::new(0),
            head: AtomicU64::new(0),
        }
    }

    fn push(&self, producer: &mut Producer, parts: [&[u8]; 3]) -> Result<(), NotPushed> {
        producer.push(&self.words, &self.tail, &self.head, parts, None)
    }

    fn take(&self, consumer: &mut Consumer) -> Option<Vec<u8>> {
        let header = consumer.next(&self.words, &self.tail).expect("sense")?;
        let mut out = Vec::new();
        consumer.copy(&self.words, &header, &mut out);
        consumer.advance(&header, &self.head);
        Some(out)
    }
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + seed) as u8).collect()
}

#[test]
fn it_is_a_queue_for_records_of_every_length() {
    let connection = Connection::new(1024);
    let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
    let mut model = VecDeque::new();
    let (mut random, mut full) = (fastrand::Rng::with_seed(12_345), 0);
    for _ in 0..if cfg!(miri) { 300 } else { 30_000 } {
        let chance = random.usize(..1 << 31);
        if chance.is_multiple_of(2) {
            let parts = [chance % 97, chance % 1301, chance % 13].map(|len| bytes(len, chance));
            let slices = [&parts[0][..], &parts[1], &parts[2]];
            match connection.push(&mut producer, slices) {
                Ok(()) => model.push_back(parts.concat()),
                Err(NotPushed::Full) => full += 1,
                Err(other) => panic!("{other:?}"),
            }
        } else {
            assert_eq!(connection.take(&mut consumer), model.pop_front());
        }
        assert_eq!(consumer.has_record(&connection.tail), !model.is_empty());
    }
    assert!(full > 0, "it was full at times");
}

#[test]
fn a_ring_whose_records_are_read_at_once_touches_its_first_pages_only() {
    let connection = Connection::new(32 * 1024);
    let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
    for round in 0..if cfg!(miri) { 50 } else { 5_000 } {
        let sent = bytes(100, round);
        connection
            .push(&mut producer, [&sent, &[], &[]])
            .expect("room");
        assert_eq!(connection.take(&mut consumer).expect("there"), sent);
    }
    let untouched = connection.words[1024..].iter();
    assert!(
        untouched
            .clone()
            .all(|word| word.load(Ordering::Relaxed) == 0)
    );
}

#[test]
fn a_record_may_fill_the_ring_to_the_last_word_and_no_more() {
    let connection = Connection::new(512);
    let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
    let most = bytes((512 - HEADER_WORDS as usize) * 8, 1);
    for _ in 0..3 {
        connection
            .push(&mut producer, [&most, &[], &[]])
            .expect("room");
        let more = connection.push(&mut producer, [&[], &[], &[]]);
        assert_eq!(more, Err(NotPushed::Full));
        assert_eq!(connection.take(&mut consumer).expect("there"), most);
    }
    let more = bytes(most.len() + 1, 1);
    let more = connection.push(&mut producer, [&more, &[], &[]]);
    assert_eq!(more, Err(NotPushed::TooLong));
}

#[test]
fn epochs_pass_their_end() {
    let connection = Connection::new(512);
    let (mut producer, mut consumer) = (Producer::default(), Consumer::default());
    let rounds = if cfg!(miri) { 10 } else { 70_000 };
    let most = bytes((512 - HEADER_WORDS as usize) * 8, 1);
    for _ in 0..rounds {
        connection
            .push(&mut producer, [&most, &[], &[]])
            .expect("room");
        let header = consumer
            .next(&connection.words, &connection.tail)
            .expect("sense");
        consumer.advance(&header.expect("there"), &connection.head);
    }
    assert_eq!(usize::from(producer.tail.epoch), (rounds - 1) % 65_536);
}

#[test]
fn two_threads_see_every_record_whole_and_in_order() {
    let count = if cfg!(miri) { 200 } else { 200_000_u64 };
    let connection = Arc::new(Connection::new(256));
    let writer = {
        let connection = Arc::clone(&connection);
        std::thread::spawn(move || {
            let mut producer = Producer::default();
            for number in 0..count {
                let bytes = number.to_ne_bytes().repeat(1 + number as usize % 9);
                while connection.push(&mut producer, [&bytes, &[], &[]]).is_err() {
                    std::thread::yield_now();
                }
            }
        })
    };
    let mut consumer = Consumer::default();
    for number in 0..count {
        let got = loop {
            match connection.take(&mut consumer) {
                Some(got) => break got,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(got, number.to_ne_bytes().repeat(1 + number as usize % 9));
    }
    writer.join().expect("the writer");
}
