//! Where a conformance story is played: a publishing and a subscribing node,
//! within one context or in two that meet on this host, over UDP or linked by shared
//! memory.

use std::path::Path as FolderPath;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::{EndpointEvent, FlowController, Path, SharedMemoryOptions};

/// For whatever should happen soon, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Every context's flow controller: 5 MB/s in periods of 10 ms.
pub const SLOW: &str = "slow";

/// How samples travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Local,
    Udp,
    SharedMemory,
}

pub struct Stage {
    pub way: Way,
    pub publishing: Node,
    pub subscribing: Node,
    /// Contexts of their own, so that nothing but the endpoints is shared.
    contexts: Vec<Context>,
}

impl Stage {
    pub fn new(way: Way) -> Self {
        static STAGES: AtomicU32 = AtomicU32::new(0);
        // Far fewer are open at a time.
        let domain = 1 + STAGES.fetch_add(1, Ordering::Relaxed) % 232;
        let slow = FlowController::new(SLOW)
            .bytes_per_period(50_000)
            .period(Duration::from_millis(10));
        let stores = FolderPath::new(env!("CARGO_TARGET_TMPDIR")).join(format!("stage-{domain}"));
        let _ = std::fs::remove_dir_all(&stores);
        let options = ContextOptions {
            flow_controllers: vec![slow],
            store_folder: Some(stores),
            shared_memory: SharedMemoryOptions {
                on: way == Way::SharedMemory,
                ..SharedMemoryOptions::default()
            },
            ..ContextOptions::local(domain)
        };
        let open = || Context::with_options(options.clone()).unwrap();
        let a = open();
        let b = match way {
            Way::Local => a.clone(),
            Way::Udp | Way::SharedMemory => open(),
        };
        let stage = Self {
            way,
            publishing: a.node("publishing").unwrap(),
            subscribing: b.node("subscribing").unwrap(),
            contexts: vec![a, b],
        };
        if way == Way::SharedMemory {
            stage.link();
        }
        stage
    }

    /// Links are made when endpoints match, and stay.
    fn link(&self) {
        let _publisher: Publisher<Text> = self.publishing.create_publisher("link", 1).unwrap();
        let _subscription: Subscription<Text> = self
            .subscribing
            .create_polled_subscription("link", 1)
            .unwrap();
        let paths = || {
            let [a, b] = [&self.contexts[0], &self.contexts[1]];
            [a.path_to(b.guid()), b.path_to(a.guid())]
        };
        self.until(&format!("linked: {:?}", paths()), || {
            paths().iter().all(|path| path.path == Path::SharedMemory)
        });
    }

    pub fn path(&self) -> Path {
        match self.way {
            Way::Local => Path::IntraProcess,
            Way::Udp => Path::Network,
            Way::SharedMemory => Path::SharedMemory,
        }
    }

    pub fn publisher(&self, qos: &QosProfile) -> Publisher<Text> {
        self.publishing.create_publisher("topic", qos).unwrap()
    }

    pub fn subscription(&self, qos: &QosProfile) -> Subscription<Text> {
        self.subscribing
            .create_polled_subscription("topic", qos)
            .unwrap()
    }

    /// Both ends, matched; the matched events are taken.
    pub fn pair(&self, qos: &QosProfile) -> (Publisher<Text>, Subscription<Text>) {
        self.pair_of(qos, qos)
    }

    pub fn pair_of(
        &self,
        offered: &QosProfile,
        requested: &QosProfile,
    ) -> (Publisher<Text>, Subscription<Text>) {
        let publisher = self.publisher(offered);
        let subscription = self.subscription(requested);
        assert!(publisher.wait_for_matched(1, PATIENCE));
        assert!(subscription.wait_for_matched(1, PATIENCE));
        (publisher, subscription)
    }

    /// Waits for something that either end brings about.
    #[track_caller]
    pub fn until(&self, what: &str, done: impl FnMut() -> bool) {
        assert!(
            self.watch(PATIENCE, done),
            "{what}: not within {PATIENCE:?}"
        );
    }

    /// Looks on for at most `span`; whether `done` came true.
    pub fn watch(&self, span: Duration, mut done: impl FnMut() -> bool) -> bool {
        let slice = Duration::from_millis(5);
        let mut left = span;
        while !left.is_zero() {
            let graph = self.contexts[1].graph();
            if graph.wait_until(slice, &mut done) {
                return true;
            }
            left = left.saturating_sub(slice);
        }
        done()
    }
}

pub fn text(n: usize) -> Text {
    Text {
        data: format!("{n}"),
    }
}

/// The events of an endpoint in the order they came.
pub struct Seen<'e> {
    take: Box<dyn Fn() -> Option<EndpointEvent> + 'e>,
    pub list: Vec<EndpointEvent>,
}

impl<'e> Seen<'e> {
    pub fn by(take: impl Fn() -> Option<EndpointEvent> + 'e) -> Self {
        Self {
            take: Box::new(take),
            list: Vec::new(),
        }
    }

    /// Whether such an event has come.
    pub fn any(&mut self, wanted: impl Fn(&EndpointEvent) -> bool) -> bool {
        while let Some(event) = (self.take)() {
            self.list.push(event);
        }
        self.list.iter().any(wanted)
    }

    /// Forgets what has come so far.
    pub fn clear(&mut self) {
        self.any(|_| false);
        self.list.clear();
    }
}
