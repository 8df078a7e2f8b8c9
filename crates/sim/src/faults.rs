//! The fault points (`fault!` in `pteros-rtps`, `pteros-rmw`, `pteros` and
//! `pteros-component`) by name: bugs, each of which some seed must notice, and mishaps, with which
//! correct code must cope. A test compares the lists with the sources.

use crate::nodes::Act;

/// Bugs that are switched on one by one to test the tester, with what goes
/// wrong. Most are what other stacks had in the field.
pub const BUGS: &[(&str, &str)] = &[
    // The reader's protocol machine.
    (
        "nack-not-rescheduled",
        "a request that brought nothing is not repeated",
    ),
    (
        "nack-leaves-out-the-last",
        "the highest number announced is never asked for",
    ),
    (
        "acknowledges-one-too-many",
        "acknowledges the first sample that is missing",
    ),
    (
        "fragments-not-asked-for",
        "missing pieces of a sample are not asked for",
    ),
    ("gap-ignored", "GAPs are not read"),
    ("gap-one-too-long", "a GAP's run is taken for one longer"),
    (
        "gap-walked-number-by-number",
        "a GAP costs as much as the range it names",
    ),
    (
        "forgets-where-it-left-off",
        "a volatile reader starts over after an interruption",
    ),
    ("loss-not-told", "lost samples are not reported"),
    (
        "stalled-for-ever",
        "what found no room in the queue stays behind",
    ),
    (
        "reader-deadline-missed-once",
        "only the first missed deadline is reported",
    ),
    (
        "liveliness-watched-once",
        "a writer that lived again is not watched",
    ),
    (
        "writer-dies-unnoticed",
        "no event when a writer's lease ends",
    ),
    (
        "dropped-sample-stays-known",
        "what a full reorder buffer dropped counts as received",
    ),
    (
        "waiting-sample-taken-twice",
        "a repeat of a waiting sample is delivered too",
    ),
    (
        "hole-skipped",
        "delivery does not wait for a missing sample",
    ),
    (
        "history-counts-as-lost",
        "what was written before the match counts as lost",
    ),
    (
        "best-effort-runs-back",
        "a late best-effort sample is delivered",
    ),
    (
        "best-effort-loss-not-told",
        "best-effort losses are not counted",
    ),
    (
        "whole-without-its-last-piece",
        "a sample is delivered without its last piece",
    ),
    (
        "piece-in-the-wrong-place",
        "a piece is put where its predecessor belongs",
    ),
    (
        "runs-merge-over-a-hole",
        "two runs of numbers swallow the one between them",
    ),
    (
        "numbers-without-limit",
        "runs of numbers grow without limit",
    ),
    (
        "reordering-without-limit",
        "the reorder buffer grows without limit",
    ),
    // The writer's.
    (
        "heartbeat-not-repeated",
        "a heartbeat without answer is not repeated",
    ),
    (
        "heartbeat-pause-not-reset",
        "new samples do not bring heartbeats back to their pace",
    ),
    (
        "keep-all-overwrites",
        "KEEP_ALL overwrites what is not acknowledged",
    ),
    (
        "sample-dropped-too-early",
        "a sample is dropped one acknowledgement too early",
    ),
    (
        "acknowledged-one-too-early",
        "all counts as acknowledged while one is not",
    ),
    (
        "best-effort-reader-waited-for",
        "a writer waits for readers that never acknowledge",
    ),
    (
        "overwritten-not-told",
        "samples overwritten unsent are declared irrelevant",
    ),
    (
        "lifespan-never-ends",
        "expired samples are kept for late joiners",
    ),
    (
        "writer-deadline-missed-once",
        "only the first missed deadline is reported",
    ),
    (
        "own-silence-unnoticed",
        "a manual writer never loses its liveliness",
    ),
    (
        "final-gap-dropped",
        "nobody is told that the last numbers will not come",
    ),
    ("repair-not-sent", "what was asked for again is not sent"),
    (
        "wrong-piece-repaired",
        "the piece after the one asked for is sent",
    ),
    (
        "resend-begins-anew",
        "a large sample sent again starts over with every burst",
    ),
    ("nack-frag-ignored", "requests for pieces are not read"),
    (
        "volatile-reader-gets-history",
        "a volatile reader is sent what was kept for others",
    ),
    (
        "late-joiner-gets-no-history",
        "a late joiner begins with what comes next",
    ),
    (
        "late-joiner-gets-too-few",
        "a late joiner gets one sample too few",
    ),
    (
        "gone-reader-not-forgotten",
        "a reader that is gone still has to acknowledge",
    ),
    (
        "gap-covers-the-next",
        "a GAP covers the sample sent along with it",
    ),
    (
        "heartbeat-begins-too-high",
        "heartbeats leave out the oldest sample",
    ),
    (
        "heartbeat-ends-too-low",
        "heartbeats leave out the newest sample",
    ),
    // Discovery.
    ("lease-never-ends", "the dead are never forgotten"),
    ("lease-ends-too-early", "half a lease of silence ends it"),
    ("lease-not-renewed", "traffic does not renew leases"),
    ("lease-on-the-wrong-clock", "leases end by the wall clock"),
    (
        "announced-only-at-birth",
        "announcements stop after the first burst",
    ),
    (
        "endings-not-told",
        "endpoints that are gone are not taken back",
    ),
    (
        "endings-not-held",
        "endings are forgotten while somebody may come back",
    ),
    (
        "liveliness-not-asserted",
        "automatic writers do not prove themselves alive",
    ),
    (
        "answers-without-limit",
        "strangers get more bytes than they sent, without limit",
    ),
    ("end-of-match-not-told", "a match ends without an event"),
    (
        "durability-not-compared",
        "volatile writers match transient-local readers",
    ),
    // The runtime.
    (
        "local-reader-left-out",
        "the first of several local readers gets nothing",
    ),
    (
        "latches-one-too-few",
        "local late joiners get one sample too few",
    ),
    (
        "newest-makes-room",
        "a full KEEP_LAST queue drops the newest",
    ),
    (
        "overwritten-not-counted",
        "overwritten samples are not counted",
    ),
    ("queue-without-limit", "KEEP_ALL queues grow without limit"),
    (
        "held-back-for-ever",
        "nobody asks for samples held back by a full queue",
    ),
    (
        "end-of-match-not-counted",
        "the count of matches only grows",
    ),
    ("misfit-not-told", "incompatible policies are not reported"),
    (
        "earlier-deadline-ignored",
        "a timer is never brought forward",
    ),
    (
        "publishing-proves-no-life",
        "a publish is no sign of life of the participant",
    ),
    (
        "publish-times-out-late",
        "a publish waits longer than max_blocking_time",
    ),
    (
        "end-of-node-not-told",
        "a node that is gone stays in the graph",
    ),
    // Links, filters, batches, coherent sets.
    (
        "end-of-link-ignored",
        "a link that has ended is still sent by",
    ),
    ("filter-lets-all-pass", "content filters are not applied"),
    (
        "held-back-for-a-batch-for-ever",
        "what a latency budget holds back is not sent when it is over",
    ),
    (
        "set-seen-before-its-end",
        "samples of a coherent set are handed on as they come",
    ),
    (
        "hole-in-a-set-overlooked",
        "a coherent set of which a sample is missing is handed on",
    ),
    (
        "lost-part-of-a-set-overlooked",
        "a set of which one writer's part is missing is handed on",
    ),
    (
        "order-of-a-group-ignored",
        "samples of a group are handed on as they come",
    ),
    // Services.
    (
        "reply-of-another-taken",
        "a client takes replies that name another client",
    ),
    (
        "reply-names-another-request",
        "a reply names the request before its own",
    ),
    (
        "forgotten-call-answered",
        "a call that is over can be answered once more",
    ),
    (
        "lost-servers-waited-for",
        "a call goes on though all its servers are gone",
    ),
    (
        "early-reply-dropped",
        "a reply whose reader is not met yet is dropped",
    ),
    (
        "early-reply-kept-for-ever",
        "a reply whose reader has been met is not sent",
    ),
    (
        "dialect-not-asked-for",
        "everybody is spoken to as if it were Pteros",
    ),
];

/// Bugs of what stands above the engine, with the act that must notice them.
pub const NODE_BUGS: &[(&str, &str, Act)] = &[
    (
        "result-told-to-nobody",
        "who waits for a goal's result is not answered",
        Act::Actions,
    ),
    (
        "cancelling-not-noted",
        "a goal goes on though its cancelling was promised",
        Act::Actions,
    ),
    (
        "rejected-goal-is-told-accepted",
        "the client of a rejected goal is told that it was accepted",
        Act::Actions,
    ),
    (
        "parameters-set-in-part",
        "of parameters set at once only the first is",
        Act::Parameters,
    ),
    (
        "parameter-events-not-told",
        "nobody hears of parameters that were set",
        Act::Parameters,
    ),
    (
        "transition-not-told",
        "nobody hears of a managed node's transitions",
        Act::Lifecycle,
    ),
    (
        "transition-of-any-state-taken",
        "a transition is taken in states that it does not lead away from",
        Act::Lifecycle,
    ),
    (
        "dependency-not-awaited",
        "a supervisor brings a node up before what it depends on",
        Act::Lifecycle,
    ),
    (
        "reborn-node-not-noticed",
        "a supervisor overlooks that one of two nodes of a name has gone",
        Act::Crashes,
    ),
    (
        "call-to-the-dead-stays-open",
        "calls that nobody waits for in a thread do not end with their server",
        Act::Crashes,
    ),
    (
        "wait-for-the-dead-goes-on",
        "who waits for an answer does not hear of its server's end",
        Act::Crashes,
    ),
    (
        "unloaded-component-stays",
        "an unloaded component is not dropped",
        Act::Components,
    ),
    (
        "component-number-given-again",
        "a component gets the number of the one before",
        Act::Components,
    ),
    (
        "timer-skips-a-tick",
        "a timer ticks every other time",
        Act::Executors,
    ),
    (
        "static-period-skipped",
        "a static executor runs every other period",
        Act::Executors,
    ),
];

/// What may happen to correct code at any time: refused memory and limits
/// that are reached early, early wake-ups, hints that get lost.
pub const MISHAPS: &[&str] = &[
    "no-room-for-numbers",
    "no-room-to-reorder",
    "no-room-for-pieces",
    "ready-queue-full-early",
    "writer-full-early",
    "candidates-full-early",
    "burst-ends-early",
    "little-memory-for-a-writer",
    "memory-not-had-again",
    "place-not-guessed",
    "no-heartbeat-along",
    "heartbeat-not-answered",
    "acknowledgement-always-asked",
    "nack-at-once",
    "renewals-forgotten",
    "woken-for-nothing",
];

/// The bug of that name.
pub fn bug(name: &str) -> Option<&'static str> {
    let of_nodes = NODE_BUGS.iter().map(|(known, ..)| *known);
    let mut known = BUGS.iter().map(|(known, _)| *known).chain(of_nodes);
    known.find(|known| *known == name)
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
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = BTreeSet::new();
        for name in ["rtps", "rmw", "pteros", "component"] {
            collect(&crates.join(name).join("src"), &mut found);
        }
        let of_nodes = NODE_BUGS.iter().map(|(name, ..)| *name);
        let bugs = BUGS.iter().map(|(name, _)| *name).chain(of_nodes);
        let listed: BTreeSet<String> = bugs
            .chain(MISHAPS.iter().copied())
            .map(Into::into)
            .collect();
        let count = BUGS.len() + NODE_BUGS.len() + MISHAPS.len();
        assert_eq!(listed.len(), count, "a name twice");
        assert_eq!(found, listed);
    }

    #[test]
    fn normal_builds_have_no_fault_points() {
        assert_eq!(pteros_rtps::fault::COMPILED, cfg!(feature = "faults"));
        if !cfg!(feature = "faults") {
            assert!(!pteros_rtps::fault::strikes("gap-ignored"));
        }
    }
}
