//! What a callback costs beyond its work: one publisher, N subscriptions, message
//! after message, the next when all have had the one before.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::prelude::*;
use pteros::{Chain, ChainExecutor};
use rustix::time::ClockId;

use crate::kind::{Kind, spin, static_executor};
use crate::{Figures, Options, micros, spent, work_for};

/// What callbacks leave behind.
#[derive(Clone, Default)]
pub struct Tally {
    pub callbacks: Arc<AtomicU64>,
    pub worked_nanos: Arc<AtomicU64>,
}

impl Tally {
    pub fn work(&self, span: Duration) {
        let worked = work_for(span);
        if !span.is_zero() {
            let nanos = u64::try_from(worked.as_nanos()).unwrap_or(u64::MAX);
            self.worked_nanos.fetch_add(nanos, Ordering::Relaxed);
        }
        self.callbacks.fetch_add(1, Ordering::Release);
    }

    pub fn count(&self) -> u64 {
        self.callbacks.load(Ordering::Acquire)
    }

    pub fn worked(&self) -> Duration {
        Duration::from_nanos(self.worked_nanos.load(Ordering::Relaxed))
    }
}

/// Subscriptions on one topic, a node each; timers that tick ten times a second.
pub struct Crowd {
    pub nodes: Vec<Node>,
    pub subscriptions: Vec<Subscription<UInt64>>,
    pub timers: Vec<Timer>,
}

impl Crowd {
    pub fn new(
        context: &Context,
        options: &Options,
        tally: &Tally,
        has_callbacks: bool,
    ) -> Result<Self, Box<dyn Error>> {
        let mut crowd = Self {
            nodes: Vec::new(),
            subscriptions: Vec::new(),
            timers: Vec::new(),
        };
        for number in 0..options.subscriptions {
            let node = context.node(&format!("n{number}"))?;
            let (tally, work) = (tally.clone(), options.work);
            crowd.subscriptions.push(match has_callbacks {
                true => node.create_subscription("load", 10, move |_: Sample<UInt64>| {
                    tally.work(work);
                })?,
                false => node.create_polled_subscription("load", 10)?,
            });
            crowd.nodes.push(node);
        }
        for number in 0..options.timers {
            let node = &crowd.nodes[number % crowd.nodes.len()];
            let timer = node.create_timer(Duration::from_millis(100), || ())?;
            crowd.timers.push(timer);
        }
        Ok(crowd)
    }
}

pub fn context() -> Result<Context, Box<dyn Error>> {
    Ok(Context::with_options(ContextOptions {
        discovery_range: Some(pteros::config::DiscoveryRange::Off),
        ..ContextOptions::default()
    })?)
}

pub fn measure(options: &Options) -> Result<Figures, Box<dyn Error>> {
    let (context, tally) = (context()?, Tally::default());
    let crowd = Crowd::new(&context, options, &tally, options.kind != Kind::Static)?;
    let source = context.node("source")?;
    let publisher = source.create_publisher::<UInt64>("load", 10)?;
    let per_message = options.subscriptions as u64;
    let mut sent = 0;
    let mut publish = || {
        sent += 1;
        let _ = publisher.publish_owned(UInt64 { data: sent });
        sent * per_message
    };
    match options.kind {
        Kind::Single => {
            let executor = SingleThreadedExecutor::new(&context);
            for node in &crowd.nodes {
                executor.add_node(node)?;
            }
            // As a node's own callback would: publish, then callbacks, in one spin.
            rounds(options, &tally, |end| {
                let wanted = publish();
                executor.spin_until(|| tally.count() >= wanted, end);
            })
        }
        Kind::Chain => {
            let executor = ChainExecutor::new(&context);
            for node in &crowd.nodes {
                executor.add_node(node)?;
            }
            for (number, subscription) in crowd.subscriptions.iter().enumerate().take(8) {
                let chain = Chain::new(format!("c{number}"), 1).then(subscription);
                executor.add_chain(&chain)?;
            }
            rounds(options, &tally, |end| {
                let wanted = publish();
                executor.spin_until(|| tally.count() >= wanted, end);
            })
        }
        Kind::Static => {
            let (counted, work) = (tally.clone(), options.work);
            let callback = move |_: Sample<UInt64>| counted.work(work);
            let mut executor = static_executor(&context, &crowd.subscriptions, callback)?;
            rounds(options, &tally, |end| {
                let wanted = publish();
                while tally.count() < wanted && executor.spin_once(end) {}
            })
        }
        Kind::Multi | Kind::Isolated => {
            let spun = spin(options.kind, &context, crowd.nodes.clone(), None)?;
            let figures = rounds(options, &tally, |end| {
                let (wanted, begun) = (publish(), Instant::now());
                while tally.count() < wanted && begun.elapsed() < end {
                    std::thread::yield_now();
                }
            });
            spun.end();
            figures
        }
        Kind::Floor => Err("the floor has no middleware".into()),
    }
}

/// A message that takes longer is a failure of the bench.
const PATIENCE: Duration = Duration::from_secs(10);

fn rounds(
    options: &Options,
    tally: &Tally,
    mut round: impl FnMut(Duration),
) -> Result<Figures, Box<dyn Error>> {
    (0..20).for_each(|_| round(PATIENCE));
    let (count, worked) = (tally.count(), tally.worked());
    // Where others run the callbacks, this thread publishes and looks whether
    // they are done, which is no part of theirs.
    let is_beside = matches!(options.kind, Kind::Multi | Kind::Isolated);
    let so_far = || {
        let own = match is_beside {
            true => spent(ClockId::ThreadCPUTime),
            false => Duration::ZERO,
        };
        spent(ClockId::ProcessCPUTime).saturating_sub(own)
    };
    let (begun, before) = (Instant::now(), so_far());
    while begun.elapsed() < options.span {
        let before = tally.count();
        round(PATIENCE);
        if tally.count() == before {
            return Err("no callback came within ten seconds".into());
        }
    }
    let callbacks = (tally.count() - count) as f64;
    let worked = tally.worked().saturating_sub(worked);
    let beyond = so_far().saturating_sub(before).saturating_sub(worked);
    Ok(vec![
        ("callbacks", callbacks),
        ("overhead_us", micros(beyond) / callbacks),
    ])
}
