//! Signals act on a whole process, so each test case runs in a child: this test
//! binary again, with an environment variable that selects the part.
#![allow(clippy::disallowed_methods, reason = "a child reads its part")]

use std::os::unix::process::ExitStatusExt;

use pteros_net::{
    Events, Poller, ShutdownSignals, handle_shutdown_signals, shutdown_request, shutdown_signal,
};
use pteros_test_support::own_process;
use pteros_test_support::program::Program;

const PART: &str = "PTEROS_TEST_SHUTDOWN_PART";

/// The child: prints what it sees until it is killed or told to end.
#[test]
fn child() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    if part == "by choice" {
        handle_by_choice();
        return;
    }
    let signal = shutdown_signal().expect("install");
    assert!(std::ptr::eq(signal, shutdown_signal().expect("again")));
    let poller = Poller::new().expect("epoll");
    poller.add(signal, 0).expect("add");
    let mut events = Events::default();
    if part == "twice" {
        // To this thread, so each is handled before the next statement.
        for _ in 0..2 {
            nix::sys::signal::raise(nix::sys::signal::Signal::SIGTERM).expect("raise");
        }
        println!("alive {}", signal.is_requested());
        return;
    }
    println!("ready");
    while !signal.is_requested() {
        poller.wait(&mut events, None).expect("wait");
    }
    println!("asked");
    if part == "clears" {
        signal.clear();
        println!("cleared {}", signal.is_requested());
    }
    while !signal.is_requested() || part == "stays" {
        let timeout = (part == "stays").then_some(std::time::Duration::from_secs(60));
        // Level-triggered: readable already, so look at nothing but the kill.
        poller.wait(&mut Events::default(), timeout).expect("wait");
    }
    println!("asked again");
}

/// Handles both signals, then one, then the other, then none.
fn handle_by_choice() {
    use nix::sys::signal::{Signal, raise};
    let request = shutdown_request().expect("a descriptor");
    let both = ShutdownSignals {
        interrupt: true,
        terminate: true,
    };
    handle_shutdown_signals(both).expect("handle");
    // The first one counts. No other one ends a process that has chosen.
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGINT] {
        raise(signal).expect("raise");
        assert_eq!(request.received().map(|first| first.name()), Some("SIGINT"));
    }
    request.clear();
    for (interrupt, terminate) in [(false, false), (true, false), (false, true), (false, false)] {
        let signals = ShutdownSignals {
            interrupt,
            terminate,
        };
        // Twice is once.
        for _ in 0..2 {
            handle_shutdown_signals(signals).expect("handle");
        }
        for (signal, is_chosen) in [(Signal::SIGINT, interrupt), (Signal::SIGTERM, terminate)] {
            assert_eq!(is_handled(signal as u32), is_chosen, "{signal}");
            if is_chosen {
                raise(signal).expect("raise");
                assert!(request.is_requested());
                let received = request.received().expect("a signal");
                assert_eq!(received.name(), signal.as_str());
                assert_eq!(i32::from(received.number()), signal as i32);
                request.clear();
                assert_eq!(request.received(), None);
                request.request();
                assert_eq!(request.received(), None);
                request.clear();
            }
        }
    }
    println!("handled by choice");
}

/// Whether this process has a handler of the signal.
fn is_handled(number: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("read");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = u64::from_str_radix(mask.expect("a mask").trim(), 16).expect("a number");
    mask >> (number - 1) & 1 == 1
}

fn start(part: &str) -> Program {
    let mut command = own_process::command("shutdown::child");
    Program::start(command.env(PART, part))
}

#[test]
fn the_first_signal_requests_shutdown_and_the_second_kills() {
    let mut child = start("stays");
    child.expect("ready");
    child.signal("TERM");
    child.expect("asked");
    // Those that come at once are the first one again.
    let status = loop {
        child.signal("TERM");
        if let Some(status) = child.try_wait() {
            break status;
        }
        std::thread::yield_now();
    };
    assert_eq!(
        status.signal(),
        Some(nix::sys::signal::Signal::SIGTERM as i32)
    );
}

#[test]
fn a_signal_that_comes_twice_at_once_is_one_request() {
    let mut child = start("twice");
    child.expect("alive true");
    child.finish();
}

#[test]
fn after_a_clear_the_next_signal_requests_shutdown_again() {
    let mut child = start("clears");
    child.expect("ready");
    child.signal("TERM");
    child.expect("cleared false");
    child.signal("TERM");
    child.expect("asked again");
    child.finish();
}

#[test]
fn chosen_signals_request_shutdown_and_end_nothing_and_the_others_have_their_handlers_back() {
    let mut child = start("by choice");
    child.expect("handled by choice");
    child.finish();
}
