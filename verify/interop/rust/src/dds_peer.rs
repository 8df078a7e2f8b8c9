//! Verbs `pub` and `sub` of a peer over a DDS stack, which implements [`Endpoint`].
//! README.md of `verify/interop` describes options and lines.

use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal};

use crate::messages::Sample;
use crate::options::{Options, refuse};

/// Between two looks at the stack. Its threads receive and send meanwhile.
const TICK: Duration = Duration::from_millis(2);
/// Between the match and the first sample: until the other side has matched, too.
const SETTLE: Duration = Duration::from_millis(300);
/// How long a reliable writer waits for acknowledgements at its end.
const ACKNOWLEDGED_MAX: Duration = Duration::from_secs(10);

static IS_STOPPED: AtomicBool = AtomicBool::new(false);

/// A writer or a reader of a stack, with the participant that owns it.
pub trait Endpoint<T> {
    /// The matched endpoints now.
    fn matched(&mut self) -> usize;
    /// Writes it, or returns it when the history is full.
    fn write(&mut self, sample: T) -> Option<T>;
    fn take(&mut self) -> Option<T>;
    /// Whether all samples are acknowledged in that time.
    fn is_acknowledged(&mut self, within: Duration) -> bool;
    /// Leaves the domain.
    fn close(self);
}

/// Runs the verb. `open` creates the endpoint, a writer if its argument is true.
pub fn run<T: Sample, E: Endpoint<T>>(options: &Options, open: impl FnOnce(bool) -> E) {
    let is_publisher = match options.verb.as_str() {
        "pub" => true,
        "sub" => false,
        verb => refuse(&format!("{verb}: expected pub or sub")),
    };
    stop_on_signals();
    let mut run = Run {
        options,
        verb: if is_publisher { "sent" } else { "received" },
        endpoint: open(is_publisher),
        matched: 0,
        count: 0,
        ends_at: (!options.timeout.is_zero()).then(|| Instant::now() + options.timeout),
    };
    println!("ready");
    let code = if is_publisher {
        run.publish()
    } else {
        run.subscribe()
    };
    println!("ended {}={}", run.verb, run.count);
    run.endpoint.close();
    exit(code);
}

struct Run<'o, E> {
    options: &'o Options,
    verb: &'static str,
    endpoint: E,
    matched: usize,
    count: u64,
    ends_at: Option<Instant>,
}

impl<E> Run<'_, E> {
    fn publish<T: Sample>(&mut self) -> i32
    where
        E: Endpoint<T>,
    {
        while self.matched < self.options.readers {
            if let Some(code) = self.tick(TICK) {
                return code;
            }
        }
        if self.options.readers > 0 {
            std::thread::sleep(SETTLE);
        }
        self.options.wait_for_start();
        let mut next_at = Instant::now();
        while self.options.count == 0 || self.count < self.options.count {
            let seq = self.count + 1;
            let content = T::pattern(seq, self.options.size);
            let mut sample = T::of(content.clone());
            while let Some(refused) = self.endpoint.write(sample) {
                sample = refused;
                if let Some(code) = self.tick(TICK) {
                    return code;
                }
            }
            self.report::<T>(&content);
            next_at += self.options.period;
            if let Some(code) = self.tick_until(next_at) {
                return code;
            }
        }
        let is_reliable = self.options.is_reliable;
        if is_reliable && !self.endpoint.is_acknowledged(ACKNOWLEDGED_MAX) {
            println!("unacknowledged");
        }
        let until = Instant::now() + self.options.linger;
        self.tick_until(until).unwrap_or(0)
    }

    fn subscribe<T: Sample>(&mut self) -> i32
    where
        E: Endpoint<T>,
    {
        loop {
            while let Some(sample) = self.endpoint.take() {
                self.report::<T>(&sample.into_content());
                if self.count == self.options.count {
                    // The acknowledgement of the last sample leaves, too.
                    std::thread::sleep(SETTLE);
                    return 0;
                }
            }
            if let Some(code) = self.tick(TICK) {
                return code;
            }
        }
    }

    fn tick_until<T>(&mut self, until: Instant) -> Option<i32>
    where
        E: Endpoint<T>,
    {
        while Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            if let Some(code) = self.tick(left.min(TICK)) {
                return Some(code);
            }
        }
        None
    }

    /// Prints a change of the match, and waits. Returns the exit code at the end.
    fn tick<T>(&mut self, span: Duration) -> Option<i32>
    where
        E: Endpoint<T>,
    {
        let matched = self.endpoint.matched();
        if matched != self.matched {
            self.matched = matched;
            println!("matched {matched}");
        }
        if IS_STOPPED.load(Ordering::Relaxed) {
            return Some(0);
        }
        if self.ends_at.is_some_and(|at| Instant::now() >= at) {
            return Some(3);
        }
        std::thread::sleep(span);
        None
    }

    fn report<T: Sample>(&mut self, content: &[u8]) {
        self.count += 1;
        let (verb, seq, size, crc) = (self.verb, self.count, content.len(), crc32(content));
        let text = if T::IS_TEXT {
            let shown = &content[..size.min(60)];
            format!(" text={}", String::from_utf8_lossy(shown))
        } else {
            String::new()
        };
        println!("{verb} seq={seq} size={size} crc={crc:08x}{text}");
    }
}

/// SIGINT and SIGTERM end the verb. The threads of the stack inherit the mask.
fn stop_on_signals() {
    let signals = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    signals.thread_block().expect("a signal mask");
    std::thread::spawn(move || {
        let _ = signals.wait();
        IS_STOPPED.store(true, Ordering::Relaxed);
    });
}

/// CRC-32 as zlib's.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}
