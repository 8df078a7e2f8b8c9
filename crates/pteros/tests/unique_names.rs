//! Names that are to be a node's own.
#![allow(
    clippy::disallowed_methods,
    reason = "two that start at once are threads"
)]

use std::thread;
use std::time::Duration;

use pteros::NodeError;
use pteros::prelude::*;

const SPAN: Duration = Duration::from_millis(300);
const PATIENCE: Duration = Duration::from_secs(20);

fn context(domain: u32) -> Context {
    Context::with_options(ContextOptions::local(domain)).unwrap()
}

fn unique(context: &Context, span: Duration) -> Result<Node, NodeError> {
    context.node_with(NodeOptions::new("arm").unique_name(span))
}

/// Waits until the context has heard of so many nodes: on a busy machine that
/// takes longer than any span worth giving.
fn hears_of(context: &Context, count: usize) {
    let heard = || context.graph().nodes().len() == count;
    assert!(context.graph().wait_until(PATIENCE, heard));
}

#[test]
fn a_name_that_another_process_has_is_refused_until_it_is_free() {
    let (one, other) = (context(94), context(94));
    let first = one.node("arm").unwrap();
    hears_of(&other, 1);
    let error = unique(&other, SPAN).unwrap_err().to_string();
    for word in ["\"/arm\"", "127.0.0.1:", "__node:=another_name"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    // What was refused is not there.
    assert_eq!(other.graph().nodes().len(), 1);
    let elsewhere = NodeOptions::new("arm").namespace("/left").unique_name(SPAN);
    other.node_with(elsewhere).unwrap();
    drop(first);
    hears_of(&other, 0);
    unique(&other, SPAN).unwrap();
}

#[test]
fn a_name_that_this_process_has_is_refused() {
    let context = context(95);
    let _first = context.node("arm").unwrap();
    let error = unique(&context, SPAN).unwrap_err().to_string();
    assert!(
        error.contains("taken by another node of this process"),
        "{error}"
    );
}

#[test]
fn of_two_that_start_at_once_one_gets_the_name() {
    let (one, other) = (context(93), context(93));
    let _met = (one.node("left").unwrap(), other.node("right").unwrap());
    hears_of(&one, 2);
    hears_of(&other, 2);
    // Long enough for the news of a name to cross a busy machine.
    let span = 5 * SPAN;
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| unique(&one, span));
        let second = unique(&other, span);
        (first.join().unwrap(), second)
    });
    assert_eq!(u8::from(first.is_ok()) + u8::from(second.is_ok()), 1);
}
