//! Unique node names.
#![allow(clippy::disallowed_methods, reason = "two threads start at once")]

use std::thread;
use std::time::Duration;

use pteros::error::CreateError;
use pteros::prelude::*;

const SPAN: Duration = Duration::from_millis(300);
const TIMEOUT: Duration = Duration::from_secs(20);

fn context(domain: u32) -> Context {
    Context::with_options(ContextOptions::local(domain)).unwrap()
}

fn unique(context: &Context, span: Duration) -> Result<Node, CreateError> {
    context.create_node(NodeOptions::new("arm").unique_name(span))
}

/// Waits until the context has discovered that many nodes. On a busy machine that
/// takes longer than any reasonable span.
fn wait_for_nodes(context: &Context, count: usize) {
    let heard = || context.graph().nodes().len() == count;
    assert!(context.graph().wait_until(TIMEOUT, heard));
}

#[test]
fn a_name_used_by_another_process_is_refused_until_it_is_free() {
    let (one, other) = (context(94), context(94));
    let first = one.create_node("arm").unwrap();
    wait_for_nodes(&other, 1);
    let error = unique(&other, SPAN).unwrap_err().to_string();
    for word in ["\"/arm\"", "127.0.0.1:", "__node:=another_name"] {
        assert!(error.contains(word), "{word}: {error}");
    }
    // A refused node is not in the graph.
    assert_eq!(other.graph().nodes().len(), 1);
    let elsewhere = NodeOptions::new("arm").namespace("/left").unique_name(SPAN);
    drop(other.create_node(elsewhere).unwrap());
    drop(first);
    wait_for_nodes(&other, 0);
    drop(unique(&other, SPAN).unwrap());
}

#[test]
fn a_name_used_by_this_process_is_refused() {
    let context = context(95);
    let _first = context.create_node("arm").unwrap();
    let error = unique(&context, SPAN).unwrap_err().to_string();
    assert!(
        error.contains("taken by another node of this process"),
        "{error}"
    );
}

#[test]
fn of_two_nodes_started_at_once_one_gets_the_name() {
    let (one, other) = (context(93), context(93));
    let _met = (
        one.create_node("left").unwrap(),
        other.create_node("right").unwrap(),
    );
    wait_for_nodes(&one, 2);
    wait_for_nodes(&other, 2);
    // Long enough for the announcement of a name on a busy machine.
    let span = 5 * SPAN;
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| unique(&one, span));
        let second = unique(&other, span);
        (first.join().unwrap(), second)
    });
    assert_eq!(u8::from(first.is_ok()) + u8::from(second.is_ok()), 1);
}
