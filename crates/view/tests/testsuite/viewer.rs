//! A robot, a server in a context of its own, and viewers that connect to it.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use pteros::executors::SingleThreadedExecutor;
use pteros::{Context, ContextOptions, Node};
use pteros_test_support::spin_thread::{SPIN_PERIOD, SpinThread};
use pteros_view::{Allowed, View, ViewOptions};
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest;
use tungstenite::http::HeaderValue;
use tungstenite::{Message, WebSocket};

/// Longest wait for something that comes.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Lets viewers change everything.
pub fn allow_all(options: &mut ViewOptions) {
    options.allowed = Allowed {
        publish: true,
        parameters: true,
        services: true,
    };
}

/// A node, and a server that shows it.
pub struct Robot {
    pub node: Node,
    pub view: View,
    _spin: SpinThread,
}

impl Robot {
    /// Starts both. The port is a free one.
    pub fn start(change: impl FnOnce(&mut ViewOptions)) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let domain = 20 + (std::process::id() * 7 + next) % 80;
        let context = || Context::with_options(ContextOptions::local(domain)).unwrap();
        let (robot, viewing) = (context(), context());
        let node = robot.create_node("robot").unwrap();
        let own = viewing.create_node("_view").unwrap();
        let mut options = ViewOptions::default();
        options.address.set_port(0);
        change(&mut options);
        let view = View::start(&own, options).unwrap();
        let spun = node.clone();
        let spin = SpinThread::new(move |is_over| {
            let _viewing = SpinThread::of_node(&own, ());
            let executor = SingleThreadedExecutor::new(spun.context());
            executor.add_node(&spun).unwrap();
            while !is_over() {
                executor.spin_once(SPIN_PERIOD);
            }
        });
        Self {
            node,
            view,
            _spin: spin,
        }
    }

    pub fn socket(&self) -> TcpStream {
        let stream = TcpStream::connect(self.view.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request and returns the whole answer.
    pub fn ask(&self, request: &str) -> String {
        let mut stream = self.socket();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // The server may close before it has read everything.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// A viewer that has got the server's first message.
    pub fn viewer(&self) -> Viewer {
        let url = self.view.url().replacen("http://", "ws://", 1);
        let mut request = url.into_client_request().unwrap();
        let protocol = HeaderValue::from_static("foxglove.sdk.v1");
        request
            .headers_mut()
            .insert("Sec-WebSocket-Protocol", protocol);
        let (socket, _) = tungstenite::client::client(request, self.socket()).unwrap();
        let mut viewer = Viewer {
            socket,
            channels: BTreeMap::new(),
            kept: VecDeque::new(),
            subscriptions: 0,
            info: Value::Null,
        };
        viewer.info = viewer.text("serverInfo");
        viewer
    }
}

/// A connected viewer.
pub struct Viewer {
    pub socket: WebSocket<TcpStream>,
    pub info: Value,
    /// Advertised channels by topic.
    pub channels: BTreeMap<String, Value>,
    /// Messages that were read while another one was waited for.
    kept: VecDeque<Received>,
    subscriptions: u32,
}

#[derive(Debug)]
pub enum Received {
    Text(Value),
    Frame(Bytes),
}

impl Viewer {
    pub fn send(&mut self, message: &Value) {
        self.socket
            .send(Message::text(message.to_string()))
            .unwrap();
    }

    pub fn send_frame(&mut self, frame: Vec<u8>) {
        self.socket.send(Message::binary(frame)).unwrap();
    }

    /// Reads the next message, and notes channels.
    pub fn read(&mut self) -> Received {
        // Pings come all the time.
        let end = Instant::now() + PATIENCE;
        loop {
            assert!(
                Instant::now() < end,
                "nothing came; there was {:?}",
                self.kept
            );
            match self.socket.read().unwrap() {
                Message::Text(text) => {
                    let value: Value = serde_json::from_str(&text).unwrap();
                    for channel in value["channels"].as_array().into_iter().flatten() {
                        let topic = channel["topic"].as_str().unwrap().to_owned();
                        self.channels.insert(topic, channel.clone());
                    }
                    return Received::Text(value);
                }
                Message::Binary(frame) => return Received::Frame(frame),
                _ => {}
            }
        }
    }

    /// The first message for which `wanted` has a value. The others are kept.
    pub fn find<T>(&mut self, mut wanted: impl FnMut(&Received) -> Option<T>) -> T {
        for index in 0..self.kept.len() {
            if let Some(found) = wanted(&self.kept[index]) {
                self.kept.remove(index);
                return found;
            }
        }
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let received = self.read();
            if let Some(found) = wanted(&received) {
                return found;
            }
            self.kept.push_back(received);
        }
        panic!("it did not come; there was {:?}", self.kept);
    }

    /// The next text with that `op`.
    pub fn text(&mut self, op: &str) -> Value {
        self.find(|received| match received {
            Received::Text(value) if value["op"] == op => Some(value.clone()),
            _ => None,
        })
    }

    /// The next frame that begins with that byte, without it.
    pub fn frame(&mut self, op: u8) -> Bytes {
        self.find(|received| match received {
            Received::Frame(frame) if frame[0] == op => Some(frame.slice(1..)),
            _ => None,
        })
    }

    /// The channel of a topic.
    pub fn channel(&mut self, topic: &str) -> Value {
        while !self.channels.contains_key(topic) {
            let received = self.read();
            self.kept.push_back(received);
        }
        self.channels[topic].clone()
    }

    /// Subscribes; returns the subscription.
    pub fn subscribe(&mut self, topic: &str) -> u32 {
        let channel = self.channel(topic)["id"].clone();
        self.subscriptions += 1;
        let id = self.subscriptions;
        let one = json!({ "id": id, "channelId": channel });
        self.send(&json!({ "op": "subscribe", "subscriptions": [one] }));
        id
    }

    /// The payload of the next message of a subscription.
    pub fn payload(&mut self, subscription: u32) -> Bytes {
        self.find(|received| match received {
            Received::Frame(frame)
                if frame[0] == 1 && frame[1..5] == subscription.to_le_bytes() =>
            {
                Some(frame.slice(13..))
            }
            _ => None,
        })
    }
}

/// Waits until a condition holds that another thread brings about.
pub fn wait_until(mut holds: impl FnMut() -> bool, what: &str) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}
