//! What the Rust contestants of `cargo xtask bench host` share: options, the
//! traffic and its book-keeping, the lines they print. No stack in here; each
//! one implements [`Stack`]. `host.h` says the same in C, README.md in words.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a stopwatch that reports on standard output"
)]
#![allow(missing_docs, reason = "part of a program, included by path")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::time::{ClockId, clock_gettime};

/// Sequence number, then the moment of sending, at the begin of each payload;
/// the number again at its end, so that a torn one is noticed.
pub const SIZE_MIN: usize = 32;

/// The same of a text, which says them in 16 hexadecimal digits each.
pub const TEXT_MIN: usize = 48;

const USAGE: &str = "usage: VERB [--OPTION VALUE]..., see interop/README.md";

/// A subscription that hears nothing for so long takes the rest for lost: nobody
/// repairs best effort.
fn quiet(o: &Options) -> u64 {
    const RELIABLE: u64 = 3_000_000_000;
    const BEST_EFFORT: u64 = 1_000_000_000;
    let periods = 3_000_000_000_u64.checked_div(o.rate).unwrap_or(0);
    match o.best_effort {
        true => BEST_EFFORT.max(periods),
        false => RELIABLE.max(periods),
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub verb: String,
    pub topic: String,
    /// What `forward` publishes on.
    pub to: String,
    pub size: usize,
    pub count: u64,
    pub warmup: u64,
    /// Messages per second; 0 is as fast as possible.
    pub rate: u64,
    /// Written into memory that the stack lends.
    pub loan: bool,
    /// Within a process: as bytes all the same.
    pub serialize: bool,
    /// Look again and again instead of sleeping.
    pub poll: bool,
    pub keep_all: bool,
    /// A string instead of a sequence of bytes.
    pub text: bool,
    pub best_effort: bool,
    pub transient_local: bool,
    /// `mlockall`.
    pub lock_memory: bool,
    pub depth: usize,
    /// 0 is none.
    pub deadline_ms: u64,
    /// Where each message's number and latency is written.
    pub samples: Option<String>,
    /// Nanoseconds between the match and the first message: the other side may
    /// match later.
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

    /// For stacks without DDS's policies: an error if one is asked for.
    pub fn need_no_policies(&self, stack: &str) -> Result<(), String> {
        let policies = self.best_effort || self.transient_local || self.deadline_ms > 0;
        let plain = !policies && !self.serialize;
        match plain {
            true => Ok(()),
            false => Err(format!("unsupported: {stack} has no such policies")),
        }
    }
}

/// What one process publishes and what it subscribes to.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    pub out: Option<String>,
    pub input: Option<String>,
}

/// What a stack must do. Moments are nanoseconds of the monotonic clock.
pub trait Stack: Sized {
    /// One node with at most one publisher and one subscription, which gives
    /// each message to [`Traffic::hear`] and answers where that says so.
    fn open(options: &Options, ends: &Ends, traffic: &Arc<Traffic>) -> Result<Self, String>;

    /// Publishes what [`Traffic::fill`] writes.
    fn publish(&mut self) -> Result<(), String>;

    /// Waits until the publisher has so many readers and the subscription so
    /// many publishers.
    fn wait_matched(&mut self, readers: usize, writers: usize, until: u64) -> bool;

    /// Receives until the moment or until [`Traffic::is_over`].
    fn run(&mut self, until: u64);

    /// `options.nodes` nodes in this process: number i, counted from
    /// `options.first` on, publishes `node/i` and hears that of the next of `options.of`.
    fn crowd(options: &Options, traffic: &Arc<Traffic>) -> Result<Self, String>;
}

/// The topics of a node in a crowd.
pub fn crowd_ends(options: &Options, index: usize) -> Ends {
    let topic = |i: usize| Some(format!("{}/node{}", options.topic, i % options.of.max(1)));
    Ends {
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

/// A stretch of time: on the clock, and of all this process's threads.
#[derive(Clone, Copy)]
struct Moment {
    wall: u64,
    cpu: u64,
}

impl Moment {
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

/// What is sent and heard; shared with the thread that receives.
pub struct Traffic {
    options: Options,
    heard: AtomicU64,
    goal: AtomicU64,
    book: Mutex<Book>,
}

struct Book {
    sent: u64,
    /// Number and stamp of what was heard last.
    last: (u64, u64),
    took: Vec<u64>,
    /// With `--samples`: number and latency of every message as it came,
    /// repeated ones too, twice as many as there should be at most.
    all: Vec<(u64, u64)>,
    messages: u64,
    lost: u64,
    torn: u64,
    start: Option<Moment>,
    end: Option<Moment>,
    /// When the last one came.
    last_at: u64,
    path: &'static str,
}

impl Traffic {
    fn new(options: &Options) -> Arc<Self> {
        Arc::new(Self {
            options: options.clone(),
            heard: AtomicU64::new(0),
            goal: AtomicU64::new(u64::MAX),
            book: Mutex::new(Book {
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

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message came, by that path. True: send what `fill` writes, now.
    pub fn hear(&self, bytes: &[u8], path: &'static str) -> bool {
        let now = now_ns();
        let text = self.options.text;
        let width = if text { 16 } else { 8 };
        let word = |at: usize| bytes.get(at..at + width).map_or(0, |p| word_of(p, text));
        let (seq, stamp) = (word(0), word(width));
        let mut book = self.book();
        let whole = bytes.len() == self.options.size;
        if !whole || word(bytes.len().saturating_sub(width)) != seq {
            book.torn += 1;
            return false;
        }
        book.path = path;
        if seq > self.options.warmup && book.all.len() < book.all.capacity() {
            let took = now.saturating_sub(stamp);
            book.all.push((seq - self.options.warmup, took));
        }
        // One that came before, or out of its order, is in the samples alone.
        if seq <= book.last.0 {
            return false;
        }
        book.lost += seq.saturating_sub(book.last.0 + 1);
        book.last = (seq, stamp);
        book.last_at = now;
        if seq > self.options.warmup {
            if book.start.is_none() {
                book.start = Some(Moment::now());
            }
            book.took.push(now.saturating_sub(stamp));
            book.messages += 1;
        }
        if seq == self.options.total() {
            book.end = Some(Moment::now());
        }
        drop(book);
        self.heard.store(seq, Ordering::Release);
        match self.options.verb.as_str() {
            "pong" | "forward" => true,
            "ping" => self.options.rate == 0 && seq < self.options.total(),
            _ => false,
        }
    }

    /// Number and stamp of the next message; a pong's are those of its ping,
    /// as are those of what is passed on.
    pub fn next(&self) -> (u64, u64) {
        let mut book = self.book();
        match self.options.verb.as_str() {
            "pong" | "forward" => book.last,
            _ => {
                book.sent += 1;
                (book.sent, now_ns())
            }
        }
    }

    /// Writes [`Traffic::next`] into a payload, whose rest stays as it is.
    pub fn fill(&self, bytes: &mut [u8]) {
        let (seq, stamp) = self.next();
        let text = self.options.text;
        let width = if text { 16 } else { 8 };
        let end = bytes.len().saturating_sub(width);
        for (at, word) in [(0, seq), (width, stamp), (end, seq)] {
            if let Some(part) = bytes.get_mut(at..at + width) {
                put_word(part, word, text);
            }
        }
    }

    /// Whether as many were heard as are waited for.
    pub fn is_over(&self) -> bool {
        self.heard.load(Ordering::Acquire) >= self.goal.load(Ordering::Relaxed)
    }

    fn wait_for(&self, seq: u64) {
        self.goal.store(seq, Ordering::Relaxed);
    }

    fn heard(&self) -> u64 {
        self.heard.load(Ordering::Acquire)
    }

    fn report(&self) -> Result<(), String> {
        let mut book = self.book();
        // Before the summary, so that whoever waits for that finds the file whole.
        if let Some(file) = &self.options.samples {
            let lines = book.all.iter().map(|(seq, took)| format!("{seq},{took}\n"));
            let text = String::from("sequence,latency_ns\n") + &lines.collect::<String>();
            std::fs::write(file, text).map_err(|e| format!("--samples {file}: {e}"))?;
        }
        book.took.sort_unstable();
        let list = &book.took;
        let at = |percent: usize| {
            let index = (list.len() * percent / 100).min(list.len().saturating_sub(1));
            list.get(index).map_or(f64::NAN, |ns| *ns as f64 / 1e3)
        };
        let end = book.end.unwrap_or(Moment {
            wall: book.last_at,
            ..Moment::now()
        });
        println!(
            "took count={} min={:.3} p50={:.3} p95={:.3} p99={:.3} max={:.3} lost={} torn={} {} path={}",
            book.messages,
            at(0),
            at(50),
            at(95),
            at(99),
            at(100),
            book.lost + self.options.total().saturating_sub(book.last.0),
            book.torn,
            end.since(book.start.unwrap_or(end)),
            book.path.replace(' ', "_"),
        );
        Ok(())
    }
}

fn word_of(bytes: &[u8], text: bool) -> u64 {
    let digit = |byte: &u8| u64::from(char::from(*byte).to_digit(16).unwrap_or(0));
    match text {
        true => bytes.iter().fold(0, |word, byte| word << 4 | digit(byte)),
        false => bytes.try_into().map_or(0, u64::from_ne_bytes),
    }
}

fn put_word(bytes: &mut [u8], mut word: u64, text: bool) {
    if !text {
        return bytes.copy_from_slice(&word.to_ne_bytes());
    }
    for byte in bytes.iter_mut().rev() {
        *byte = b"0123456789abcdef"[(word & 15) as usize];
        word >>= 4;
    }
}

/// A process's whole life with stack `S`; what it could not do is said on
/// standard error, with exit code 5 when the stack has no such thing.
pub fn main_of<S: Stack>() -> std::process::ExitCode {
    main_with::<S>(std::env::args().skip(1))
}

/// The same with these words in place of the command line's.
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
        // A process that only exists, to compare with.
        "nodes" if o.nodes == 0 => {
            println!("ready");
            loop {
                std::thread::park();
            }
        }
        "nodes" => {
            let mut crowd = S::crowd(o, traffic)?;
            println!("ready");
            crowd.run(u64::MAX);
            return Ok(());
        }
        other => return Err(format!("{other}: no such verb")),
    };
    let mut stack = S::open(o, &Ends { out, input }, traffic)?;
    println!("ready");
    let until = now_ns() + o.timeout;
    let wanted = match o.verb.as_str() {
        "ping" => Some((1, 1)),
        "pub" => Some((o.subscribers, 0)),
        // Whoever publishes comes later.
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
    // The other side may still need a repair; whoever started us ends us.
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
    let mut start = Moment::now();
    for number in 0..o.total() {
        if number == o.warmup {
            start = Moment::now();
        }
        if let Some(due) = (number * 1_000_000_000).checked_div(o.rate) {
            stack.run(begin + due);
        }
        stack.publish()?;
    }
    println!("sent count={} {}", o.count, Moment::now().since(start));
    Ok(())
}

fn listen<S: Stack>(o: &Options, t: &Traffic, stack: &mut S, until: u64) -> Result<(), String> {
    t.wait_for(o.total());
    let mut before = 0;
    loop {
        stack.run(now_ns() + quiet(o));
        let heard = t.heard();
        if t.is_over() || (heard == before && (heard > 0 || now_ns() >= until)) {
            return t.report();
        }
        before = heard;
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
