//! A router process that is killed and started again, while contexts communicate
//! through it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use pteros::config::ZenohSettings;
use pteros::interfaces::example_interfaces::srv::{AddTwoInts, AddTwoIntsRequest};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::service::{CallError, Service};
use pteros_test_support::own_process;
use pteros_zenoh::Router;

use crate::harness::{SOON, counter, free_port, next, open_with, settings_of, text, until};

/// The port at which a child process of this program is a router.
const ROUTER_PORT: &str = "PTEROS_TEST_PART";
/// The line that it prints then.
const LISTENS: &str = "the router listens";
/// Kills before memory is measured for the first time.
const WARM_UP: usize = 20;
/// The most that the process may grow by in all later ones.
const GROWTH_MAX: usize = 4 << 20;

struct RouterProcess(Child);

impl RouterProcess {
    /// Starts it and waits until it listens.
    fn start(port: u16) -> Self {
        let mut child = own_process::command("router_kills::the_router_process")
            .env(ROUTER_PORT, port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let own = Self(child);
        let listens = |line: std::io::Result<String>| line.unwrap().contains(LISTENS);
        assert!(output.lines().any(listens), "no router listens at {port}");
        own
    }
}

impl Drop for RouterProcess {
    /// SIGKILL: it says goodbye to nobody.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The child process, and nothing without its variable.
#[test]
fn the_router_process() {
    let Ok(port) = std::env::var(ROUTER_PORT) else {
        return;
    };
    let listen = format!("[\"tcp/127.0.0.1:{port}\"]");
    let _router = Router::start(&ZenohSettings {
        overrides: vec![("listen/endpoints".into(), listen)],
        ..ZenohSettings::default()
    })
    .unwrap();
    println!("{LISTENS}");
    // Its end is a kill, or the end of its parent.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Resident memory of this process in bytes.
fn resident() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    let resident = pages.split_whitespace().nth(1).unwrap();
    resident.parse::<usize>().unwrap() * 4096
}

fn kill_router(kills: usize) {
    let port = free_port();
    let mut router = RouterProcess::start(port);
    let open = || {
        let mut settings = settings_of(port, "client");
        let soon = "{period_init_ms: 20, period_max_ms: 100, period_increase_factor: 2}";
        settings
            .overrides
            .push(("connect/retry".into(), soon.into()));
        open_with(settings)
    };
    let [here, there] = [open(), open()];
    let [talker, listener] =
        [(&here, "talker"), (&there, "listener")].map(|(of, name)| of.create_node(name).unwrap());
    let publisher: Publisher<Text> = talker.create_publisher("chatter").unwrap();
    let heard: Subscription<Text> = listener.create_polled_subscription("chatter").unwrap();
    let latched = || "latched".keep_last(1).transient_local();
    let latch: Publisher<Text> = talker.create_publisher(latched()).unwrap();
    let late: Subscription<Text> = listener.create_polled_subscription(latched()).unwrap();
    let service = Service::<AddTwoInts>::polled(&listener, "add").unwrap();
    let client = talker.create_client::<AddTwoInts>("add").unwrap();
    let mut before = None;
    for kill in 0..kills {
        until(&here, || {
            let matched = [&publisher, &latch].map(|of| of.matched_count());
            matched == [1, 1] && client.service_is_ready()
        });
        until(&there, || {
            let matched = [&heard, &late].map(|of| of.matched_count());
            matched == [1, 1] && service.client_count() == 1
        });
        let number = kill.to_string();
        publisher.publish(&text(&number)).unwrap();
        assert_eq!(next(&heard), number);
        if kill > 0 {
            assert_eq!(next(&late), number, "history is asked for again");
        }
        let request = AddTwoIntsRequest { a: 1, b: 2 };
        let call = client.call_async(&request).unwrap();
        until(&there, || service.take_request().is_some());

        drop(router);
        let ended = call.wait(SOON);
        let is_lost = matches!(ended, Err(CallError::ServerLost { .. }));
        assert!(is_lost, "{ended:?}");
        until(&there, || heard.matched_count() + late.matched_count() == 0);
        until(&here, || {
            publisher.matched_count() + latch.matched_count() == 0
        });
        assert_eq!(client.pending_request_count(), 0);
        latch.publish(&text(kill + 1)).unwrap();
        router = RouterProcess::start(port);
        if kill == WARM_UP {
            before = Some(resident());
        }
    }
    for context in [&here, &there] {
        for name in ["refused_tokens", "malformed", "dropped", "unsent"] {
            assert_eq!(counter(context, name), 0, "{name}");
        }
    }
    if let Some(before) = before {
        let growth = resident().saturating_sub(before);
        println!("{kills} kills: {before} bytes, and {growth} more");
        assert!(growth <= GROWTH_MAX, "{before} bytes grew by {growth}");
    }
}

#[test]
fn five_kills_of_a_router_end_calls_and_lose_no_endpoint() {
    kill_router(5);
}

/// Measures the memory of the process: run it alone.
#[test]
#[ignore = "a hundred kills take a minute; cargo xtask test --all runs it"]
fn a_hundred_kills_of_a_router_cost_no_memory() {
    kill_router(100);
}
