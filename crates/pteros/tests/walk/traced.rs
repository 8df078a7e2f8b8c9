//! What a trace adds to the walk: looks at the clock, and nothing else. The other
//! walks are of contexts that are not traced, and count those looks too.

use super::*;

/// Looks at the clock for one message in a context that is traced, beside those
/// that it takes anyway: publish call, runtime, serializing twice, handing over.
const LOOKS_OUT: u64 = 5;

/// Received, in the queue, executor, taken, decoded, callback's end.
const LOOKS_IN: u64 = 6;

/// What a small message costs the one who sends it and the one who hears it.
fn costs(domain: u32, trace: Option<TraceOptions>) -> [(u64, Calls); 2] {
    let open = || Party::open_traced(domain, false, trace.clone());
    let (talker, listener) = (open(), open());
    small_messages(&talker, &listener)
}

#[test]
fn a_trace_costs_looks_at_the_clock_and_no_allocation_or_call() {
    let [sent, received] = costs(227, None);
    let [sent_traced, received_traced] = costs(228, Some(TraceOptions::default()));
    println!("untraced: {sent:?}, {received:?}; traced: {sent_traced:?}, {received_traced:?}");
    for (before, after, looks) in [
        (sent, sent_traced, LOOKS_OUT),
        (received, received_traced, LOOKS_IN),
    ] {
        // Announcements that are due fall into either.
        let more = |a: u64, b: u64| b.saturating_sub(a);
        assert!(more(before.0, after.0) <= ROUNDS / 10, "allocations");
        assert!(more(before.1.sends, after.1.sends) <= ROUNDS / 10);
        assert!(more(before.1.receives, after.1.receives) <= ROUNDS / 10);
        let looked = more(before.1.nows, after.1.nows);
        let expected = looks * ROUNDS;
        assert!(
            looked.abs_diff(expected) <= ROUNDS,
            "{looked} looks for {ROUNDS} messages, of which {expected} stamp"
        );
    }
}
