//! Callback overhead: one publisher and N subscriptions. The next message is
//! published when all callbacks of the previous one have run.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pteros::executors::{Chain, ChainExecutor};
use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::prelude::*;
use rustix::time::ClockId;

use crate::executor_kind::{ExecutorKind, spin, static_executor};
use crate::measurement::{Figures, Options, cpu_time, micros, work_for};

/// Counters of the callbacks.
#[derive(Clone, Default)]
pub struct WorkCounter {
    pub callbacks: Arc<AtomicU64>,
    pub worked_nanos: Arc<AtomicU64>,
}

impl WorkCounter {
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

/// Subscriptions on one topic, one node each, and timers with a rate of 10 Hz.
pub struct TestNodes {
    pub nodes: Vec<Node>,
    pub subscriptions: Vec<Subscription<UInt64>>,
    pub timers: Vec<Timer>,
}

impl TestNodes {
    pub fn new(
        context: &Context,
        options: &Options,
        tally: &WorkCounter,
        has_callbacks: bool,
    ) -> Result<Self, Box<dyn Error>> {
        let mut crowd = Self {
            nodes: Vec::new(),
            subscriptions: Vec::new(),
            timers: Vec::new(),
        };
        for number in 0..options.subscriptions {
            let node = context.create_node(format!("n{number}"))?;
            let (tally, work) = (tally.clone(), options.work);
            crowd.subscriptions.push(if has_callbacks {
                node.create_subscription("load".keep_last(10), move |_: Sample<UInt64>| {
                    tally.work(work);
                })?
            } else {
                node.create_polled_subscription("load".keep_last(10))?
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
    let (context, tally) = (context()?, WorkCounter::default());
    let crowd = TestNodes::new(
        &context,
        options,
        &tally,
        options.kind != ExecutorKind::Static,
    )?;
    let source = context.create_node("source")?;
    let publisher = source.create_publisher::<UInt64>("load".keep_last(10))?;
    let per_message = options.subscriptions as u64;
    let mut sent = 0;
    let mut publish = || {
        sent += 1;
        let _ = publisher.publish_owned(UInt64 { data: sent });
        sent * per_message
    };
    match options.kind {
        ExecutorKind::Single => {
            let executor = SingleThreadedExecutor::new(&context);
            for node in &crowd.nodes {
                executor.add_node(node)?;
            }
            // As in a node's own callback: publish, then run the callbacks in the
            // same spin.
            rounds(options, &tally, |end| {
                let wanted = publish();
                executor.spin_until(|| tally.count() >= wanted, end);
            })
        }
        ExecutorKind::Chain => {
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
        ExecutorKind::Static => {
            let (counted, work) = (tally.clone(), options.work);
            let callback = move |_: Sample<UInt64>| counted.work(work);
            let mut executor = static_executor(&context, &crowd.subscriptions, callback)?;
            rounds(options, &tally, |end| {
                let wanted = publish();
                while tally.count() < wanted && executor.spin_once(end) {}
            })
        }
        ExecutorKind::Multi | ExecutorKind::Isolated => {
            let executor = spin(options.kind, &context, crowd.nodes.clone(), None)?;
            let figures = rounds(options, &tally, |end| {
                let (wanted, start) = (publish(), Instant::now());
                while tally.count() < wanted && start.elapsed() < end {
                    std::thread::yield_now();
                }
            });
            executor.end();
            figures
        }
        ExecutorKind::Floor => Err("the epoll baseline has no middleware".into()),
    }
}

/// A message that takes longer is a failure of the benchmark.
const TIMEOUT: Duration = Duration::from_secs(10);

fn rounds(
    options: &Options,
    tally: &WorkCounter,
    mut round: impl FnMut(Duration),
) -> Result<Figures, Box<dyn Error>> {
    (0..20).for_each(|_| round(TIMEOUT));
    let (count, worked) = (tally.count(), tally.worked());
    // If other threads run the callbacks, the CPU time of this thread does not
    // count: it only publishes and checks for completion.
    let is_beside = matches!(options.kind, ExecutorKind::Multi | ExecutorKind::Isolated);
    let so_far = || {
        let own = if is_beside {
            cpu_time(ClockId::ThreadCPUTime)
        } else {
            Duration::ZERO
        };
        cpu_time(ClockId::ProcessCPUTime).saturating_sub(own)
    };
    let (start, before) = (Instant::now(), so_far());
    while start.elapsed() < options.span {
        let before = tally.count();
        round(TIMEOUT);
        if tally.count() == before {
            return Err("a callback did not run within ten seconds".into());
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
