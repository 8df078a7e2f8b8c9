//! Program of Zenoh for the lab, with the options and lines of
//! `host.rs`. Peers discover each other on loopback and use TCP, with Zenoh's
//! shared memory for loaned and large messages. Zenoh's threads call back and
//! reply; its API has no polling. HOST_LOWLATENCY=on selects the transport without
//! queues and priorities. HOST_ROS=on sends the keys, tokens and bytes of
//! rmw_zenoh_cpp ([`ros`]), without shared memory, and reads ZENOH_CONFIG_OVERRIDE.

#[path = "../../host.rs"]
mod host;
mod ros;

use std::fmt::Display;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use host::{EndpointTopics, Options, Stack, Traffic, node_topics, now_ns};
use zenoh::pubsub::{Publisher, Subscriber};
use zenoh::qos::CongestionControl;
use zenoh::sample::{Sample, SampleKind};
use zenoh::shm::{
    BlockOn, GarbageCollect, PosixShmProviderBackend, ShmProvider, ShmProviderBuilder,
};
use zenoh::{Config, Session, Wait};

/// Size of the pool for loans: enough for sixteen of the largest messages.
const POOL_BYTES: usize = 64 << 20;

fn main() -> ExitCode {
    host::main_of::<Zenoh>()
}

/// Publishing state that the caller and Zenoh's threads share.
struct Sender {
    traffic: Arc<Traffic>,
    publisher: Publisher<'static>,
    message: Mutex<Vec<u8>>,
    lender: Option<ShmProvider<PosixShmProviderBackend>>,
    /// With HOST_ROS: the attachments.
    ros: Option<ros::Writer>,
}

impl Sender {
    fn send(&self) -> Result<(), String> {
        let mut message = self.message.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(writer) = &self.ros {
            self.traffic.fill(&mut message[ros::PREFIX_BYTES..]);
            let put = self.publisher.put(&message[..]);
            return put.attachment(writer.attachment()).wait().map_err(said);
        }
        let Some(lender) = &self.lender else {
            self.traffic.fill(&mut message);
            return self.publisher.put(&message[..]).wait().map_err(said);
        };
        let lent = lender
            .alloc(message.len())
            .with_policy::<BlockOn<GarbageCollect>>();
        drop(message);
        let mut lent = lent.wait().map_err(said)?;
        self.traffic.fill(&mut lent);
        self.publisher.put(lent).wait().map_err(said)
    }
}

/// Number of alive entities, counted by Zenoh's liveliness tokens.
#[derive(Default)]
struct Alive(AtomicUsize);

struct Zenoh {
    traffic: Arc<Traffic>,
    sender: Option<Arc<Sender>>,
    readers: Arc<Alive>,
    writers: Arc<Alive>,
    /// Undeclared when dropped.
    _kept: Vec<Box<dyn std::any::Any>>,
    session: Session,
}

fn said(error: impl Display) -> String {
    error.to_string()
}

fn session() -> Result<Session, String> {
    if ros::is_wanted() {
        return zenoh::open(ros::config()?).wait().map_err(said);
    }
    let mut config = Config::default();
    let pool = POOL_BYTES.to_string();
    let mut settings = vec![
        ("mode", "\"peer\""),
        ("listen/endpoints", "[\"tcp/127.0.0.1:0\"]"),
        ("scouting/multicast/interface", "\"lo\""),
        ("transport/shared_memory/enabled", "true"),
        (
            "transport/shared_memory/transport_optimization/pool_size",
            &pool,
        ),
    ];
    if std::env::var("HOST_LOWLATENCY").is_ok_and(|wish| wish == "on") {
        settings.push(("transport/unicast/qos/enabled", "false"));
        settings.push(("transport/unicast/lowlatency", "true"));
    }
    for (key, value) in settings {
        config.insert_json5(key, value).map_err(said)?;
    }
    zenoh::open(config).wait().map_err(said)
}

impl Zenoh {
    fn new(traffic: &Arc<Traffic>) -> Result<Self, String> {
        Ok(Self {
            traffic: traffic.clone(),
            sender: None,
            readers: Arc::default(),
            writers: Arc::default(),
            _kept: Vec::new(),
            session: session()?,
        })
    }

    /// Declares this side of the topic, and counts the other sides.
    fn meet(&mut self, topic: &str, own: &str, other: &str) -> Result<(), String> {
        let key = |end: &str, who: String| match ros::is_wanted() {
            true => ros::token(topic, end, &who),
            false => format!("alive/{topic}/{end}/{who}"),
        };
        let count = match other {
            "reader" => self.readers.clone(),
            _ => self.writers.clone(),
        };
        let waiting = std::thread::current();
        let liveliness = self.session.liveliness();
        let counting: Subscriber<()> = liveliness
            .declare_subscriber(key(other, "*".into()))
            .history(true)
            .callback(move |sample| {
                match sample.kind() {
                    SampleKind::Put => count.0.fetch_add(1, Ordering::Release),
                    SampleKind::Delete => count.0.fetch_sub(1, Ordering::Release),
                };
                waiting.unpark();
            })
            .wait()
            .map_err(said)?;
        let name = self.session.zid().to_string();
        let token = liveliness.declare_token(key(own, name)).wait();
        self._kept.push(Box::new(token.map_err(said)?));
        self._kept.push(Box::new(counting));
        Ok(())
    }

    fn publisher(&self, options: &Options, topic: &str) -> Result<Publisher<'static>, String> {
        if ros::is_wanted() {
            return self
                .session
                .declare_publisher(ros::key(topic))
                .congestion_control(match options.keep_all {
                    true => CongestionControl::Block,
                    false => CongestionControl::Drop,
                })
                .wait()
                .map_err(said);
        }
        self.session
            .declare_publisher(topic.to_owned())
            .congestion_control(CongestionControl::Block)
            // Batching is allowed only at full rate.
            .express(!options.keep_all)
            .wait()
            .map_err(said)
    }

    fn subscribe(&mut self, topic: &str) -> Result<(), String> {
        let (traffic, sender) = (self.traffic.clone(), self.sender.clone());
        let waiting: Thread = std::thread::current();
        let prefix = if ros::is_wanted() {
            ros::PREFIX_BYTES
        } else {
            0
        };
        let hear = move |sample: Sample| {
            let shared = sample.payload().as_shm().is_some();
            let path = if shared { "shared memory" } else { "TCP" };
            let payload = sample.payload().to_bytes();
            let body = payload.get(prefix..).unwrap_or_default();
            if traffic.receive(body, path)
                && let Some(sender) = &sender
                && let Err(error) = sender.send()
            {
                eprintln!("{error}");
            }
            if traffic.is_over() {
                waiting.unpark();
            }
        };
        let key = match ros::is_wanted() {
            true => ros::key(topic),
            false => topic.to_owned(),
        };
        let subscriber = self.session.declare_subscriber(key).callback(hear).wait();
        self._kept.push(Box::new(subscriber.map_err(said)?));
        Ok(())
    }
}

impl Stack for Zenoh {
    fn open(
        options: &Options,
        ends: &EndpointTopics,
        traffic: &Arc<Traffic>,
    ) -> Result<Self, String> {
        options.need_no_policies("Zenoh")?;
        if options.loan && ros::is_wanted() {
            return Err("unsupported: HOST_ROS has no loaned messages".into());
        }
        let mut this = Self::new(traffic)?;
        if let Some(topic) = &ends.out {
            let lender = options
                .loan
                .then(|| ShmProviderBuilder::default_backend(POOL_BYTES).wait())
                .transpose();
            this.sender = Some(Arc::new(Sender {
                traffic: traffic.clone(),
                publisher: this.publisher(options, topic)?,
                message: Mutex::new(match ros::is_wanted() {
                    true => ros::message(options.size),
                    false => (0..options.size).map(|i| (i * 31) as u8).collect(),
                }),
                lender: lender.map_err(said)?,
                ros: ros::is_wanted().then(ros::Writer::default),
            }));
        }
        if let Some(topic) = &ends.input {
            this.subscribe(topic)?;
            this.meet(topic, "reader", "writer")?;
        }
        if let Some(topic) = &ends.out {
            this.meet(topic, "writer", "reader")?;
        }
        Ok(this)
    }

    fn publish(&mut self) -> Result<(), String> {
        let Some(sender) = &self.sender else {
            return Err("there is no publisher".into());
        };
        sender.send()
    }

    fn wait_matched(&mut self, readers: usize, writers: usize, until: u64) -> bool {
        let enough = |alive: &Alive, wanted| alive.0.load(Ordering::Acquire) >= wanted;
        while !(enough(&self.readers, readers) && enough(&self.writers, writers)) {
            let now = now_ns();
            if now >= until {
                return false;
            }
            std::thread::park_timeout(Duration::from_nanos(until - now));
        }
        true
    }

    fn run(&mut self, until: u64) {
        self.traffic.park_until(until);
    }

    fn open_many(options: &Options, traffic: &Arc<Traffic>) -> Result<Self, String> {
        let mut this = Self::new(traffic)?;
        for index in 0..options.nodes {
            let ends = node_topics(options, index);
            let (out, input) = (ends.out.unwrap_or_default(), ends.input.unwrap_or_default());
            let publisher = this.publisher(options, &out)?;
            this._kept.push(Box::new(publisher));
            this.subscribe(&input)?;
            if ros::is_wanted() {
                this.meet(&input, "reader", "writer")?;
                this.meet(&out, "writer", "reader")?;
            }
        }
        Ok(this)
    }
}
