//! Round-trip and one-way latency of messages. Run `ping-pong pong` in one terminal
//! and `ping-pong ping` in another. `pub` and `sub` send one way at a rate, and
//! print a line for each message.
//!
//! The pong is published inside the callback, while the node spins, so each process
//! has one thread. `idle` is one node without endpoints, to measure its cost.
//! Options and lines are those of the peers (verify/interop/README.md). `cargo xtask flood`
//! runs it under attack.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod one_way;

use std::error::Error;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pteros::interfaces::std_msgs::msg::UInt8MultiArray as Payload;
use pteros::prelude::*;

const USAGE: &str = "usage: ping-pong ping|pong|idle [--size BYTES] [--count N] [--warmup N] [--timeout SECONDS] [--domain ID]\n       ping-pong pub|sub [--count N] [--rate HZ] [--history keep_last:N] [--wait-matched N] [--settle SECONDS] [--linger SECONDS] [--timeout SECONDS] [--domain ID]";

/// Delay of the first message after the match on this side. The other side may
/// match a little later.
const SETTLE_TIME: Duration = Duration::from_millis(100);

struct PingOptions {
    verb: String,
    size: usize,
    count: usize,
    warmup: usize,
    timeout: Duration,
    domain: Option<u32>,
    rate: f64,
    depth: usize,
    wait_matched: usize,
    settle: Duration,
    linger: Duration,
}

fn main() -> ExitCode {
    let outcome = settings().and_then(|settings| match settings.verb.as_str() {
        "ping" => ping(&settings),
        "pong" => pong(&settings),
        "pub" => one_way::publish(&settings),
        "sub" => one_way::subscribe(&settings),
        _ => idle(&settings),
    });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(3),
        Err(error) => {
            eprintln!("ping-pong: {error}");
            ExitCode::from(2)
        }
    }
}

fn settings() -> Result<PingOptions, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let verb = arguments.next().ok_or(USAGE)?;
    if !["ping", "pong", "idle", "pub", "sub"].contains(&verb.as_str()) {
        return Err(format!("{verb}: no such verb; {USAGE}").into());
    }
    let mut settings = PingOptions {
        size: 64,
        count: if verb == "sub" { 0 } else { 5000 },
        verb,
        warmup: 500,
        timeout: Duration::from_secs(3600),
        domain: None,
        rate: 10.0,
        depth: 10,
        wait_matched: 0,
        settle: SETTLE_TIME,
        linger: Duration::ZERO,
    };
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or(format!("{option} lacks a value"))?;
        let wrong = |e: &dyn Error| format!("{option} {value}: {e}");
        let number = || value.parse::<u32>().map_err(|e| wrong(&e));
        let seconds = || {
            let seconds = value.parse().map_err(|e| wrong(&e))?;
            Duration::try_from_secs_f64(seconds).map_err(|e| wrong(&e))
        };
        match option.as_str() {
            "--size" => settings.size = number()? as usize,
            "--count" => settings.count = number()? as usize,
            "--warmup" => settings.warmup = number()? as usize,
            "--timeout" => settings.timeout = Duration::from_secs(number()?.into()),
            "--domain" => settings.domain = Some(number()?),
            "--rate" => settings.rate = f64::from(number()?.max(1)),
            "--history" => {
                let depth = value.strip_prefix("keep_last:").unwrap_or("");
                settings.depth = depth.parse().map_err(|e| wrong(&e))?;
            }
            "--wait-matched" => settings.wait_matched = number()? as usize,
            "--settle" => settings.settle = seconds()?,
            "--linger" => settings.linger = seconds()?,
            _ => return Err(format!("{option}: no such option; {USAGE}").into()),
        }
    }
    Ok(settings)
}

fn context(settings: &PingOptions) -> Result<Context, Box<dyn Error>> {
    Ok(Context::with_options(ContextOptions {
        use_environment: true,
        domain_id: settings.domain,
        ..ContextOptions::default()
    })?)
}

/// State of the ping side.
struct PingState {
    payload: Payload,
    sent_at: Instant,
    index: usize,
    took: Vec<Duration>,
}

fn ping(settings: &PingOptions) -> Result<bool, Box<dyn Error>> {
    let context = context(settings)?;
    let node = context.create_node("ping")?;
    let publisher = node.create_publisher::<Payload>("ping".keep_last(10))?;
    let rounds = Arc::new(Mutex::new(PingState {
        payload: Payload {
            data: (0..settings.size).map(|i| (i * 31) as u8).collect(),
            ..Payload::default()
        },
        sent_at: Instant::now(),
        index: 0,
        took: Vec::with_capacity(settings.count),
    }));
    let total = settings.warmup + settings.count;
    let subscription = node.create_subscription::<Payload>("pong".keep_last(10), {
        let (publisher, rounds, warmup) = (publisher.clone(), rounds.clone(), settings.warmup);
        move |echo| {
            let mut rounds = rounds.lock().expect("one thread");
            let took = rounds.sent_at.elapsed();
            assert_eq!(echo.data.len(), rounds.payload.data.len(), "a whole echo");
            if rounds.index >= warmup {
                rounds.took.push(took);
            }
            rounds.index += 1;
            if rounds.index < total {
                send(&publisher, &mut rounds);
            }
        }
    })?;
    println!("ready");
    let end = Instant::now() + settings.timeout;
    let left = || end.saturating_duration_since(Instant::now());
    if !(publisher.wait_for_matched(1, left()) && subscription.wait_for_matched(1, left())) {
        return Err("no pong matched in time; is one running in this domain?".into());
    }
    node.spin_until(|| false, SETTLE_TIME);
    send(&publisher, &mut rounds.lock().expect("one thread"));
    let complete = node.spin_until(|| rounds.lock().expect("one thread").index >= total, left());
    report(settings.size, &mut rounds.lock().expect("one thread").took);
    Ok(complete)
}

fn send(publisher: &Publisher<Payload>, rounds: &mut PingState) {
    rounds.sent_at = Instant::now();
    if let Err(error) = publisher.publish(&rounds.payload) {
        eprintln!("ping-pong: {error}");
    }
}

fn report(size: usize, took: &mut [Duration]) {
    took.sort_unstable();
    let Some(last) = took.last() else {
        println!("rtt size={size} count=0");
        return;
    };
    let micros = |d: Duration| d.as_secs_f64() * 1e6;
    let at = |percent: usize| micros(took[(took.len() * percent / 100).min(took.len() - 1)]);
    let mean = micros(took.iter().sum::<Duration>()) / took.len() as f64;
    println!(
        "rtt size={size} count={} min={:.2} p50={:.2} p95={:.2} p99={:.2} max={:.2} mean={mean:.2}",
        took.len(),
        at(0),
        at(50),
        at(95),
        at(99),
        micros(*last),
    );
}

fn pong(settings: &PingOptions) -> Result<bool, Box<dyn Error>> {
    let context = context(settings)?;
    let node = context.create_node("pong")?;
    let publisher = node.create_publisher::<Payload>("pong".keep_last(10))?;
    let _subscription =
        node.create_subscription::<Payload>("ping".keep_last(10), move |sample| {
            if let Err(error) = publisher.publish(&sample) {
                eprintln!("ping-pong: {error}");
            }
        })?;
    println!("ready");
    node.spin_until(|| false, settings.timeout);
    Ok(true)
}

fn idle(settings: &PingOptions) -> Result<bool, Box<dyn Error>> {
    let context = context(settings)?;
    let node = context.create_node("idle")?;
    println!("ready");
    node.spin_until(|| false, settings.timeout);
    Ok(true)
}
