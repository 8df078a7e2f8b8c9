//! Throughput under a given load, and latency of an urgent callback.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pteros::interfaces::std_msgs::msg::UInt64;
use pteros::prelude::*;

use crate::executor_kind::{ExecutorKind, spin};
use crate::measurement::{Figures, Options, micros};
use crate::overhead::{TestNodes, WorkCounter, context};

/// Period of urgent messages.
const URGENT_PERIOD: Duration = Duration::from_micros(7_300);

/// Number of threads whose load is offered: at most one per subscription and one
/// per processor.
fn threads(options: &Options) -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let most = match options.kind {
        // A subscription's callback never runs concurrently with itself.
        ExecutorKind::Multi => crate::executor_kind::THREADS.min(options.subscriptions),
        ExecutorKind::Isolated => options.subscriptions,
        _ => 1,
    };
    u32::try_from(most.min(processors)).unwrap_or(1)
}

pub fn measure(options: &Options) -> Result<Figures, Box<dyn Error>> {
    run_load(options, false).map(|(figures, _)| figures)
}

pub fn measure_urgent(options: &Options) -> Result<Figures, Box<dyn Error>> {
    let (mut figures, mut waits) = run_load(options, true)?;
    waits.sort_unstable();
    let quantile = |per_cent: usize| {
        let at = (waits.len() * per_cent).div_ceil(100).saturating_sub(1);
        waits.get(at).copied().unwrap_or_default()
    };
    figures.push(("urgent", waits.len() as f64));
    figures.push(("urgent_p50_us", micros(quantile(50))));
    figures.push(("urgent_p99_us", micros(quantile(99))));
    figures.push(("urgent_max_us", micros(quantile(100))));
    Ok(figures)
}

fn run_load(options: &Options, urgent: bool) -> Result<(Figures, Vec<Duration>), Box<dyn Error>> {
    let (context, tally) = (context()?, WorkCounter::default());
    let crowd = TestNodes::new(&context, options, &tally, true)?;
    let origin = Instant::now();
    let waits = Arc::new(Mutex::new(Vec::new()));
    let urgent_node = context.create_node("urgent")?;
    let noted = waits.clone();
    let subscription = urgent_node.create_subscription(
        "urgent".keep_last(10),
        move |sample: Sample<UInt64>| {
            let waited = origin.elapsed() - Duration::from_nanos(sample.data);
            let mut waits = noted.lock().unwrap_or_else(PoisonError::into_inner);
            waits.push(waited);
        },
    )?;
    let source = context.create_node("source")?;
    let load = source.create_publisher::<UInt64>("load".keep_last(10))?;
    let alarm = source.create_publisher::<UInt64>("urgent".keep_last(10))?;
    let first = urgent.then(|| (urgent_node.clone(), subscription.clone()));
    let executor = spin(options.kind, &context, crowd.nodes.clone(), first)?;

    // The rate at which the work takes the given share of the threads' time.
    let work = options.work * u32::try_from(options.subscriptions)?;
    let period = work * 100 / (options.load_percent * threads(options));
    let mut published = 0_u64;
    let (mut next_load, mut next_alarm) = (origin, origin + URGENT_PERIOD / 3);
    let end = origin + options.span;
    loop {
        let next = if urgent {
            next_load.min(next_alarm)
        } else {
            next_load
        };
        if next >= end {
            break;
        }
        if let Some(rest) = next.checked_duration_since(Instant::now()) {
            std::thread::sleep(rest);
        }
        if next == next_load {
            published += 1;
            load.publish_owned(UInt64 { data: published })?;
            next_load += period;
        } else {
            let data = u64::try_from(origin.elapsed().as_nanos())?;
            alarm.publish_owned(UInt64 { data })?;
            next_alarm += URGENT_PERIOD;
        }
    }
    let elapsed = origin.elapsed();
    // Messages in queues are no drops. They are delivered before the end.
    let wanted = published * options.subscriptions as u64;
    let overwritten = || -> u64 {
        let each = crowd.subscriptions.iter().map(|s| s.counts().overwritten);
        each.sum()
    };
    let patience = Instant::now() + Duration::from_secs(5);
    while tally.count() + overwritten() < wanted && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
    executor.end();
    let (got, dropped) = (tally.count(), overwritten());
    let waits = std::mem::take(&mut *waits.lock().unwrap_or_else(PoisonError::into_inner));
    let figures = vec![
        ("published", published as f64),
        ("callbacks", got as f64),
        ("dropped", wanted.saturating_sub(got) as f64),
        ("overwritten", dropped as f64),
        (
            "utilisation",
            tally.worked().as_secs_f64() / (elapsed.as_secs_f64() * f64::from(threads(options))),
        ),
    ];
    Ok((figures, waits))
}
