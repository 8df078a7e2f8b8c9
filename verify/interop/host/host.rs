//! Common part of the Rust programs of the lab: options, the
//! traffic and its counters, the printed lines. It contains no stack; each program
//! implements [`Stack`]. `host.h` is the same in C, and README.md describes it.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark that reports on standard output"
)]
#![allow(missing_docs, reason = "part of a program, included by path")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::time::{ClockId, clock_gettime};

/// Size of sequence number and send time at the start of each payload, and of the
/// sequence number at its end. The copy at the end detects torn payloads.
pub const SIZE_MIN: usize = 32;

/// The same for a text, with 16 hexadecimal digits per number.
pub const TEXT_MIN: usize = 48;

const USAGE: &str = "usage: VERB [--OPTION VALUE]..., see verify/interop/README.md";

/// A subscription without messages for this long counts the missing ones as lost.
/// Best-effort messages are not retransmitted.
fn quiet_timeout(o: &Options) -> u64 {
    const RELIABLE: u64 = 3_000_000_000;
    const BEST_EFFORT: u64 = 1_000_000_000;
    let periods = 3_000_000_000_u64.checked_div(o.rate).unwrap_or(0);
    if o.best_effort {
        BEST_EFFORT.max(periods)
    } else {
        RELIABLE.max(periods)
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub verb: String,
    pub topic: String,
    /// Topic that `forward` publishes on.
    pub to: String,
    pub size: usize,
    pub count: u64,
    pub warmup: u64,
    /// Messages per second; 0 is as fast as possible.
    pub rate: u64,
    /// Write into loaned messages.
    pub loan: bool,
    /// Serialize within a process too.
    pub serialize: bool,
    /// Nodes with parameter services, as ROS 2's have them.
    pub services: bool,
    /// Poll instead of sleeping.
    pub poll: bool,
    pub keep_all: bool,
    /// Send a string instead of a byte sequence.
    pub text: bool,
    pub best_effort: bool,
    pub transient_local: bool,
    /// Call `mlockall`.
    pub lock_memory: bool,
    pub depth: usize,
    /// 0 for none.
    pub deadline_ms: u64,
    /// File for number and latency of each message.
    pub samples: Option<String>,
    /// Nanoseconds between the match and the first message, since the other side
    /// may match later.
    pub settle: u64,
    pub subscribers: usize,
    pub nodes: usize,
    pub first: usize,
    pub of: usize,
    pub timeout: u64,
}

impl Options {
    fn of(verb: String) -> Self {
        Self {
            verb,
            topic: "host".into(),
            to: "host_on".into(),
            size: 64,
            count: 1000,
            warmup: 100,
            rate: 0,
            loan: false,
            serialize: false,
            services: false,
            poll: false,
            keep_all: false,
            text: false,
            best_effort: false,
            transient_local: false,
            lock_memory: false,
            depth: 10,
            deadline_ms: 0,
            samples: None,
            settle: 200_000_000,
            subscribers: 1,
            nodes: 1,
            first: 0,
            of: 1,
            timeout: 20_000_000_000,
        }
    }

    fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut arguments = arguments.into_iter();
        let mut o = Self::of(arguments.next().ok_or(USAGE)?);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(format!("{name} lacks a value"))?;
            let number = || {
                value
                    .parse::<u64>()
                    .map_err(|e| format!("{name} {value}: {e}"))
            };
            let word = |no: &str, yes: &str| match value.as_str() {
                v if v == no => Ok(false),
                v if v == yes => Ok(true),
                v => Err(format!("{name} {v}: expected {no} or {yes}")),
            };
            match name.as_str() {
                "--topic" => o.topic.clone_from(&value),
                "--to" => o.to.clone_from(&value),
                "--size" => o.size = number()? as usize,
                "--type" => o.text = word("bytes", "string")?,
                "--reliability" => o.best_effort = word("reliable", "best_effort")?,
                "--durability" => o.transient_local = word("volatile", "transient_local")?,
                "--lock-memory" => o.lock_memory = word("no", "yes")?,
                "--depth" => o.depth = number()? as usize,
                "--deadline" => o.deadline_ms = number()?,
                "--samples" => o.samples = Some(value.clone()),
                "--settle" => o.settle = number()? * 1_000_000,
                "--count" => o.count = number()?.max(1),
                "--warmup" => o.warmup = number()?,
                "--rate" => o.rate = number()?,
                "--loan" => o.loan = word("no", "yes")?,
                "--serialize" => o.serialize = word("no", "yes")?,
                "--services" => o.services = word("no", "yes")?,
                "--wait" => o.poll = word("block", "poll")?,
                "--history" => o.keep_all = word("keep_last", "keep_all")?,
                "--subscribers" => o.subscribers = number()? as usize,
                "--nodes" => o.nodes = number()? as usize,
                "--first" => o.first = number()? as usize,
                "--of" => o.of = number()? as usize,
                "--timeout" => o.timeout = number()? * 1_000_000_000,
                _ => return Err(format!("{name}: no such option; {USAGE}")),
            }
        }
        o.size = o.size.max(if o.text { TEXT_MIN } else { SIZE_MIN });
        Ok(o)
    }

    pub fn total(&self) -> u64 {
        self.warmup + self.count
    }

    /// For stacks without DDS policies: an error if one is requested.
    pub fn need_no_policies(&self, stack: &str) -> Result<(), String> {
        let policies = self.best_effort || self.transient_local || self.deadline_ms > 0;
        let plain = !policies && !self.serialize && !self.services;
        if plain {
            Ok(())
        } else {
            Err(format!("unsupported: {stack} has no such policies"))
        }
    }
}

/// The topics that one process publishes and subscribes to.
#[derive(Clone, Debug, Default)]
pub struct EndpointTopics {
    pub out: Option<String>,
    pub input: Option<String>,
}

/// Interface of a stack. Times are nanoseconds of the monotonic clock.
pub trait Stack: Sized {
    /// Opens a node with at most one publisher and one subscription. The
    /// subscription passes each message to [`Traffic::receive`], and replies if
    /// that returns true.
    fn open(
        options: &Options,
        ends: &EndpointTopics,
        traffic: &Arc<Traffic>,
    ) -> Result<Self, String>;

    /// Publishes the payload of [`Traffic::fill`].
    fn publish(&mut self) -> Result<(), String>;

    /// Waits until the publisher has this many readers and the subscription this
    /// many publishers.
    fn wait_matched(&mut self, readers: usize, writers: usize, until: u64) -> bool;

    /// Receives until that time or until [`Traffic::is_over`].
    fn run(&mut self, until: u64);

    /// Opens `options.nodes` nodes in this process. Node i, counted from
    /// `options.first`, publishes `node/i` and subscribes to that of the next of
    /// `options.of`.
    fn open_many(options: &Options, traffic: &Arc<Traffic>) -> Result<Self, String>;
}

/// The topics of one node of many.
pub fn node_topics(options: &Options, index: usize) -> EndpointTopics {
    let topic = |i: usize| Some(format!("{}/node{}", options.topic, i % options.of.max(1)));
    EndpointTopics {
        out: topic(options.first + index),
        input: topic(options.first + index + 1),
    }
}

pub fn now_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Wall time, and CPU time of all threads of this process.
#[derive(Clone, Copy)]
struct ResourceSample {
    wall: u64,
    cpu: u64,
}

impl ResourceSample {
    fn now() -> Self {
        Self {
            wall: now_ns(),
            cpu: nanoseconds(ClockId::ProcessCPUTime),
        }
    }

    fn since(self, start: Self) -> String {
        let ms = |a: u64, b: u64| a.saturating_sub(b) as f64 / 1e6;
        format!(
            "wall_ms={:.3} cpu_ms={:.3}",
            ms(self.wall, start.wall),
            ms(self.cpu, start.cpu)
        )
    }
}

/// State of the sent and received messages, shared with the receiving thread.
pub struct Traffic {
    options: Options,
    received: AtomicU64,
    goal: AtomicU64,
    state: Mutex<ReceiveState>,
}

struct ReceiveState {
    sent: u64,
    /// Number and timestamp of the last received message.
    last: (u64, u64),
    took: Vec<u64>,
    /// With `--samples`: number and latency of every received message, including
    /// duplicates. At most twice the expected number.
    all: Vec<(u64, u64)>,
    messages: u64,
    lost: u64,
    torn: u64,
    start: Option<ResourceSample>,
    end: Option<ResourceSample>,
    /// Time of the last reception.
    last_at: u64,
    path: &'static str,
}

impl Traffic {
    /// Sleeps until that time or until [`Self::is_over`], for a stack whose own threads
    /// receive and wake this one.
    #[allow(dead_code, reason = "some stacks receive on the thread that runs")]
    pub fn park_until(&self, until: u64) {
        loop {
            let now = now_ns();
            if self.is_over() || now >= until {
                return;
            }
            std::thread::park_timeout(std::time::Duration::from_nanos(until - now));
        }
    }

    fn new(options: &Options) -> Arc<Self> {
        Arc::new(Self {
            options: options.clone(),
            received: AtomicU64::new(0),
            goal: AtomicU64::new(u64::MAX),
            state: Mutex::new(ReceiveState {
                sent: 0,
                last: (0, 0),
                took: Vec::with_capacity(options.count as usize),
                all: Vec::with_capacity(match options.samples {
                    Some(_) => 2 * options.count as usize + 16,
                    None => 0,
                }),
                messages: 0,
                lost: 0,
                torn: 0,
                start: None,
                end: None,
                last_at: 0,
                path: "none",
            }),
        })
    }

    fn state(&self) -> MutexGuard<'_, ReceiveState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a received message with its delivery path. True: send the payload of
    /// `fill` now.
    pub fn receive(&self, bytes: &[u8], path: &'static str) -> bool {
        let now = now_ns();
        let text = self.options.text;
        let width = if text { 16 } else { 8 };
        let word = |at: usize| bytes.get(at..at + width).map_or(0, |p| read_word(p, text));
        let (seq, stamp) = (word(0), word(width));
        let mut state = self.state();
        let whole = bytes.len() == self.options.size;
        if !whole || word(bytes.len().saturating_sub(width)) != seq {
            state.torn += 1;
            return false;
        }
        state.path = path;
        if seq > self.options.warmup && state.all.len() < state.all.capacity() {
            let took = now.saturating_sub(stamp);
            state.all.push((seq - self.options.warmup, took));
        }
        // A duplicate or reordered message counts only in the samples.
        if seq <= state.last.0 {
            return false;
        }
        state.lost += seq.saturating_sub(state.last.0 + 1);
        state.last = (seq, stamp);
        state.last_at = now;
        if seq > self.options.warmup {
            if state.start.is_none() {
                state.start = Some(ResourceSample::now());
            }
            state.took.push(now.saturating_sub(stamp));
            state.messages += 1;
        }
        if seq == self.options.total() {
            state.end = Some(ResourceSample::now());
        }
        drop(state);
        self.received.store(seq, Ordering::Release);
        match self.options.verb.as_str() {
            "pong" | "forward" => true,
            "ping" => self.options.rate == 0 && seq < self.options.total(),
            _ => false,
        }
    }

    /// Number and timestamp of the next message. A pong or a forwarded message has
    /// those of the received one.
    pub fn next(&self) -> (u64, u64) {
        let mut state = self.state();
        match self.options.verb.as_str() {
            "pong" | "forward" => state.last,
            _ => {
                state.sent += 1;
                (state.sent, now_ns())
            }
        }
    }

    /// Writes [`Traffic::next`] into a payload. The rest of the payload is
    /// unchanged.
    pub fn fill(&self, bytes: &mut [u8]) {
        let (seq, stamp) = self.next();
        let text = self.options.text;
        let width = if text { 16 } else { 8 };
        let end = bytes.len().saturating_sub(width);
        for (at, word) in [(0, seq), (width, stamp), (end, seq)] {
            if let Some(part) = bytes.get_mut(at..at + width) {
                write_word(part, word, text);
            }
        }
    }

    /// Whether the expected number of messages was received.
    pub fn is_over(&self) -> bool {
        self.received.load(Ordering::Acquire) >= self.goal.load(Ordering::Relaxed)
    }

    fn wait_for(&self, seq: u64) {
        self.goal.store(seq, Ordering::Relaxed);
    }

    fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    fn report(&self) -> Result<(), String> {
        let mut state = self.state();
        // Written before the summary, so that the file is complete when the summary
        // is read.
        if let Some(file) = &self.options.samples {
            let lines = state
                .all
                .iter()
                .map(|(seq, took)| format!("{seq},{took}\n"));
            let text = String::from("sequence,latency_ns\n") + &lines.collect::<String>();
            std::fs::write(file, text).map_err(|e| format!("--samples {file}: {e}"))?;
        }
        state.took.sort_unstable();
        let list = &state.took;
        let at = |percent: usize| {
            let index = (list.len() * percent / 100).min(list.len().saturating_sub(1));
            list.get(index).map_or(f64::NAN, |ns| *ns as f64 / 1e3)
        };
        let end = state.end.unwrap_or(ResourceSample {
            wall: state.last_at,
            ..ResourceSample::now()
        });
        println!(
            "took count={} min={:.3} p50={:.3} p95={:.3} p99={:.3} max={:.3} lost={} torn={} {} path={}",
            state.messages,
            at(0),
            at(50),
            at(95),
            at(99),
            at(100),
            state.lost + self.options.total().saturating_sub(state.last.0),
            state.torn,
            end.since(state.start.unwrap_or(end)),
            state.path.replace(' ', "_"),
        );
        Ok(())
    }
}

fn read_word(bytes: &[u8], text: bool) -> u64 {
    let digit = |byte: &u8| u64::from(char::from(*byte).to_digit(16).unwrap_or(0));
    if text {
        bytes.iter().fold(0, |word, byte| word << 4 | digit(byte))
    } else {
        bytes.try_into().map_or(0, u64::from_ne_bytes)
    }
}

fn write_word(bytes: &mut [u8], mut word: u64, text: bool) {
    if !text {
        return bytes.copy_from_slice(&word.to_ne_bytes());
    }
    for byte in bytes.iter_mut().rev() {
        *byte = b"0123456789abcdef"[(word & 15) as usize];
        word >>= 4;
    }
}

/// Runs the program with stack `S`. Errors go to standard error, with exit code 5
/// if the stack does not support the request.
pub fn main_of<S: Stack>() -> std::process::ExitCode {
    main_with::<S>(std::env::args().skip(1))
}

/// The same with these arguments instead of those of the command line.
pub fn main_with<S: Stack>(words: impl IntoIterator<Item = String>) -> std::process::ExitCode {
    let outcome = Options::parse(words).and_then(|options| {
        if options.lock_memory {
            let all = rustix::mm::MlockAllFlags::CURRENT | rustix::mm::MlockAllFlags::FUTURE;
            rustix::mm::mlockall(all).map_err(|e| format!("--lock-memory: {e}"))?;
        }
        let traffic = Traffic::new(&options);
        run::<S>(&options, &traffic)
    });
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            let unsupported = why.starts_with("unsupported");
            std::process::ExitCode::from(if unsupported { 5 } else { 2 })
        }
    }
}

fn run<S: Stack>(o: &Options, traffic: &Arc<Traffic>) -> Result<(), String> {
    let topic = |end: &str| Some(format!("{}/{end}", o.topic));
    let (out, input) = match o.verb.as_str() {
        "ping" => (topic("ping"), topic("pong")),
        "pong" => (topic("pong"), topic("ping")),
        "pub" => (topic("flow"), None),
        "sub" => (None, topic("flow")),
        "intra" | "meet" => (topic("flow"), topic("flow")),
        "forward" => (Some(format!("{}/flow", o.to)), topic("flow")),
        // A process without entities, for comparison.
        "nodes" if o.nodes == 0 => {
            println!("ready");
            loop {
                std::thread::park();
            }
        }
        "nodes" => {
            let mut nodes = S::open_many(o, traffic)?;
            println!("ready");
            nodes.run(u64::MAX);
            return Ok(());
        }
        other => return Err(format!("{other}: no such verb")),
    };
    let mut stack = S::open(o, &EndpointTopics { out, input }, traffic)?;
    println!("ready");
    let until = now_ns() + o.timeout;
    let wanted = match o.verb.as_str() {
        "ping" => Some((1, 1)),
        "pub" => Some((o.subscribers, 0)),
        // The publisher starts later.
        "forward" => Some((1, 0)),
        "intra" => Some((o.subscribers, 1)),
        "meet" => Some((o.of, o.of)),
        _ => None,
    };
    if let Some((readers, writers)) = wanted
        && !stack.wait_matched(readers, writers, until)
    {
        return Err(format!("not matched with {readers} and {writers} in time"));
    }
    match o.verb.as_str() {
        "ping" => ping(o, traffic, &mut stack, until)?,
        "pong" => {
            traffic.wait_for(o.total());
            stack.run(u64::MAX);
            traffic.report()?;
        }
        "pub" => publish(o, &mut stack)?,
        "sub" => listen(o, traffic, &mut stack, until)?,
        "intra" => intra(o, traffic, &mut stack, until)?,
        "forward" => println!("matched"),
        _ => println!("met at={}", now_ns()),
    }
    // The other side may still need a retransmission. The parent process ends this
    // one.
    if ["pong", "pub", "sub", "meet", "forward"].contains(&o.verb.as_str()) {
        traffic.wait_for(u64::MAX);
        stack.run(u64::MAX);
    }
    Ok(())
}

fn ping<S: Stack>(o: &Options, t: &Traffic, stack: &mut S, until: u64) -> Result<(), String> {
    stack.run(now_ns() + o.settle);
    t.wait_for(o.total());
    if let Some(period) = 1_000_000_000_u64.checked_div(o.rate) {
        let start = now_ns();
        for number in 0..o.total() {
            t.wait_for(u64::MAX);
            stack.run(start + number * period);
            stack.publish()?;
        }
        t.wait_for(o.total());
    } else {
        stack.publish()?;
    }
    stack.run(until);
    t.report()
}

fn publish<S: Stack>(o: &Options, stack: &mut S) -> Result<(), String> {
    stack.run(now_ns() + o.settle);
    let begin = now_ns();
    let mut start = ResourceSample::now();
    for number in 0..o.total() {
        if number == o.warmup {
            start = ResourceSample::now();
        }
        if let Some(due) = (number * 1_000_000_000).checked_div(o.rate) {
            stack.run(begin + due);
        }
        stack.publish()?;
    }
    println!(
        "sent count={} {}",
        o.count,
        ResourceSample::now().since(start)
    );
    Ok(())
}

fn listen<S: Stack>(o: &Options, t: &Traffic, stack: &mut S, until: u64) -> Result<(), String> {
    t.wait_for(o.total());
    let mut before = 0;
    loop {
        stack.run(now_ns() + quiet_timeout(o));
        let received = t.received();
        if t.is_over() || (received == before && (received > 0 || now_ns() >= until)) {
            return t.report();
        }
        before = received;
    }
}

fn intra<S: Stack>(o: &Options, t: &Traffic, stack: &mut S, until: u64) -> Result<(), String> {
    stack.run(now_ns() + o.settle);
    let begin = now_ns();
    for number in 1..=o.total() {
        if let Some(due) = ((number - 1) * 1_000_000_000).checked_div(o.rate) {
            t.wait_for(u64::MAX);
            stack.run(begin + due);
        }
        t.wait_for(number);
        stack.publish()?;
        stack.run(until);
        if !t.is_over() {
            return Err(format!("message {number} did not come"));
        }
    }
    t.report()
}
