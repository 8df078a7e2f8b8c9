//! Round trips between two contexts over Zenoh, in one process: latency by size.
//!
//! `cargo run --release -p pteros-zenoh --example latency [SECONDS]`. Both sessions
//! are peers that are connected with each other by TCP on this host.
#![allow(clippy::disallowed_methods, reason = "measures a real machine")]

use std::net::TcpListener;
use std::time::{Duration, Instant};

use pteros::config::{DiscoveryRange, ZenohSettings};
use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::prelude::*;

const SOON: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(2), |word| word.parse())?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let open = |listen: bool| {
        let there = format!("[\"tcp/127.0.0.1:{port}\"]");
        let (listen, connect) = if listen {
            (there, "[]".to_owned())
        } else {
            ("[]".to_owned(), there)
        };
        let settings = ZenohSettings {
            overrides: vec![
                ("listen/endpoints".into(), listen),
                ("connect/endpoints".into(), connect),
            ],
            router_check_attempts: Some(-1),
            ..ZenohSettings::default()
        };
        Context::with_options(ContextOptions {
            discovery_range: Some(DiscoveryRange::Off),
            transports: vec![pteros_zenoh::transport(settings)],
            ..ContextOptions::default()
        })
    };
    let (here, there) = (open(true)?, open(false)?);
    let near = here.create_node("near")?;
    let far = there.create_node("far")?;
    let ping: Publisher<UInt8MultiArray> = near.create_publisher("ping")?;
    let pong: Subscription<UInt8MultiArray> = near.create_polled_subscription("pong")?;
    let answer: Publisher<UInt8MultiArray> = far.create_publisher("pong")?;
    let _echo = far.create_subscription("ping", move |message: Sample<UInt8MultiArray>| {
        let _ = answer.publish(&message);
    })?;
    std::thread::spawn(move || far.spin());
    assert!(ping.wait_for_matched(1, SOON) && pong.wait_for_matched(1, SOON));
    println!(
        "{:>9} {:>8} {:>8} {:>8}  microseconds",
        "bytes", "p50", "p99", "count"
    );
    for bytes in [64, 1_024, 65_536, 1_000_000, 4_000_000] {
        let message = UInt8MultiArray {
            data: vec![7; bytes],
            ..UInt8MultiArray::default()
        };
        let mut times = Vec::new();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(seconds) {
            let sent = Instant::now();
            ping.publish(&message)?;
            if pong.take_timeout(SOON).is_none() {
                return Err(format!("{bytes} bytes: no answer").into());
            }
            times.push(sent.elapsed());
        }
        times.sort();
        let at = |part: usize| times[(times.len() - 1) * part / 100].as_micros();
        println!("{bytes:>9} {:>8} {:>8} {:>8}", at(50), at(99), times.len());
    }
    Ok(())
}
