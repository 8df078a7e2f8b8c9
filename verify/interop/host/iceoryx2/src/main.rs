//! Program of iceoryx2 for the lab, with the options and lines of
//! `host.rs`. iceoryx2's event service wakes a sleeping reader; a polling reader
//! needs none. The first process that opens a service sets its limits, here as the
//! measurement needs them.

#[path = "../../host.rs"]
mod host;

use std::fmt::Debug;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use host::{EndpointTopics, Options, Stack, Traffic, node_topics, now_ns};
use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory as Topic;

/// Buffer size of a subscriber in samples.
const BUFFER: usize = 10;

fn main() -> ExitCode {
    set_log_level(LogLevel::Error);
    host::main_of::<Iceoryx>()
}

type Sending = (
    Publisher<ipc::Service, [u8], ()>,
    Notifier<ipc::Service>,
    Topic<ipc::Service, [u8], ()>,
);
type Receiving = (
    Subscriber<ipc::Service, [u8], ()>,
    Listener<ipc::Service>,
    Topic<ipc::Service, [u8], ()>,
);

struct Iceoryx {
    options: Options,
    traffic: Arc<Traffic>,
    message: Vec<u8>,
    sending: Vec<Sending>,
    receiving: Vec<Receiving>,
    /// A subscriber accepts connections when it looks for samples. Before that, a
    /// full connection drops samples, so it must look before the first one arrives.
    connected: bool,
    /// Declared last, since its ports use it.
    node: Node<ipc::Service>,
}

fn said<E: Debug>(action: &'static str) -> impl Fn(E) -> String {
    move |error| format!("{action}: {error:?}")
}

impl Iceoryx {
    fn new(options: &Options, traffic: &Arc<Traffic>) -> Result<Self, String> {
        let mut config = Config::default();
        // Beside its shared memory, where the benchmark cleans up.
        let root = Path::new(b"/dev/shm/iceoryx2").map_err(said("path"))?;
        config.global.set_root_path(&root);
        let node = NodeBuilder::new().config(&config).create::<ipc::Service>();
        Ok(Self {
            options: options.clone(),
            traffic: traffic.clone(),
            message: (0..options.size).map(|i| (i * 31) as u8).collect(),
            sending: Vec::new(),
            receiving: Vec::new(),
            connected: false,
            node: node.map_err(said("node"))?,
        })
    }

    /// Largest number of participating processes.
    fn processes_max(&self) -> usize {
        self.options.subscribers.max(self.options.of) + 2
    }

    fn topic(&self, name: &str) -> Result<Topic<ipc::Service, [u8], ()>, String> {
        let name = name.try_into().map_err(said("service name"))?;
        self.node
            .service_builder(&name)
            .publish_subscribe::<[u8]>()
            .enable_safe_overflow(!self.options.keep_all)
            .subscriber_max_buffer_size(BUFFER)
            .max_publishers(self.processes_max())
            .max_subscribers(self.processes_max())
            .max_nodes(self.processes_max())
            .open_or_create()
            .map_err(said("service"))
    }

    fn event(
        &self,
        name: &str,
    ) -> Result<iceoryx2::service::port_factory::event::PortFactory<ipc::Service>, String> {
        let name = name.try_into().map_err(said("service name"))?;
        self.node
            .service_builder(&name)
            .event()
            .max_notifiers(self.processes_max())
            .max_listeners(self.processes_max())
            .max_nodes(self.processes_max())
            .open_or_create()
            .map_err(said("event service"))
    }

    fn add(&mut self, ends: &EndpointTopics) -> Result<(), String> {
        // The listener must exist before the subscriber, or a message could arrive
        // without its event.
        if let Some(name) = &ends.input {
            let listener = self.event(name)?.listener_builder().create();
            let topic = self.topic(name)?;
            let subscriber = topic.subscriber_builder().buffer_size(BUFFER).create();
            self.receiving.push((
                subscriber.map_err(said("subscriber"))?,
                listener.map_err(said("listener"))?,
                topic,
            ));
        }
        if let Some(name) = &ends.out {
            let notifier = self.event(name)?.notifier_builder().create();
            let topic = self.topic(name)?;
            let publisher = topic
                .publisher_builder()
                .initial_max_slice_len(self.options.size)
                .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
                .create();
            self.sending.push((
                publisher.map_err(said("publisher"))?,
                notifier.map_err(said("notifier"))?,
                topic,
            ));
        }
        Ok(())
    }

    /// Receives all available samples. Returns whether there were any.
    fn receive(&mut self) -> Result<bool, String> {
        let mut some = false;
        loop {
            let Some((subscriber, ..)) = self.receiving.first() else {
                return Ok(false);
            };
            let Some(sample) = subscriber.receive().map_err(said("receive"))? else {
                return Ok(some);
            };
            some = true;
            self.connected = true;
            let answer = self.traffic.receive(sample.payload(), "shared memory");
            drop(sample);
            if answer {
                self.publish()?;
            }
        }
    }
}

impl Stack for Iceoryx {
    fn open(
        options: &Options,
        ends: &EndpointTopics,
        traffic: &Arc<Traffic>,
    ) -> Result<Self, String> {
        options.need_no_policies("iceoryx2")?;
        let mut this = Self::new(options, traffic)?;
        this.add(ends)?;
        Ok(this)
    }

    fn publish(&mut self) -> Result<(), String> {
        let Some((publisher, notifier, _)) = self.sending.first() else {
            return Err("there is no publisher".into());
        };
        let lent = publisher.loan_slice_uninit(self.options.size);
        let lent = lent.map_err(said("loan"))?;
        let sample = if self.options.loan {
            // SAFETY: the pool is zeroed shared memory, so every byte of the
            // slice has a value, and any value is a u8.
            let mut sample = unsafe { lent.assume_init() };
            self.traffic.fill(sample.payload_mut());
            sample
        } else {
            self.traffic.fill(&mut self.message);
            lent.write_from_slice(&self.message)
        };
        sample.send().map_err(said("send"))?;
        if !self.options.poll {
            notifier.notify().map_err(said("notify"))?;
        }
        Ok(())
    }

    fn wait_matched(&mut self, readers: usize, writers: usize, until: u64) -> bool {
        loop {
            let enough_readers = self.sending.first().is_none_or(|(.., topic)| {
                topic.dynamic_config().number_of_subscribers() >= readers
            });
            let enough_writers = self
                .receiving
                .first()
                .is_none_or(|(.., topic)| topic.dynamic_config().number_of_publishers() >= writers);
            if enough_readers && enough_writers {
                return true;
            }
            if now_ns() >= until {
                return false;
            }
            // It has no event for this; 200 processes must not use up the CPU.
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn run(&mut self, until: u64) {
        while !self.traffic.is_over() && now_ns() < until {
            match self.receive() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(why) => {
                    eprintln!("{why}");
                    return;
                }
            }
            let left = Duration::from_nanos(until.saturating_sub(now_ns()));
            let left = left.min(if self.connected {
                Duration::from_secs(3600)
            } else {
                Duration::from_millis(10)
            });
            match self.receiving.first() {
                Some(_) if self.options.poll => {}
                Some((_, listener, _)) => {
                    let _ = listener.timed_wait(|_| {}, left);
                }
                None => std::thread::sleep(left),
            }
        }
    }

    fn open_many(options: &Options, traffic: &Arc<Traffic>) -> Result<Self, String> {
        let mut this = Self::new(options, traffic)?;
        for index in 0..options.nodes {
            this.add(&node_topics(options, index))?;
        }
        // No more connections will come.
        this.connected = true;
        Ok(this)
    }
}
