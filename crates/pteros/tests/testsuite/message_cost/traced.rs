//! Cost of tracing: clock reads, and nothing else. The other tests of this binary
//! are not traced, and count clock reads too.

use super::*;

/// Additional clock reads of a traced publication: publish call, runtime,
/// serialization twice, handing over.
const CLOCK_READS_SENDING: u64 = 5;

/// Received, in the queue, executor, taken, decoded, callback's end.
const CLOCK_READS_RECEIVING: u64 = 6;

/// The cost of a small message for the publisher and for the subscription.
fn costs(trace: Option<TraceOptions>) -> [(u64, SystemCalls); 2] {
    let domain = unused_domain();
    let open = || CountingProcess::open_traced(domain, false, trace.clone());
    let (talker, listener) = (open(), open());
    small_messages(&talker, &listener)
}

#[test]
fn tracing_costs_clock_reads_and_no_allocation_or_system_call() {
    let [sent, received] = costs(None);
    let [sent_traced, received_traced] = costs(Some(TraceOptions::default()));
    println!("untraced: {sent:?}, {received:?}; traced: {sent_traced:?}, {received_traced:?}");
    for (before, after, looks) in [
        (sent, sent_traced, CLOCK_READS_SENDING),
        (received, received_traced, CLOCK_READS_RECEIVING),
    ] {
        // Announcements that are due fall into either.
        let more = |a: u64, b: u64| b.saturating_sub(a);
        assert!(more(before.0, after.0) <= ROUNDS / 10, "allocations");
        assert!(more(before.1.sends, after.1.sends) <= ROUNDS / 10);
        assert!(more(before.1.receives, after.1.receives) <= ROUNDS / 10);
        let looked = more(before.1.monotonic_reads, after.1.monotonic_reads);
        let expected = looks * ROUNDS;
        assert!(
            looked.abs_diff(expected) <= ROUNDS,
            "{looked} looks for {ROUNDS} messages, of which {expected} stamp"
        );
    }
}
