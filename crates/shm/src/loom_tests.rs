//! Model checking with loom: all orders in which two processes can access the ring,
//! the loans and the doorbell, and two threads a chunk and the ready flag of the
//! executor: `cargo xtask loom`. docs/internals/memory_ordering.md lists what each test
//! shows.
//!
//! Threads stand for processes, and loom's atomics for shared words. Memory that
//! must not be accessed by both at once is a loom [`UnsafeCell`], which detects it.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{self, AtomicBool, AtomicU32, AtomicU64, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

use crate::doorbell::{WakeUp, WokenSleeps, arm, begin_chunk_wait, disarm, must_wake_chunk_waiter};
use crate::holder_count::HolderCount;
use crate::loans::{Loans, give_back};
use crate::ring::{Consumer, NotPushed, Producer};

/// The runtime itself needs a kernel, which loom is not.
#[path = "../../runtime/src/scheduler/ready_flag.rs"]
mod ready_flag;
use ready_flag::ReadyFlag;

/// Words of a ring in which one record of one word fits, and half of another.
const RING_WORDS: usize = 8;

/// Shared state of one direction of a connection.
struct Shared {
    words: Vec<AtomicU64>,
    tail: AtomicU64,
    head: AtomicU64,
    sleeping: AtomicU64,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            words: (0..RING_WORDS).map(|_| AtomicU64::new(0)).collect(),
            tail: AtomicU64::new(0),
            head: AtomicU64::new(0),
            sleeping: AtomicU64::new(0),
        })
    }

    fn push(&self, producer: &mut Producer, number: u64) -> Result<(), NotPushed> {
        let bytes = number.to_ne_bytes();
        let parts = [&bytes[..], &[], &[]];
        producer.push(&self.words, &self.tail, &self.head, parts, None)
    }

    fn take(&self, consumer: &mut Consumer) -> Option<u64> {
        let header = consumer.next(&self.words, &self.tail);
        let header = header.expect("a correct producer")?;
        let mut out = Vec::new();
        consumer.copy(&self.words, &header, &mut out);
        consumer.advance(&header, &self.head);
        Some(u64::from_ne_bytes(out.try_into().expect("one word")))
    }
}

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

#[test]
fn records_arrive_whole_and_in_order_while_the_ring_wraps_and_restarts() {
    check(3, || {
        let shared = Shared::new();
        let reader = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut consumer = Consumer::default();
                let got: Vec<u64> = (0..3).filter_map(|_| shared.take(&mut consumer)).collect();
                (consumer, got)
            })
        };
        let mut producer = Producer::default();
        let mut sent = Vec::new();
        for number in 1..=4 {
            match shared.push(&mut producer, number) {
                Ok(()) => sent.push(number),
                Err(NotPushed::Full) => thread::yield_now(),
                Err(other) => panic!("{other:?}"),
            }
        }
        let (mut consumer, mut got) = reader.join().expect("the reader");
        while let Some(number) = shared.take(&mut consumer) {
            got.push(number);
        }
        assert_eq!(got, sent);
    });
}

#[test]
fn no_reader_sleeps_with_a_waiting_record_and_no_doorbell() {
    check(4, || {
        let shared = Shared::new();
        let bell = Arc::new(AtomicBool::new(false));
        let sleeper = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut consumer = Consumer::default();
                let mut got = 0;
                for _ in 0..2 {
                    arm(&shared.sleeping);
                    if !consumer.has_record(&shared.tail) {
                        // Asleep from here on, unless the bell rings.
                        return (true, got);
                    }
                    disarm(&shared.sleeping);
                    got += u32::from(shared.take(&mut consumer).is_some());
                }
                (false, got)
            })
        };
        let (mut producer, mut woken) = (Producer::default(), WokenSleeps::default());
        let mut sent = 0;
        for number in 1..=2 {
            sent += u32::from(shared.push(&mut producer, number).is_ok());
            if woken.next_step(&shared.sleeping) == WakeUp::Ring {
                bell.store(true, Ordering::Relaxed);
            }
        }
        let (asleep, got) = sleeper.join().expect("the sleeper");
        let bell = bell.load(Ordering::Relaxed);
        assert!(!asleep || bell || got == sent, "asleep, {got} of {sent}");
    });
}

#[test]
fn a_chunk_is_reused_only_after_it_was_returned() {
    check(4, || {
        let returned = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
        let chunk = Arc::new(UnsafeCell::new(7_u32));
        let mut loans = Loans::with_slots(2);
        let loan = loans.loan(()).expect("a slot");
        let reader = {
            let (returned, chunk) = (Arc::clone(&returned), Arc::clone(&chunk));
            thread::spawn(move || {
                let seen = chunk.with(|_| true);
                give_back(&*returned, loan);
                seen
            })
        };
        for _ in 0..2 {
            let mut back = false;
            loans.reclaim_all(&*returned, |()| back = true);
            if back {
                chunk.with_mut(|_| ());
                assert_eq!(loans.len(), 0);
                // The slot is used again; the old return does not end it.
                let again = loans.loan(()).expect("a slot");
                assert_ne!(again.generation, loan.generation);
                assert_eq!(loans.reclaim_all(&*returned, |()| ()), 0);
                break;
            }
        }
        assert!(reader.join().expect("the reader"));
    });
}

#[test]
fn a_chunk_waiter_sees_the_chunk_or_gets_the_doorbell() {
    check(4, || {
        let returned = Arc::new([AtomicU32::new(0)]);
        let chunk_wait = Arc::new(AtomicU64::new(0));
        let mut loans = Loans::with_slots(1);
        let loan = loans.loan(()).expect("a slot");
        let reader = {
            let (returned, chunk_wait) = (Arc::clone(&returned), Arc::clone(&chunk_wait));
            thread::spawn(move || {
                give_back(&*returned, loan);
                must_wake_chunk_waiter(&chunk_wait, &AtomicU64::new(0))
            })
        };
        begin_chunk_wait(&chunk_wait);
        let seen = loans.reclaim_all(&*returned, |()| ()) == 1;
        let rung = reader.join().expect("the reader");
        assert!(seen || rung);
    });
}

#[test]
fn the_last_holder_of_a_chunk_writes_after_all_others_have_read() {
    check(4, || {
        let chunk = Arc::new((HolderCount::default(), UnsafeCell::new(7_u32)));
        chunk.0.begin();
        chunk.0.add();
        let leave = |chunk: &(HolderCount, UnsafeCell<u32>)| {
            chunk.1.with(|_| ());
            let is_last = chunk.0.leave();
            if is_last {
                // The pool gives it to another publisher.
                chunk.1.with_mut(|_| ());
            }
            is_last
        };
        let other = {
            let chunk = Arc::clone(&chunk);
            thread::spawn(move || leave(&chunk))
        };
        let last = [leave(&chunk), other.join().expect("the other holder")];
        assert_ne!(last[0], last[1]);
    });
}

#[test]
fn an_entity_with_work_is_queued_or_its_work_is_found() {
    check(4, || {
        // The history of a reader, and the entries of its executor's queue.
        let entity = Arc::new((ReadyFlag::default(), Mutex::new(0), Mutex::new(0)));
        let producer = {
            let entity = Arc::clone(&entity);
            thread::spawn(move || {
                for _ in 0..2 {
                    *entity.1.lock().expect("the history") += 1;
                    if entity.0.set() {
                        *entity.2.lock().expect("the queue") += 1;
                    }
                }
            })
        };
        let mut taken = 0;
        let mut run = || {
            let mut entries = entity.2.lock().expect("the queue");
            if *entries == 0 {
                return false;
            }
            *entries -= 1;
            drop(entries);
            entity.0.begin_take();
            taken += std::mem::take(&mut *entity.1.lock().expect("the history"));
            true
        };
        run();
        producer.join().expect("the producer");
        while run() {}
        assert_eq!(taken, 2);
    });
}

#[test]
fn what_a_producer_did_before_it_found_the_flag_set_is_seen_by_the_taker() {
    check(4, || {
        // Without a lock around the work: the flag alone orders it.
        let entity = Arc::new((ReadyFlag::default(), AtomicU32::new(0)));
        assert!(entity.0.set(), "it is queued");
        let producer = {
            let entity = Arc::clone(&entity);
            thread::spawn(move || {
                entity.1.store(1, Ordering::Relaxed);
                entity.0.set()
            })
        };
        entity.0.begin_take();
        let seen = entity.1.load(Ordering::Relaxed) == 1;
        let queued_again = producer.join().expect("the producer");
        assert!(seen || queued_again);
    });
}
