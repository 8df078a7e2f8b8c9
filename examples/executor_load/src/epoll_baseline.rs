//! Baseline without middleware: a plain epoll loop with an eventfd per
//! subscription. A message is a write to each of them; a callback is a read and the
//! work.

use std::error::Error;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::time::ClockId;

use crate::measurement::{Figures, Options, cpu_time, micros, work_for};

pub fn overhead(options: &Options) -> Result<Figures, Box<dyn Error>> {
    let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
    let mut bells: Vec<OwnedFd> = Vec::new();
    for number in 0..options.subscriptions {
        let bell = eventfd(0, flags)?;
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&set, &bell, data, epoll::EventFlags::IN)?;
        bells.push(bell);
    }
    let mut ready = Vec::with_capacity(options.subscriptions);
    let (mut callbacks, mut worked) = (0_u64, Duration::ZERO);
    let (start, before) = (Instant::now(), cpu_time(ClockId::ProcessCPUTime));
    while start.elapsed() < options.span {
        for bell in &bells {
            rustix::io::write(bell, &1_u64.to_ne_bytes())?;
        }
        let mut left = bells.len();
        while left > 0 {
            ready.clear();
            epoll::wait(&set, rustix::buffer::spare_capacity(&mut ready), None)?;
            for event in &ready {
                let bell = usize::try_from(event.data.u64())?;
                let bell = bells.get(bell).ok_or("an event of an unknown eventfd")?;
                rustix::io::read(bell, &mut [0; 8])?;
                worked += work_for(options.work);
                callbacks += 1;
                left -= 1;
            }
        }
    }
    let beyond = cpu_time(ClockId::ProcessCPUTime)
        .saturating_sub(before)
        .saturating_sub(worked);
    Ok(vec![
        ("callbacks", callbacks as f64),
        ("overhead_us", micros(beyond) / callbacks as f64),
    ])
}
