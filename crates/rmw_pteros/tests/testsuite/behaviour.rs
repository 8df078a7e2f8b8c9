//! The behaviour tables of the client core, played through the functions of rmw. What rcl,
//! rclcpp and rclpy decide above them is left out: `cargo xtask ros2 behaviour` plays those
//! rows on rclpy itself.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null_mut;

use pteros_rcl::event_status::StatusKind;
use pteros_test_support::behaviour::{
    LeftOut, NodeDriver, RowFilter, RowQos, check_list, play_nodes,
};
use rmw_pteros_cpp::abi::{
    Allocator, ContentFilterOptions, Event, GuardCondition, IncompatibleQosStatus,
    LivelinessChangedStatus, MatchedStatus, MessageTypeSupport, NamesAndTypes, Node, Publisher,
    PublisherOptions, QosProfile, RequestId, Ret, ServiceHandle, ServiceInfo, ServiceTypeSupport,
    StringArray, Subscription, SubscriptionOptions, Time, TopicEndpointInfoArray, WaitArray, ret,
};
use rmw_pteros_cpp::distribution::event_number;

use crate::harness::*;

const LEFT_OUT: [LeftOut; 10] = [
    (
        "filters",
        &["*"],
        "message_filters stands on rclcpp and rclpy",
    ),
    (
        "goals",
        &["*"],
        "rcl_action has the goals; rmw sees services and topics",
    ),
    ("lifecycle", &["*"], "rcl_lifecycle has the state machine"),
    (
        "names",
        &["*"],
        "rcl expands and remaps names; rmw gets full ones",
    ),
    (
        "parameters",
        &["*"],
        "rclcpp and rclpy have the parameters, rcl their texts",
    ),
    (
        "log_levels",
        &["*"],
        "rcutils has the levels, rcl their arguments",
    ),
    (
        "qos_overrides",
        &["*"],
        "rclcpp and rclpy override policies",
    ),
    ("wait_sets", &["timer"], "rcl has timers"),
    ("tf", &["*"], "tf2 stands on rclcpp and rclpy"),
    ("time", &["*"], "rcl has clocks and timers"),
];

// Graph queries of the plug-in, and what only subscriptions have.
unsafe extern "C" {
    fn rmw_count_publishers(node: *const Node, name: *const c_char, out: *mut usize) -> Ret;
    fn rmw_count_subscribers(node: *const Node, name: *const c_char, out: *mut usize) -> Ret;
    fn rmw_count_clients(node: *const Node, name: *const c_char, out: *mut usize) -> Ret;
    fn rmw_count_services(node: *const Node, name: *const c_char, out: *mut usize) -> Ret;
    fn rmw_get_subscriptions_info_by_topic(
        node: *const Node,
        allocator: *mut Allocator,
        name: *const c_char,
        no_mangle: bool,
        out: *mut TopicEndpointInfoArray,
    ) -> Ret;
    fn rmw_get_service_names_and_types(
        node: *const Node,
        allocator: *mut Allocator,
        out: *mut NamesAndTypes,
    ) -> Ret;
    fn rmw_get_publisher_names_and_types_by_node(
        node: *const Node,
        allocator: *mut Allocator,
        name: *const c_char,
        namespace: *const c_char,
        no_demangle: bool,
        out: *mut NamesAndTypes,
    ) -> Ret;
    fn rmw_get_subscriber_names_and_types_by_node(
        node: *const Node,
        allocator: *mut Allocator,
        name: *const c_char,
        namespace: *const c_char,
        no_demangle: bool,
        out: *mut NamesAndTypes,
    ) -> Ret;
    fn rmw_get_service_names_and_types_by_node(
        node: *const Node,
        allocator: *mut Allocator,
        name: *const c_char,
        namespace: *const c_char,
        out: *mut NamesAndTypes,
    ) -> Ret;
    fn rmw_get_client_names_and_types_by_node(
        node: *const Node,
        allocator: *mut Allocator,
        name: *const c_char,
        namespace: *const c_char,
        out: *mut NamesAndTypes,
    ) -> Ret;
    fn rmw_service_server_is_available(
        node: *const Node,
        client: *const ServiceHandle,
        available: *mut bool,
    ) -> Ret;
    fn rmw_subscription_count_matched_publishers(
        subscription: *const Subscription,
        count: *mut usize,
    ) -> Ret;
    fn rmw_subscription_event_init(
        event: *mut Event,
        subscription: *const Subscription,
        kind: u32,
    ) -> Ret;
}

/// RMW_DURATION_INFINITE and the spans of RMW_QOS_…_BEST_AVAILABLE.
const INFINITE_S: u64 = 9_223_372_036;
const BEST_AVAILABLE: Time = Time {
    sec: INFINITE_S,
    nsec: 854_775_806,
};
/// Policies of `rmw_qos_policy_kind_t`, by their bits.
const POLICIES: [(u32, &str); 4] = [
    (2, "durability"),
    (4, "deadline"),
    (8, "liveliness"),
    (16, "reliability"),
];

/// The kinds of events that rows ask for: of publishers, and of subscriptions.
fn event_kind(name: &str, of_publisher: bool) -> Option<StatusKind> {
    match (name, of_publisher) {
        ("matched", _) => Some(StatusKind::Matched),
        ("incompatible", _) => Some(StatusKind::IncompatibleQos),
        ("liveliness", false) => Some(StatusKind::LivelinessChanged),
        _ => None,
    }
}

#[derive(Clone, Copy)]
enum Handle {
    Publisher(*mut Publisher),
    Subscription(*mut Subscription),
    Server(*mut ServiceHandle),
    Client(*mut ServiceHandle),
    Guard(*mut GuardCondition),
    /// It was refused.
    Failed,
}

/// An event of an entity, and its status when it was taken last.
struct RowEvent {
    name: &'static str,
    event: Box<Event>,
    shown: String,
}

struct Entity {
    handle: Handle,
    node: *mut Node,
    party: usize,
    events: Vec<RowEvent>,
    taken: Vec<String>,
    requests: Vec<RequestId>,
    is_destroyed: bool,
}

/// Contexts with nodes and their entities.
struct Rows {
    domain: usize,
    parties: Vec<Party>,
    further_nodes: Vec<*mut Node>,
    node: *mut Node,
    entities: Vec<Entity>,
    messages: &'static MessageTypeSupport,
    services: &'static ServiceTypeSupport,
}

fn c_string(text: &str) -> CString {
    CString::new(text).unwrap()
}

fn text_of(text: *const c_char) -> String {
    // SAFETY: a string of the plug-in.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
}

impl Rows {
    fn new(domain: usize) -> Self {
        let part = Text::type_support();
        let mut rows = Self {
            domain,
            parties: Vec::new(),
            further_nodes: Vec::new(),
            node: null_mut(),
            entities: Vec::new(),
            messages: part,
            services: service_type_support(part),
        };
        rows.add_context("rows");
        rows
    }

    fn add_context(&mut self, name: &str) {
        let party = Party::with_node(self.domain, &c_string(name));
        self.node = party.node().cast_mut();
        self.parties.push(party);
    }

    fn party(&self) -> &Party {
        self.parties.last().unwrap()
    }

    fn add(&mut self, handle: Handle) {
        let of_publisher = matches!(handle, Handle::Publisher(_));
        let events = ["matched", "incompatible", "liveliness"].into_iter();
        let events = events.filter_map(|name| {
            let kind = event_kind(name, of_publisher)?;
            let mut event: Box<Event> = Box::new(zeroed());
            match handle {
                Handle::Publisher(publisher) => {
                    self.party().init_event(&mut event, publisher, kind);
                }
                Handle::Subscription(subscription) => {
                    let kind = event_number(kind, true)?;
                    // SAFETY: a subscription and an event.
                    let code =
                        unsafe { rmw_subscription_event_init(&mut *event, subscription, kind) };
                    assert_eq!(code, ret::OK);
                }
                _ => return None,
            }
            Some(RowEvent {
                name,
                event,
                shown: String::new(),
            })
        });
        let events = events.collect();
        self.entities.push(Entity {
            handle,
            node: self.node,
            party: self.parties.len() - 1,
            events,
            taken: Vec::new(),
            requests: Vec::new(),
            is_destroyed: false,
        });
    }

    fn create(&mut self, kind: &str, name: &str, words: &[&str]) {
        let row = RowQos::parse(words);
        let (name, profile) = (c_string(name), profile(&row));
        let name = name.as_ptr();
        let publisher: PublisherOptions = zeroed();
        let mut strings = row.filter.map(FilterStrings::new);
        let mut filter = strings.as_mut().map(FilterStrings::options);
        let subscription = SubscriptionOptions {
            content_filter: filter.as_mut().map_or(null_mut(), std::ptr::from_mut),
            ..zeroed()
        };
        let (node, messages, services) = (self.node, self.messages, self.services);
        // SAFETY: valid arguments.
        let handle = unsafe {
            match kind {
                "pub" => Handle::Publisher(rmw_create_publisher(
                    node, messages, name, &profile, &publisher,
                )),
                "sub" => Handle::Subscription(rmw_create_subscription(
                    node,
                    messages,
                    name,
                    &profile,
                    &subscription,
                )),
                "server" => Handle::Server(rmw_create_service(node, services, name, &qos())),
                "client" => Handle::Client(rmw_create_client(node, services, name, &qos())),
                _ => panic!("{kind}"),
            }
        };
        self.add(match handle {
            Handle::Subscription(subscription) if subscription.is_null() => Handle::Failed,
            handle => handle,
        });
    }

    fn set_filter(&self, number: &str, words: &[&str]) -> &'static str {
        let Handle::Subscription(subscription) = self.entity(number).handle else {
            panic!("no subscription");
        };
        let mut strings = FilterStrings::new(RowFilter::parse(words));
        let options = strings.options();
        // SAFETY: a subscription that is alive, and options.
        match unsafe { rmw_subscription_set_content_filter(subscription, &raw const options) } {
            ret::OK => "ok",
            _ => "refused",
        }
    }

    /// The entities that a wait finds ready.
    fn wait(&self, timeout: &str, numbers: &[&str]) -> String {
        // Entries of rmw_wait: subscriptions, guard conditions, services, clients.
        let mut entries: [Vec<(&str, *mut c_void)>; 4] = Default::default();
        for number in numbers {
            // SAFETY: entities that are alive.
            let (kind, data) = unsafe {
                match self.entity(number).handle {
                    Handle::Subscription(subscription) => (0, (*subscription).data),
                    Handle::Guard(guard) => (1, (*guard).data),
                    Handle::Server(server) => (2, (*server).data),
                    Handle::Client(client) => (3, (*client).data),
                    Handle::Publisher(_) | Handle::Failed => panic!("{number} is never ready"),
                }
            };
            entries[kind].push((number, data));
        }
        let mut data = entries.each_ref().map(|of_kind| {
            let data = of_kind.iter().map(|(_, data)| *data);
            data.collect::<Vec<_>>()
        });
        let mut arrays = data.each_mut().map(|data| WaitArray {
            count: data.len(),
            entries: data.as_mut_ptr(),
        });
        let [subscriptions, guards, services, clients] = &mut arrays;
        let timeout: f64 = timeout.parse().unwrap();
        let timeout = std::time::Duration::from_secs_f64(timeout);
        let timeout = Time {
            sec: timeout.as_secs(),
            nsec: u64::from(timeout.subsec_nanos()),
        };
        let set = self.party().wait_set();
        // SAFETY: arrays of entities that are alive.
        let code = unsafe {
            rmw_wait(
                subscriptions,
                guards,
                services,
                clients,
                null_mut(),
                set,
                &timeout,
            )
        };
        let found = entries.iter().flatten().zip(data.iter().flatten());
        let mut ready: Vec<_> = found
            .filter(|(_, data)| !data.is_null())
            .map(|((number, _), _)| *number)
            .collect();
        assert_eq!(code == ret::OK, !ready.is_empty(), "{code}");
        ready.sort_unstable();
        ready.join(" ")
    }

    fn take_next(&mut self, number: &str) {
        let entity = &mut self.entities[at(number)];
        let (mut text, mut info, mut taken) = (Text::new(0, ""), zeroed::<ServiceInfo>(), false);
        let message = (&raw mut text).cast();
        // SAFETY: an entity that is alive, and a message of its type.
        let code = unsafe {
            match entity.handle {
                Handle::Subscription(subscription) => {
                    taken = take(subscription, &mut text);
                    ret::OK
                }
                Handle::Server(server) => rmw_take_request(server, &mut info, message, &mut taken),
                Handle::Client(client) => rmw_take_response(client, &mut info, message, &mut taken),
                _ => panic!("{number} has nothing to take"),
            }
        };
        assert_eq!((code, taken), (ret::OK, true));
        match entity.handle {
            Handle::Subscription(_) => entity.taken.push(text.text().to_owned()),
            _ => entity.requests.push(info.request_id),
        }
    }

    fn entity(&self, number: &str) -> &Entity {
        &self.entities[at(number)]
    }

    fn drop_entity(&mut self, at: usize) {
        let entity = &mut self.entities[at];
        entity.is_destroyed = true;
        entity.events.clear();
        let node = entity.node;
        // SAFETY: an entity of this node, which is used no more.
        let code = unsafe {
            match entity.handle {
                Handle::Publisher(publisher) => rmw_destroy_publisher(node, publisher),
                Handle::Subscription(subscription) => rmw_destroy_subscription(node, subscription),
                Handle::Server(server) => rmw_destroy_service(node, server),
                Handle::Client(client) => rmw_destroy_client(node, client),
                Handle::Guard(guard) => rmw_destroy_guard_condition(guard),
                Handle::Failed => ret::OK,
            }
        };
        assert_eq!(code, ret::OK);
    }

    /// Receives, and takes what has come.
    fn poll(&mut self) {
        self.parties.iter().for_each(Party::poll);
        let parties = &self.parties;
        for entity in self.entities.iter_mut().filter(|one| !one.is_destroyed) {
            if let Handle::Subscription(subscription) = entity.handle {
                let mut message = Text::new(0, "");
                while take(subscription, &mut message) {
                    entity.taken.push(message.text().to_owned());
                }
            }
            for one in &mut entity.events {
                if parties[entity.party].has_event(&mut one.event) {
                    one.shown = take_status(one.name, &one.event);
                }
            }
        }
    }

    fn count(&self, kind: &str, name: &str) -> usize {
        let (name, mut count) = (c_string(name), 0);
        let ask = match kind {
            "publishers" => rmw_count_publishers,
            "subscriptions" => rmw_count_subscribers,
            "servers" => rmw_count_services,
            "clients" => rmw_count_clients,
            _ => panic!("{kind}"),
        };
        // SAFETY: valid arguments.
        let code = unsafe { ask(self.node, name.as_ptr(), &mut count) };
        assert_eq!(code, ret::OK);
        count
    }

    fn endpoints(&self, kind: &str, topic: &str) -> String {
        let mut found = TopicEndpointInfoArray {
            size: 0,
            info_array: null_mut(),
        };
        let ask = match kind {
            "publishers" => rmw_get_publishers_info_by_topic,
            "subscriptions" => rmw_get_subscriptions_info_by_topic,
            _ => panic!("{kind}"),
        };
        let topic = c_string(topic);
        // SAFETY: valid arguments; what comes is freed here.
        let mut shown = unsafe {
            let code = ask(
                self.node,
                &mut allocator(),
                topic.as_ptr(),
                false,
                &mut found,
            );
            assert_eq!(code, ret::OK);
            let infos = (0..found.size).map(|at| found.info_array.add(at).read());
            let shown = infos.map(|info| {
                let namespace = text_of(info.node_namespace);
                let node = format!(
                    "{}/{}",
                    namespace.trim_end_matches('/'),
                    text_of(info.node_name)
                );
                for text in [info.node_name, info.node_namespace, info.topic_type] {
                    free_memory(text.cast_mut());
                }
                row_qos(&info.qos_profile).shown(&node)
            });
            shown.collect::<Vec<_>>()
        };
        free_memory(found.info_array);
        shown.sort();
        shown.join(", ")
    }

    /// Names of a query; `Err` with its return code.
    fn names(
        &self,
        ask: impl FnOnce(*mut Allocator, *mut NamesAndTypes) -> Ret,
    ) -> Result<String, Ret> {
        let mut found: NamesAndTypes = zeroed();
        let code = ask(&mut allocator(), &mut found);
        if code != ret::OK {
            return Err(code);
        }
        let count = found.names.size;
        let names: BTreeSet<_> = strings(&found.names).into_iter().collect();
        for at in 0..count {
            // SAFETY: an array of types for each name.
            strings(unsafe { &*found.types.add(at) });
        }
        free_memory(found.types);
        Ok(names.into_iter().collect::<Vec<_>>().join(" "))
    }

    fn names_of_node(&self, kind: &str, node: &str) -> String {
        let (namespace, name) = node.rsplit_once('/').unwrap();
        let namespace = if namespace.is_empty() { "/" } else { namespace };
        let (namespace, name) = (c_string(namespace), c_string(name));
        let (namespace, name, node) = (namespace.as_ptr(), name.as_ptr(), self.node);
        // SAFETY: valid arguments.
        let found = self.names(|allocator, out| unsafe {
            match kind {
                "publishers" => rmw_get_publisher_names_and_types_by_node(
                    node, allocator, name, namespace, false, out,
                ),
                "subscriptions" => rmw_get_subscriber_names_and_types_by_node(
                    node, allocator, name, namespace, false, out,
                ),
                "servers" => {
                    rmw_get_service_names_and_types_by_node(node, allocator, name, namespace, out)
                }
                "clients" => {
                    rmw_get_client_names_and_types_by_node(node, allocator, name, namespace, out)
                }
                _ => panic!("{kind}"),
            }
        });
        found.unwrap_or_else(|code| {
            assert_eq!(code, ret::NODE_NAME_NON_EXISTENT);
            "no such node".to_owned()
        })
    }

    fn matched(&self, handle: Handle) -> usize {
        let mut count = 0;
        // SAFETY: an entity that is alive.
        let code = unsafe {
            match handle {
                Handle::Publisher(publisher) => {
                    rmw_publisher_count_matched_subscriptions(publisher, &mut count)
                }
                Handle::Subscription(subscription) => {
                    rmw_subscription_count_matched_publishers(subscription, &mut count)
                }
                _ => panic!("a service has no such count"),
            }
        };
        assert_eq!(code, ret::OK);
        count
    }

    fn is_available(&self, handle: Handle) -> &'static str {
        let Handle::Client(client) = handle else {
            panic!("no client");
        };
        let mut available = false;
        // SAFETY: a client that is alive.
        let code = unsafe { rmw_service_server_is_available(self.node, client, &mut available) };
        assert_eq!(code, ret::OK);
        if available { "yes" } else { "no" }
    }
}

/// The index of an entity.
fn at(number: &str) -> usize {
    number.parse::<usize>().unwrap() - 1
}

/// The strings that options of a content filter point to.
struct FilterStrings {
    expression: CString,
    _parameters: Vec<CString>,
    pointers: Vec<*mut c_char>,
}

impl FilterStrings {
    fn new(filter: RowFilter) -> Self {
        let parameters: Vec<_> = filter
            .parameters
            .iter()
            .map(|text| c_string(text))
            .collect();
        Self {
            expression: c_string(&filter.expression),
            pointers: parameters
                .iter()
                .map(|text| text.as_ptr().cast_mut())
                .collect(),
            _parameters: parameters,
        }
    }

    fn options(&mut self) -> ContentFilterOptions {
        filter(&self.expression, &mut self.pointers)
    }
}

/// The strings of an array, which is freed.
fn strings(array: &StringArray) -> Vec<String> {
    let all = (0..array.size).map(|at| {
        // SAFETY: an array of so many strings, whose memory is C's.
        unsafe {
            let text = array.data.add(at).read();
            let copy = text_of(text);
            free_memory(text);
            copy
        }
    });
    let all = all.collect();
    free_memory(array.data);
    all
}

/// Takes the status of an event and shows it.
fn take_status(name: &str, event: &Event) -> String {
    fn taken<T>(event: &Event) -> T {
        let (mut status, mut is_taken): (T, bool) = (zeroed(), false);
        // SAFETY: the status of this kind.
        let code = unsafe { rmw_take_event(event, (&raw mut status).cast(), &mut is_taken) };
        assert_eq!((code, is_taken), (ret::OK, true));
        status
    }
    match name {
        "matched" => {
            let status: MatchedStatus = taken(event);
            format!("{} {}", status.total_count, status.current_count)
        }
        "incompatible" => {
            let status: IncompatibleQosStatus = taken(event);
            let policy = POLICIES
                .iter()
                .find(|(bit, _)| *bit == status.last_policy_kind);
            format!("{} {}", status.total_count, policy.unwrap().1)
        }
        _ => {
            let status: LivelinessChangedStatus = taken(event);
            format!("{} {}", status.alive_count, status.not_alive_count)
        }
    }
}

fn seconds(span: Option<u64>) -> Time {
    Time {
        sec: span.unwrap_or(0),
        nsec: 0,
    }
}

fn profile(row: &RowQos) -> QosProfile {
    let mut profile = QosProfile {
        history: if row.keep_all { 2 } else { 1 },
        depth: row.depth.unwrap_or(10) as usize,
        reliability: if row.best_effort { 2 } else { 1 },
        durability: if row.transient_local { 1 } else { 2 },
        liveliness: if row.manual { 3 } else { 1 },
        deadline: seconds(row.deadline),
        lifespan: seconds(row.lifespan),
        liveliness_lease_duration: seconds(row.lease),
        avoid_ros_namespace_conventions: false,
    };
    if row.best_available {
        (profile.reliability, profile.durability, profile.liveliness) = (4, 4, 5);
        profile.deadline = BEST_AVAILABLE;
        profile.liveliness_lease_duration = BEST_AVAILABLE;
    }
    profile
}

fn row_qos(profile: &QosProfile) -> RowQos {
    let span = |span: &Time| (1..INFINITE_S).contains(&span.sec).then_some(span.sec);
    RowQos {
        best_effort: profile.reliability == 2,
        transient_local: profile.durability == 1,
        manual: profile.liveliness == 3,
        deadline: span(&profile.deadline),
        lease: span(&profile.liveliness_lease_duration),
        ..RowQos::default()
    }
}

impl NodeDriver for Rows {
    fn play(&mut self, step: &[&str]) {
        match step {
            ["context", name] => self.add_context(name),
            ["node", namespace, name] => {
                let (name, namespace) = (c_string(name), c_string(namespace));
                let context = self.party().context();
                // SAFETY: a context.
                self.node = unsafe { rmw_create_node(context, name.as_ptr(), namespace.as_ptr()) };
                assert!(!self.node.is_null());
                self.further_nodes.push(self.node);
            }
            ["drop", number] => self.drop_entity(at(number)),
            ["send", number, text] => {
                let Handle::Publisher(publisher) = self.entities[at(number)].handle else {
                    panic!("no publisher");
                };
                publish(publisher, &Text::new(0, text));
            }
            ["filter", number, words @ ..] => {
                self.set_filter(number, words);
            }
            ["wait", timeout, numbers @ ..] => {
                self.wait(timeout, numbers);
            }
            ["get", number] => self.take_next(number),
            ["guard"] => {
                // SAFETY: a context.
                let guard = unsafe { rmw_create_guard_condition(self.party().context()) };
                self.add(Handle::Guard(guard));
            }
            ["trigger", number] => {
                let Handle::Guard(guard) = self.entity(number).handle else {
                    panic!("no guard condition");
                };
                // SAFETY: it is alive.
                assert_eq!(unsafe { rmw_trigger_guard_condition(guard) }, ret::OK);
            }
            ["request", number] => {
                let Handle::Client(client) = self.entity(number).handle else {
                    panic!("no client");
                };
                let (request, mut sequence) = (Text::new(0, "request"), 0);
                // SAFETY: a request of its type.
                let code =
                    unsafe { rmw_send_request(client, (&raw const request).cast(), &mut sequence) };
                assert_eq!(code, ret::OK);
            }
            ["respond", number] => {
                let entity = &mut self.entities[at(number)];
                let Handle::Server(server) = entity.handle else {
                    panic!("no server");
                };
                let (mut id, mut response) = (entity.requests.remove(0), Text::new(0, "response"));
                // SAFETY: a response of its type.
                let code =
                    unsafe { rmw_send_response(server, &mut id, (&raw mut response).cast()) };
                assert_eq!(code, ret::OK);
            }
            [kind, name, words @ ..] => self.create(kind, name, words),
            _ => panic!("{step:?}"),
        }
    }

    fn answer(&mut self, question: &[&str]) -> String {
        match question {
            ["wait", timeout, numbers @ ..] => return self.wait(timeout, numbers),
            ["filter", number, words @ ..] => return self.set_filter(number, words).to_owned(),
            _ => {}
        }
        self.poll();
        let entity = |number: &str| self.entity(number);
        let node = self.node;
        match question {
            ["count", kind, name] => self.count(kind, name).to_string(),
            ["available", number] => self.is_available(entity(number).handle).to_owned(),
            ["matched", number] => self.matched(entity(number).handle).to_string(),
            ["take", number] => entity(number).taken.join(" "),
            ["filtered", number] => match entity(number).handle {
                // SAFETY: it is alive.
                Handle::Subscription(it) if unsafe { (*it).is_cft_enabled } => "yes".to_owned(),
                Handle::Subscription(_) => "no".to_owned(),
                _ => "refused".to_owned(),
            },
            ["qos", kind, topic] => self.endpoints(kind, topic),
            ["names", kind, node] => self.names_of_node(kind, node),
            // SAFETY: valid arguments.
            ["topics"] => self
                .names(|allocator, out| unsafe {
                    rmw_get_topic_names_and_types(node, allocator, false, out)
                })
                .unwrap(),
            // SAFETY: valid arguments.
            ["services"] => self
                .names(|allocator, out| unsafe {
                    rmw_get_service_names_and_types(node, allocator, out)
                })
                .unwrap(),
            ["event", number, kind] => {
                let mut events = entity(number).events.iter();
                events
                    .find(|event| event.name == *kind)
                    .unwrap()
                    .shown
                    .clone()
            }
            _ => panic!("{question:?}"),
        }
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        for at in 0..self.entities.len() {
            if !self.entities[at].is_destroyed {
                self.drop_entity(at);
            }
        }
        for node in &self.further_nodes {
            // SAFETY: a node without entities.
            assert_eq!(unsafe { rmw_destroy_node(*node) }, ret::OK);
        }
    }
}

#[test]
fn the_plug_in_has_the_rows_of_the_behaviour_tables() {
    let tables = ["content_filters", "graph", "wait_sets"];
    check_list(&tables, &LEFT_OUT);
    let domain = unused_domain();
    for table in tables {
        let played = play_nodes(table, &LEFT_OUT, || Rows::new(domain));
        assert!(played > 20, "{table}");
    }
}
