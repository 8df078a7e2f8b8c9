//! Fault points (`fault!` in `pteros-rtps`, `pteros-dcps`, `pteros-security`,
//! `pteros-runtime`, `pteros`, `pteros-container` and `pteros-bag`) by name, and their switches.
//!
//! A mutant is a bug that some seed must detect. A tolerated fault is one that
//! correct code must survive. A test compares these lists with the sources. Without
//! the cargo feature `faults` no build has fault points, and the switches do nothing.

#[cfg(feature = "faults")]
pub(crate) use pteros_rtps::fault::{arm, armed_faults, take_steps};

/// Chance in 1/10000 of a fault that always strikes.
pub(crate) const ALWAYS: u32 = 10_000;

/// A mutant: a bug that a fault point switches on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Its name.
    pub name: &'static str,
    /// Its effect.
    pub what: &'static str,
    /// The workload of nodes that must detect it. `None`: graphs and scenarios.
    pub workload: Option<&'static str>,
}

/// Mutants of the engine, each with its effect. Most are bugs that other DDS
/// implementations had in the field.
const ENGINE_MUTANTS: &str = "
# RTPS reader.
nack-not-rescheduled: a NACK without result is not repeated
nack-omits-the-last: the highest announced sequence number is never requested
acknowledges-one-too-many: acknowledges the first missing sample
fragments-not-requested: missing fragments are not requested
gap-ignored: GAPs are not processed
gap-one-too-long: the range of a GAP is taken as one longer
gap-processed-number-by-number: a GAP costs time in proportion to its range
volatile-reader-restarts: a volatile reader starts over after an interruption
loss-not-reported: lost samples are not reported
full-queue-stalls-for-ever: samples that found the queue full are never delivered
reader-deadline-reported-once: only the first missed deadline is reported
liveliness-monitored-once: a writer that is alive again is not monitored
writer-lease-end-not-reported: no event when a writer's lease ends
dropped-sample-counts-as-received: a sample dropped by a full reorder buffer counts as received
buffered-sample-delivered-twice: a duplicate of a buffered sample is delivered too
missing-sample-skipped: delivery does not wait for a missing sample
history-counts-as-lost: samples written before the match count as lost
best-effort-out-of-order: a late best-effort sample is delivered
best-effort-loss-not-reported: best-effort losses are not counted
reassembly-without-last-fragment: a sample is delivered without its last fragment
fragment-at-wrong-offset: a fragment is stored at the offset of its predecessor
intervals-merge-over-a-gap: two intervals of sequence numbers merge over a missing one
intervals-without-limit: intervals of sequence numbers grow without limit
reorder-buffer-without-limit: the reorder buffer grows without limit
jump-believed-at-once: a number far ahead is believed without a second message
contradiction-ignored: heartbeats that contradict what is believed change nothing
best-effort-jump-is-final: a best-effort reader drops all samples below a forged number
# RTPS writer.
heartbeat-not-repeated: a heartbeat without reply is not repeated
heartbeat-period-not-reset: new samples do not reset the heartbeat period
keep-all-overwrites: KEEP_ALL overwrites unacknowledged samples
sample-dropped-too-early: a sample is dropped one acknowledgement too early
acknowledged-one-too-early: everything counts as acknowledged while one sample is not
best-effort-reader-awaited: a writer waits for best-effort readers, which never acknowledge
overwritten-not-announced: samples overwritten unsent are not announced as lost
lifespan-never-ends: expired samples are kept for late joiners
writer-deadline-reported-once: only the first missed deadline is reported
own-liveliness-loss-not-reported: a manual writer never loses its liveliness
final-gap-dropped: no GAP announces that the last numbers will not come
retransmission-not-sent: requested samples are not sent again
wrong-fragment-retransmitted: the fragment after the requested one is sent
retransmission-restarts: the retransmission of a large sample starts over with every burst
nack-frag-ignored: NACK_FRAGs are not processed
volatile-reader-gets-history: a volatile reader gets the history of transient-local readers
late-joiner-gets-no-history: a late joiner starts with the next sample
late-joiner-gets-too-few: a late joiner gets one sample too few
removed-reader-still-awaited: a removed reader still has to acknowledge
gap-covers-the-next: a GAP covers the sample sent along with it
heartbeat-begins-too-high: heartbeats omit the oldest sample
heartbeat-ends-too-low: heartbeats omit the newest sample
unsent-acknowledged: acknowledgements of samples that were never sent are believed
# Discovery.
lease-never-ends: dead participants are never removed
lease-ends-too-early: a lease ends after half of its duration
lease-not-renewed: traffic does not renew leases
lease-on-the-wrong-clock: leases end by the wall clock
announced-only-at-startup: announcements stop after the startup burst
deletions-not-announced: deleted endpoints are not announced
tombstones-not-kept: tombstones are dropped while a peer may return
liveliness-not-asserted: automatic writers do not assert their liveliness
end-of-match-not-reported: a match ends without an event
durability-not-compared: volatile writers match transient-local readers
source-not-judged: packets in the name of a participant are accepted from any address
dispose-is-final: a participant that was disposed of is not probed
contradicting-sedp-ignored: two announcements with one number cause nothing
forged-count-is-restart: a forged heartbeat count makes a writer look restarted
# Paths and silence.
silent-path-kept: traffic stays on a path that does not answer
silent-path-asked-once: a path that does not answer is asked only once
path-question-not-answered: questions about a path get no answer
any-datagram-proves-a-path: a path counts as working in both directions after any datagram
new-address-not-asked: an address that has never answered is not asked
moved-path-not-routed: traffic goes on to the former address of a peer
changed-address-not-announced: another address of this host is not announced
interface-change-not-followed: notices about interfaces are ignored
stalled-reader-not-reported: a reader that acknowledges nothing is not reported
end-of-stall-not-reported: no event when a stalled reader goes on
# The runtime.
local-reader-omitted: the first of several local readers gets nothing
local-history-one-too-few: local late joiners get one sample too few
keep-last-drops-newest: a full KEEP_LAST queue drops the newest
overwritten-not-counted: overwritten samples are not counted
queue-without-limit: KEEP_ALL queues grow without limit
blocked-samples-not-requested: samples held back by a full queue are never requested
end-of-match-not-counted: the count of matches only grows
incompatible-qos-not-reported: incompatible policies are not reported
earlier-deadline-ignored: a timer is never brought forward
publish-asserts-no-liveliness: a publish does not assert the participant's liveliness
publish-times-out-late: a publish waits longer than max_blocking_time
node-removal-not-announced: a removed node stays in the graph
# Shared-memory connections, filters, batching, coherent sets.
connection-end-ignored: sends continue on an ended shared-memory connection
content-filter-not-applied: content filters are not applied
batch-never-sent: samples of a batch are not sent at the end of the latency budget
coherent-set-delivered-early: samples of a coherent set are delivered as they come
incomplete-set-delivered: a coherent set with a missing sample is delivered
set-without-one-writer-delivered: a coherent set without one writer's part is delivered
group-order-ignored: samples of a group are delivered as they come
# Services.
reply-of-other-client-taken: a client takes replies that name another client
reply-names-another-request: a reply names the request before its own
finished-call-answered: a finished call can be answered again
call-waits-for-lost-servers: a call goes on though all its servers are gone
early-reply-dropped: a reply is dropped if its reader is not matched yet
early-reply-kept-for-ever: a reply is not sent after its reader is matched
service-mapping-not-checked: every peer is treated as if it were Pteros
";

/// Mutants above the engine, each behind the workload that must detect it.
const NODE_MUTANTS: &str = "
actions/result-not-sent-to-waiters: a waiting client does not get a goal's result
actions/canceling-state-not-recorded: a goal continues though its cancellation was accepted
actions/rejected-goal-reported-accepted: the client of a rejected goal gets an acceptance
parameters/parameters-set-in-part: of parameters set atomically only the first is set
parameters/parameter-events-not-published: no parameter event is published
lifecycle/transition-event-not-published: no transition event is published
lifecycle/illegal-transition-accepted: a transition is accepted in a state where it is illegal
lifecycle/dependency-not-awaited: a supervisor brings a node up before its dependency
crashes/restarted-node-not-detected: a supervisor does not notice that one of two nodes of a name is gone
crashes/call-to-dead-server-stays-open: asynchronous calls do not end with their server
crashes/wait-for-dead-server-goes-on: a blocking call does not end with its server
components/unloaded-component-stays: an unloaded component is not dropped
components/component-id-reused: a component gets the id of the previous one
crowds/memory-without-budget: unfinished samples of a participant take as much as they like
crowds/retransmission-without-limit: requests are served whatever the reader acknowledged
crowds/full-table-refuses-all: a full table of participants or endpoints refuses every newcomer
crowds/useless-peer-keeps-lease: a peer that is never useful keeps the lease it announces
floods/one-address-takes-all: one address may spend what all strangers have for discovery
floods/source-answer-kept-for-all: an address speaks for a participant once another one may
floods/amplification-without-limit: an unvalidated participant gets more than three times what it sent
secured/plain-user-data-accepted: unprotected data of a protected topic is accepted
secured/user-data-sent-in-clear: no endpoint protects its data, whatever the governance says
secured/foreign-identity-accepted: the issuer of a certificate is not checked
secured/full-handshake-table-refuses-all: a full table of handshakes refuses every newcomer
secured/plain-dispose-of-authenticated-believed: an unprotected dispose removes an authenticated participant
recordings/full-buffer-not-counted: messages that find the recorder's buffer full are not counted
recordings/failed-chunk-counts-as-written: messages that the disk refused count as written
recordings/queue-losses-not-counted: messages replaced in the recorder's queue are not counted
recordings/queue-loss-counts-twice: a message replaced in the recorder's queue counts as lost on the wire too
recordings/missing-numbers-not-counted: numbers that did not arrive, also those of a GAP, do not count as missing
recordings/publishers-share-an-account: a publisher that starts again continues the account of the one before
recordings/writer-losses-not-counted: messages that the disk refused are not counted
recordings/written-after-a-failure: a file is written on behind a torn record
recordings/old-chunk-not-flushed: messages stay in memory until their chunk is full
recordings/sync-not-asked: a file is synced only when it ends
executors/timer-skips-a-tick: a timer ticks every other time
executors/static-period-skipped: a static executor runs every other period
";

/// Faults that correct code tolerates: refused memory, limits that are reached
/// early, spurious wake-ups, lost hints.
pub const TOLERATED_FAULTS: &[&str] = &[
    "no-memory-for-intervals",
    "no-memory-to-reorder",
    "no-memory-for-fragments",
    "ready-queue-full-early",
    "writer-full-early",
    "unvalidated-participants-full-early",
    "burst-ends-early",
    "little-memory-for-a-writer",
    "chunk-not-reused",
    "index-guess-wrong",
    "no-piggybacked-heartbeat",
    "heartbeat-not-answered",
    "acknowledgement-always-requested",
    "nack-without-delay",
    "lease-renewals-dropped",
    "spurious-wake-up",
];

/// All mutants.
pub fn mutants() -> impl Iterator<Item = Mutant> {
    let lines = ENGINE_MUTANTS.lines().chain(NODE_MUTANTS.lines());
    lines.filter_map(|line| {
        let (place, what) = line.split_once(": ")?;
        let (workload, name) = match place.split_once('/') {
            Some((workload, name)) => (Some(workload), name),
            None => (None, place),
        };
        Some(Mutant {
            name,
            what,
            workload,
        })
    })
}

/// Switches all fault points of this thread off.
pub(crate) fn disarm() {
    arm(0, &[]);
}

#[cfg(not(feature = "faults"))]
pub(crate) fn arm(_seed: u64, _faults: &[(&'static str, u32)]) {}

#[cfg(not(feature = "faults"))]
pub(crate) fn armed_faults() -> Vec<(&'static str, u32)> {
    Vec::new()
}

/// Work steps since the last call. Always 0 without fault points.
#[cfg(not(feature = "faults"))]
pub(crate) fn take_steps() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn collect(folder: &Path, names: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, names);
            } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("fault.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let uses = text.split("fault!(\"").skip(1);
                names.extend(uses.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
            }
        }
    }

    #[test]
    fn every_fault_point_of_the_engine_is_listed_and_every_listed_one_exists() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
        let mut found = BTreeSet::new();
        for name in [
            "rtps",
            "dcps",
            "security",
            "runtime",
            "pteros",
            "container",
            "bag",
        ] {
            collect(&crates.join(name).join("src"), &mut found);
        }
        let bugs = mutants().map(|mutant| mutant.name);
        let all: Vec<_> = bugs.chain(TOLERATED_FAULTS.iter().copied()).collect();
        let listed: BTreeSet<String> = all.iter().copied().map(Into::into).collect();
        assert_eq!(listed.len(), all.len(), "a name twice");
        assert_eq!(found, listed);
    }

    #[test]
    fn normal_builds_have_no_fault_points() {
        assert_eq!(pteros_rtps::fault::COMPILED, cfg!(feature = "faults"));
        if !cfg!(feature = "faults") {
            assert!(!pteros_rtps::fault::is_injected("gap-ignored"));
        }
    }
}
