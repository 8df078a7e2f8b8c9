//! A router and contexts that reach each other through it alone.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use pteros::action::{ActionClient, ActionServerOptions, GoalStatus, ServerGoalHandle};
use pteros::config::{DiscoveryRange, ZenohSettings};
use pteros::interfaces::example_interfaces::action::{
    Fibonacci, FibonacciFeedback, FibonacciGoal, FibonacciResult,
};
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use pteros::service::Service;
use pteros_test_support::spin_thread::SpinThread;
use pteros_zenoh::Router;
use zenoh::Wait as _;

/// How long anything may take on a loaded machine.
pub const SOON: Duration = Duration::from_secs(20);

/// A router at a port of its own.
pub struct Net {
    port: u16,
    router: Option<Router>,
}

impl Net {
    /// Starts the router.
    pub fn new() -> Self {
        let mut net = Self::without_router();
        net.start_router();
        net
    }

    /// A port without a router, for one of others.
    pub fn without_router() -> Self {
        Self {
            port: free_port(),
            router: None,
        }
    }

    pub fn start_router(&mut self) {
        self.start_router_with(Vec::new());
    }

    /// Starts a router that connects to that of another net.
    pub fn start_router_beside(&mut self, other: &Net) {
        let connect = format!("[\"{}\"]", other.endpoint());
        self.start_router_with(vec![("connect/endpoints".into(), connect)]);
    }

    fn start_router_with(&mut self, mut overrides: Vec<(String, String)>) {
        let listen = format!("[\"{}\"]", self.endpoint());
        overrides.push(("listen/endpoints".into(), listen));
        let settings = ZenohSettings {
            overrides,
            ..ZenohSettings::default()
        };
        self.router = Some(Router::start(&settings).unwrap());
    }

    pub fn stop_router(&mut self) {
        self.router = None;
    }

    /// The port of the router.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where the router listens.
    pub fn endpoint(&self) -> String {
        format!("tcp/127.0.0.1:{}", self.port)
    }

    /// Settings of a session that connects to the router. As a client all its data
    /// passes the router, as a peer it connects to other peers itself.
    pub fn settings(&self, mode: &str) -> ZenohSettings {
        self.settings_by(self.port, mode)
    }

    /// The same by another port, a proxy's.
    pub fn settings_by(&self, port: u16, mode: &str) -> ZenohSettings {
        settings_of(port, mode)
    }

    /// A session that is not of Pteros.
    pub fn plain_session(&self) -> zenoh::Session {
        let mut config = zenoh::Config::default();
        for (key, value) in self.settings("client").overrides {
            config.insert_json5(&key, &value).unwrap();
        }
        zenoh::open(config).wait().unwrap()
    }

    /// A context that only Zenoh joins with others.
    pub fn open(&self) -> Context {
        self.open_as("peer")
    }

    pub fn open_as(&self, mode: &str) -> Context {
        open_with(self.settings(mode))
    }
}

/// A port of this host that nobody has.
pub fn free_port() -> u16 {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap().port()
}

/// Settings of a session that connects to a router at that port.
pub fn settings_of(port: u16, mode: &str) -> ZenohSettings {
    let connect = format!("[\"tcp/127.0.0.1:{port}\"]");
    let pair = |key: &str, value: String| (key.to_owned(), value);
    ZenohSettings {
        overrides: vec![
            pair("mode", format!("\"{mode}\"")),
            pair("connect/endpoints", connect),
            pair("listen/endpoints", "[\"tcp/127.0.0.1:0\"]".into()),
        ],
        router_check_attempts: Some(20),
        ..ZenohSettings::default()
    }
}

/// A context that only Zenoh joins with others, with settings of its own.
pub fn open_with(settings: ZenohSettings) -> Context {
    let options = ContextOptions {
        discovery_range: Some(DiscoveryRange::Off),
        transports: vec![pteros_zenoh::transport(settings)],
        ..ContextOptions::default()
    };
    Context::with_options(options).unwrap()
}

/// A service that adds.
pub fn add_two_ints(node: &Node, name: &str) -> Service<AddTwoInts> {
    let add = |request: Sample<AddTwoIntsRequest>| AddTwoIntsResponse {
        sum: request.a + request.b,
    };
    node.create_service::<AddTwoInts>(name, add).unwrap()
}

/// An action `fibonacci` between two contexts. Its nodes spin, and the client has found the
/// server.
pub struct FibonacciAction {
    pub client: ActionClient<Fibonacci>,
    /// Goals that the server has accepted.
    pub goals: mpsc::Receiver<ServerGoalHandle<Fibonacci>>,
    _spun: [SpinThread; 2],
}

impl FibonacciAction {
    /// Served in the first context and used from the second.
    #[track_caller]
    pub fn new(here: &Context, there: &Context) -> Self {
        let serving = here.create_node("serving").unwrap();
        let asking = there.create_node("asking").unwrap();
        let (send, goals) = mpsc::channel();
        let options = ActionServerOptions::<Fibonacci>::new("fibonacci");
        let server = serving
            .create_action_server(options, move |goal| send.send(goal).unwrap())
            .unwrap();
        let client = asking
            .create_action_client::<Fibonacci>("fibonacci")
            .unwrap();
        let spun = [
            SpinThread::of_node(&serving, server),
            SpinThread::of_node(&asking, ()),
        ];
        assert!(client.wait_for_action_server(SOON));
        Self {
            client,
            goals,
            _spun: spun,
        }
    }

    /// Sends a goal that has feedback, a result and a status in the client's context.
    #[track_caller]
    pub fn expect_success(&self, there: &Context) {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = heard.clone();
        let on_feedback = move |feedback: &FibonacciFeedback| {
            sink.lock().unwrap().push(feedback.sequence.clone());
        };
        let order = FibonacciGoal { order: 3 };
        let goal = self
            .client
            .send_goal_with_feedback(order, on_feedback, SOON);
        let goal = goal.unwrap();
        let served = self.goals.recv_timeout(SOON).unwrap();
        let sequence = vec![0, 1, 1];
        until(there, || {
            // The feedback topic may match after the goal was accepted.
            served.publish_feedback(FibonacciFeedback {
                sequence: sequence.clone(),
            });
            heard.lock().unwrap().first() == Some(&sequence)
        });
        let result = FibonacciResult { sequence };
        served.succeed(result.clone()).unwrap();
        let outcome = goal.result(SOON).unwrap();
        assert_eq!(outcome.status, GoalStatus::Succeeded);
        assert_eq!(outcome.result, result);
        until(there, || goal.status() == GoalStatus::Succeeded);
    }
}

/// A message.
pub fn text(data: impl ToString) -> Text {
    Text {
        data: data.to_string(),
    }
}

/// Waits for the next message and returns its text.
#[track_caller]
pub fn next(subscription: &Subscription<Text>) -> String {
    let sample = subscription.take_timeout(SOON);
    let sample = sample.unwrap_or_else(|| panic!("no message: {:?}", subscription.counts()));
    sample.data.clone()
}

/// Waits until the condition holds.
#[track_caller]
pub fn until(context: &Context, done: impl FnMut() -> bool) {
    let graph = context.graph();
    assert!(graph.wait_until(SOON, done), "not within {SOON:?}");
}

/// A counter of the transport.
pub fn counter(context: &Context, name: &str) -> u64 {
    let counters = context.transport_counters();
    let found = counters.iter().find(|(_, counter, _)| *counter == name);
    found.unwrap_or_else(|| panic!("no counter {name}")).2
}
