//! Contexts, nodes, endpoints and message types, made by the exported functions.

use std::ffi::{CStr, c_char, c_void};
use std::mem::{MaybeUninit, offset_of};
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pteros_rcl::event_status::StatusKind;
use rmw_pteros_cpp::abi::{
    Allocator, ContentFilterOptions, Context, DiscoveryFields, Event, EventCallback,
    GuardCondition, InitOptions, MessageInfo, MessageMember, MessageMembers, MessageTypeSupport,
    NamesAndTypes, NetworkFlowEndpoints, Node, Publisher, PublisherOptions, QosProfile, RequestId,
    Ret, SerializedMessage, ServiceHandle, ServiceInfo, ServiceMembers, ServiceTypeSupport,
    StringArray, Subscription, SubscriptionOptions, Time, TopicEndpointInfoArray, WaitArray,
    WaitSet, ret,
};
use rmw_pteros_cpp::distribution::event_number;

// Of the C library.
unsafe extern "C" {
    fn malloc(bytes: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
    fn realloc(memory: *mut c_void, bytes: usize) -> *mut c_void;
    fn calloc(count: usize, bytes: usize) -> *mut c_void;
}

// Of the plug-in: entities.
unsafe extern "C" {
    pub fn rmw_init_options_init(options: *mut InitOptions, allocator: Allocator) -> Ret;
    pub fn rmw_init_options_fini(options: *mut InitOptions) -> Ret;
    fn rmw_init(options: *const InitOptions, context: *mut Context) -> Ret;
    pub fn rmw_shutdown(context: *mut Context) -> Ret;
    fn rmw_context_fini(context: *mut Context) -> Ret;
    pub fn rmw_create_node(
        context: *mut Context,
        name: *const c_char,
        ns: *const c_char,
    ) -> *mut Node;
    pub fn rmw_destroy_node(node: *mut Node) -> Ret;
    pub fn rmw_get_topic_names_and_types(
        node: *const Node,
        allocator: *mut Allocator,
        no_demangle: bool,
        out: *mut NamesAndTypes,
    ) -> Ret;
    pub fn rmw_get_publishers_info_by_topic(
        node: *const Node,
        allocator: *mut Allocator,
        name: *const c_char,
        no_mangle: bool,
        out: *mut TopicEndpointInfoArray,
    ) -> Ret;
    pub fn rmw_create_publisher(
        node: *const Node,
        type_support: *const MessageTypeSupport,
        topic: *const c_char,
        qos: *const QosProfile,
        options: *const PublisherOptions,
    ) -> *mut Publisher;
    pub fn rmw_destroy_publisher(node: *mut Node, publisher: *mut Publisher) -> Ret;
    pub fn rmw_create_subscription(
        node: *const Node,
        type_support: *const MessageTypeSupport,
        topic: *const c_char,
        qos: *const QosProfile,
        options: *const SubscriptionOptions,
    ) -> *mut Subscription;
    pub fn rmw_destroy_subscription(node: *mut Node, subscription: *mut Subscription) -> Ret;
    pub fn rmw_create_client(
        node: *const Node,
        type_support: *const ServiceTypeSupport,
        name: *const c_char,
        qos: *const QosProfile,
    ) -> *mut ServiceHandle;
    pub fn rmw_destroy_client(node: *mut Node, client: *mut ServiceHandle) -> Ret;
    pub fn rmw_create_service(
        node: *const Node,
        type_support: *const ServiceTypeSupport,
        name: *const c_char,
        qos: *const QosProfile,
    ) -> *mut ServiceHandle;
    pub fn rmw_destroy_service(node: *mut Node, service: *mut ServiceHandle) -> Ret;
    pub fn rmw_send_request(
        client: *const ServiceHandle,
        request: *const c_void,
        sequence: *mut i64,
    ) -> Ret;
    pub fn rmw_take_request(
        service: *const ServiceHandle,
        info: *mut ServiceInfo,
        request: *mut c_void,
        taken: *mut bool,
    ) -> Ret;
    pub fn rmw_send_response(
        service: *const ServiceHandle,
        request: *mut RequestId,
        response: *mut c_void,
    ) -> Ret;
    pub fn rmw_take_response(
        client: *const ServiceHandle,
        info: *mut ServiceInfo,
        response: *mut c_void,
        taken: *mut bool,
    ) -> Ret;
}

// Of the plug-in: events, waits and messages.
unsafe extern "C" {
    pub fn rmw_create_guard_condition(context: *mut Context) -> *mut GuardCondition;
    pub fn rmw_destroy_guard_condition(guard: *mut GuardCondition) -> Ret;
    pub fn rmw_trigger_guard_condition(guard: *const GuardCondition) -> Ret;
    pub fn rmw_publisher_count_matched_subscriptions(
        publisher: *const Publisher,
        count: *mut usize,
    ) -> Ret;
    pub fn rmw_subscription_set_on_new_message_callback(
        subscription: *mut Subscription,
        callback: EventCallback,
        user_data: *const c_void,
    ) -> Ret;
    fn rmw_publisher_event_init(event: *mut Event, publisher: *const Publisher, kind: u32) -> Ret;
    pub fn rmw_take_event(event: *const Event, info: *mut c_void, taken: *mut bool) -> Ret;
    fn rmw_create_wait_set(context: *mut Context, conditions: usize) -> *mut WaitSet;
    fn rmw_destroy_wait_set(wait_set: *mut WaitSet) -> Ret;
    pub fn rmw_wait(
        subscriptions: *mut WaitArray,
        guard_conditions: *mut WaitArray,
        services: *mut WaitArray,
        clients: *mut WaitArray,
        events: *mut WaitArray,
        wait_set: *mut WaitSet,
        timeout: *const Time,
    ) -> Ret;
    pub fn rmw_publish(
        publisher: *const Publisher,
        message: *const c_void,
        allocation: *mut c_void,
    ) -> Ret;
    pub fn rmw_take(
        subscription: *const Subscription,
        message: *mut c_void,
        taken: *mut bool,
        allocation: *mut c_void,
    ) -> Ret;
    pub fn rmw_take_serialized_message(
        subscription: *const Subscription,
        message: *mut SerializedMessage,
        taken: *mut bool,
        allocation: *mut c_void,
    ) -> Ret;
    pub fn rmw_take_with_info(
        subscription: *const Subscription,
        message: *mut c_void,
        taken: *mut bool,
        info: *mut MessageInfo,
        allocation: *mut c_void,
    ) -> Ret;
    pub fn rmw_borrow_loaned_message(
        publisher: *const Publisher,
        type_support: *const MessageTypeSupport,
        message: *mut *mut c_void,
    ) -> Ret;
    pub fn rmw_return_loaned_message_from_publisher(
        publisher: *const Publisher,
        message: *mut c_void,
    ) -> Ret;
    pub fn rmw_publish_loaned_message(
        publisher: *const Publisher,
        message: *mut c_void,
        allocation: *mut c_void,
    ) -> Ret;
    pub fn rmw_take_loaned_message_with_info(
        subscription: *const Subscription,
        message: *mut *mut c_void,
        taken: *mut bool,
        info: *mut MessageInfo,
        allocation: *mut c_void,
    ) -> Ret;
    pub fn rmw_return_loaned_message_from_subscription(
        subscription: *const Subscription,
        message: *mut c_void,
    ) -> Ret;
    pub fn rmw_subscription_set_content_filter(
        subscription: *mut Subscription,
        options: *const ContentFilterOptions,
    ) -> Ret;
    pub fn rmw_subscription_get_content_filter(
        subscription: *const Subscription,
        allocator: *const Allocator,
        options: *mut ContentFilterOptions,
    ) -> Ret;
    pub fn rmw_publisher_get_network_flow_endpoints(
        publisher: *const Publisher,
        allocator: *const Allocator,
        endpoints: *mut NetworkFlowEndpoints,
    ) -> Ret;
    pub fn rmw_get_serialized_message_size(
        type_support: *const MessageTypeSupport,
        bounds: *const c_void,
        size: *mut usize,
    ) -> Ret;
}

/// How long a condition may take.
pub const TIMEOUT: Duration = Duration::from_secs(20);

unsafe extern "C" fn allocate(bytes: usize, _: *mut c_void) -> *mut c_void {
    // SAFETY: C's function.
    unsafe { malloc(bytes) }
}

unsafe extern "C" fn deallocate(memory: *mut c_void, _: *mut c_void) {
    // SAFETY: C's function.
    unsafe { free(memory) }
}

unsafe extern "C" fn reallocate(memory: *mut c_void, bytes: usize, _: *mut c_void) -> *mut c_void {
    // SAFETY: C's function.
    unsafe { realloc(memory, bytes) }
}

unsafe extern "C" fn zero_allocate(count: usize, bytes: usize, _: *mut c_void) -> *mut c_void {
    // SAFETY: C's function.
    unsafe { calloc(count, bytes) }
}

/// C's own allocator, as rcutils has it by default.
pub fn allocator() -> Allocator {
    Allocator {
        allocate: Some(allocate),
        deallocate: Some(deallocate),
        reallocate: Some(reallocate),
        zero_allocate: Some(zero_allocate),
        state: null_mut(),
    }
}

/// Frees memory of [`allocator`].
pub fn free_memory<T>(memory: *mut T) {
    // SAFETY: from `malloc`.
    unsafe { free(memory.cast()) }
}

/// A structure of rmw before its initialization.
pub fn zeroed<T>() -> T {
    // SAFETY: only called for C structures of pointers, numbers and functions that may
    // be null, which rmw zero-initializes as well.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// A message type of one number of 32 bits and one array of bytes.
#[repr(C)]
pub struct Frame<const BYTES: usize> {
    pub valid: u8,
    pub id: u32,
    pub data: [u8; BYTES],
}

impl<const BYTES: usize> Frame<BYTES> {
    /// On the heap, for it can be large.
    pub fn boxed(id: u32, byte: u8) -> Box<Self> {
        // SAFETY: numbers.
        let mut frame: Box<Self> = unsafe { Box::new_zeroed().assume_init() };
        (frame.valid, frame.id) = (1, id);
        frame.data.fill(byte);
        frame
    }

    /// Its typesupport, which lives for ever.
    pub fn type_support() -> &'static MessageTypeSupport {
        type_support(
            c"Frame",
            size_of::<Self>(),
            vec![
                member(c"valid", 6, offset_of!(Self, valid), 0),
                member(c"id", 12, offset_of!(Self, id), 0),
                member(c"data", 8, offset_of!(Self, data), BYTES),
            ],
        )
    }
}

/// A member of a type; `count` elements of an array, or 0.
pub fn member(name: &'static CStr, type_id: u8, offset: usize, count: usize) -> MessageMember {
    let mut member: MessageMember = zeroed();
    #[cfg(not(distribution = "lyrical"))]
    let fields = &mut member;
    #[cfg(distribution = "lyrical")]
    let fields = &mut member.common;
    fields.name = name.as_ptr();
    fields.type_id = type_id;
    fields.is_array = count > 0;
    fields.array_size = count;
    fields.offset = u32::try_from(offset).unwrap();
    member
}

/// A message type of one number and one string, as rosidl makes it for C.
#[repr(C)]
pub struct Text {
    pub id: u32,
    data: *mut u8,
    size: usize,
    capacity: usize,
}

impl Text {
    pub fn new(id: u32, text: &str) -> Self {
        // SAFETY: memory for the text and its zero.
        let data = unsafe {
            let data: *mut u8 = malloc(text.len() + 1).cast();
            data.copy_from_nonoverlapping(text.as_ptr(), text.len());
            data.add(text.len()).write(0);
            data
        };
        Self {
            id,
            data,
            size: text.len(),
            capacity: text.len() + 1,
        }
    }

    pub fn text(&self) -> &str {
        // SAFETY: `size` bytes, written by `new` or the plug-in.
        let bytes = unsafe { std::slice::from_raw_parts(self.data, self.size) };
        std::str::from_utf8(bytes).unwrap()
    }

    /// Where the characters lie.
    pub fn data(&self) -> *const u8 {
        self.data
    }

    /// A typesupport of its own, which lives for ever.
    pub fn type_support() -> &'static MessageTypeSupport {
        finalized_type_support(
            c"Text",
            size_of::<Self>(),
            vec![
                member(c"id", 12, offset_of!(Self, id), 0),
                member(c"data", 16, offset_of!(Self, data), 0),
            ],
            Some(finalize_text),
        )
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        free_memory(self.data);
    }
}

/// The fini function of `Text`.
unsafe extern "C" fn finalize_text(text: *mut c_void) {
    // SAFETY: an initialized struct, which is not used any more.
    unsafe { text.cast::<Text>().drop_in_place() };
}

/// The C introspection typesupport of a type.
pub fn type_support(
    name: &'static CStr,
    size_of: usize,
    members: Vec<MessageMember>,
) -> &'static MessageTypeSupport {
    finalized_type_support(name, size_of, members, None)
}

/// The same of a type whose structs own memory.
fn finalized_type_support(
    name: &'static CStr,
    size_of: usize,
    members: Vec<MessageMember>,
    fini_function: Option<unsafe extern "C" fn(*mut c_void)>,
) -> &'static MessageTypeSupport {
    let members = members.leak();
    let described = Box::leak(Box::new(MessageMembers {
        message_namespace: c"test__msg".as_ptr(),
        message_name: name.as_ptr(),
        member_count: u32::try_from(members.len()).unwrap(),
        size_of,
        members: members.as_ptr().cast(),
        fini_function,
        ..zeroed()
    }));
    Box::leak(Box::new(MessageTypeSupport {
        typesupport_identifier: INTROSPECTION_C.as_ptr(),
        data: std::ptr::from_ref(described).cast(),
        func: Some(itself),
        ..zeroed()
    }))
}

const INTROSPECTION_C: &CStr = c"rosidl_typesupport_introspection_c";

unsafe extern "C" fn itself(
    handle: *const MessageTypeSupport,
    identifier: *const c_char,
) -> *const MessageTypeSupport {
    // SAFETY: a C string.
    if unsafe { CStr::from_ptr(identifier) } == INTROSPECTION_C {
        handle
    } else {
        null()
    }
}

/// The C introspection typesupport of a service whose request and response are that
/// message.
pub fn service_type_support(part: &'static MessageTypeSupport) -> &'static ServiceTypeSupport {
    let described = Box::leak(Box::new(ServiceMembers {
        service_namespace: c"test__srv".as_ptr(),
        service_name: c"Echo".as_ptr(),
        request_members: part.data.cast(),
        response_members: part.data.cast(),
        ..zeroed()
    }));
    Box::leak(Box::new(ServiceTypeSupport {
        typesupport_identifier: INTROSPECTION_C.as_ptr(),
        data: std::ptr::from_ref(described).cast(),
        func: Some(service_itself),
        ..zeroed()
    }))
}

unsafe extern "C" fn service_itself(
    handle: *const ServiceTypeSupport,
    identifier: *const c_char,
) -> *const ServiceTypeSupport {
    // SAFETY: a C string.
    if unsafe { CStr::from_ptr(identifier) } == INTROSPECTION_C {
        handle
    } else {
        null()
    }
}

/// A profile: reliable, volatile, keep last 10.
pub fn qos() -> QosProfile {
    QosProfile {
        history: 1,
        depth: 10,
        reliability: 1,
        durability: 2,
        liveliness: 1,
        ..zeroed()
    }
}

/// Options that keep a context on this host.
fn localhost() -> DiscoveryFields {
    /// `RMW_AUTOMATIC_DISCOVERY_RANGE_LOCALHOST`.
    #[cfg(not(distribution = "humble"))]
    const LOCALHOST: u32 = 2;
    let mut fields: DiscoveryFields = zeroed();
    #[cfg(distribution = "humble")]
    (fields.localhost_only = 1);
    #[cfg(distribution = "jazzy")]
    (fields.discovery_options.automatic_discovery_range = LOCALHOST);
    #[cfg(any(distribution = "kilted", distribution = "lyrical"))]
    (fields.automatic_discovery_range = LOCALHOST);
    fields
}

/// A context with one node and a wait set.
pub struct Party {
    context: Box<Context>,
    node: *mut Node,
    wait_set: *mut WaitSet,
}

/// A domain that no other test of this program uses.
pub fn unused_domain() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(171);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Party {
    pub fn new(domain: usize) -> Self {
        Self::with_node(domain, c"party")
    }

    /// With a node of that name.
    pub fn with_node(domain: usize, name: &CStr) -> Self {
        // SAFETY: the order of calls is that of rcl.
        unsafe {
            let mut options: InitOptions = zeroed();
            assert_eq!(rmw_init_options_init(&mut options, allocator()), ret::OK);
            options.domain_id = domain;
            options.discovery = localhost();
            options.enclave = calloc(2, 1).cast();
            options.enclave.cast::<u8>().write(b'/');
            let mut context: Box<Context> = Box::new(zeroed());
            assert_eq!(rmw_init(&raw const options, &raw mut *context), ret::OK);
            assert_eq!(rmw_init_options_fini(&mut options), ret::OK);
            let node = rmw_create_node(&raw mut *context, name.as_ptr(), c"/".as_ptr());
            assert!(!node.is_null());
            let wait_set = rmw_create_wait_set(&raw mut *context, 1);
            assert!(!wait_set.is_null());
            Self {
                context,
                node,
                wait_set,
            }
        }
    }

    pub fn node(&self) -> *const Node {
        self.node
    }

    pub fn context(&self) -> *mut Context {
        (&raw const *self.context).cast_mut()
    }

    pub fn wait_set(&self) -> *mut WaitSet {
        self.wait_set
    }

    pub fn client(&self, ty: &ServiceTypeSupport) -> *mut ServiceHandle {
        // SAFETY: valid arguments.
        let made = unsafe { rmw_create_client(self.node, ty, c"/s".as_ptr(), &qos()) };
        assert!(!made.is_null());
        made
    }

    pub fn service(&self, ty: &ServiceTypeSupport) -> *mut ServiceHandle {
        // SAFETY: valid arguments.
        let made = unsafe { rmw_create_service(self.node, ty, c"/s".as_ptr(), &qos()) };
        assert!(!made.is_null());
        made
    }

    /// Destroys the wait set and continues with another one.
    pub fn renew_wait_set(&mut self) {
        // SAFETY: made by `new` or here.
        unsafe {
            let wait_set = rmw_create_wait_set(&raw mut *self.context, 1);
            assert!(!wait_set.is_null());
            assert_eq!(rmw_destroy_wait_set(self.wait_set), ret::OK);
            self.wait_set = wait_set;
        }
    }

    pub fn publisher(&self, ty: &MessageTypeSupport) -> *mut Publisher {
        self.publisher_with(ty, &qos())
    }

    pub fn publisher_with(&self, ty: &MessageTypeSupport, qos: &QosProfile) -> *mut Publisher {
        let options: PublisherOptions = zeroed();
        // SAFETY: valid arguments.
        let made =
            unsafe { rmw_create_publisher(self.node, ty, c"/t".as_ptr(), qos, &raw const options) };
        assert!(!made.is_null());
        made
    }

    pub fn subscription(
        &self,
        ty: &MessageTypeSupport,
        filter: *mut ContentFilterOptions,
    ) -> *mut Subscription {
        self.subscription_with(ty, &qos(), filter)
    }

    pub fn subscription_with(
        &self,
        ty: &MessageTypeSupport,
        qos: &QosProfile,
        filter: *mut ContentFilterOptions,
    ) -> *mut Subscription {
        let options = SubscriptionOptions {
            content_filter: filter,
            ..zeroed()
        };
        // SAFETY: valid arguments.
        let made = unsafe {
            rmw_create_subscription(self.node, ty, c"/t".as_ptr(), qos, &raw const options)
        };
        assert!(!made.is_null());
        made
    }

    /// Waits for a message. Returns whether one came.
    pub fn wait(&self, subscription: *mut Subscription, timeout: Duration) -> bool {
        let timeout = Time {
            sec: timeout.as_secs(),
            nsec: u64::from(timeout.subsec_nanos()),
        };
        // SAFETY: an array of one subscription.
        unsafe {
            let mut entries = [(*subscription).data];
            let mut subscriptions = WaitArray {
                count: 1,
                entries: entries.as_mut_ptr(),
            };
            let code = rmw_wait(
                &mut subscriptions,
                null_mut(),
                null_mut(),
                null_mut(),
                null_mut(),
                self.wait_set,
                &raw const timeout,
            );
            assert!([ret::OK, ret::TIMEOUT].contains(&code), "{code}");
            code == ret::OK
        }
    }

    /// An event of a publisher.
    pub fn event(&self, publisher: *mut Publisher, kind: StatusKind) -> Event {
        let mut event: Event = zeroed();
        self.init_event(&mut event, publisher, kind);
        event
    }

    /// Initializes an event of a publisher, also for the second time.
    pub fn init_event(&self, event: &mut Event, publisher: *mut Publisher, kind: StatusKind) {
        let kind = event_number(kind, false).unwrap();
        // SAFETY: a publisher and an event.
        let code = unsafe { rmw_publisher_event_init(event, publisher, kind) };
        assert_eq!(code, ret::OK);
    }

    /// Receives for a millisecond, or until the event is there. Returns whether it is.
    pub fn has_event(&self, event: &mut Event) -> bool {
        let timeout = Time {
            sec: 0,
            nsec: 1_000_000,
        };
        let mut entries = [std::ptr::from_mut(event).cast::<c_void>()];
        let mut events = WaitArray {
            count: 1,
            entries: entries.as_mut_ptr(),
        };
        let none = null_mut;
        // SAFETY: an array of one event.
        let code = unsafe {
            let events = &mut events;
            rmw_wait(
                none(),
                none(),
                none(),
                none(),
                events,
                self.wait_set,
                &raw const timeout,
            )
        };
        assert!([ret::OK, ret::TIMEOUT].contains(&code), "{code}");
        code == ret::OK
    }

    /// Waits for a message that must come.
    #[track_caller]
    pub fn wait_for_message(&self, subscription: *mut Subscription) {
        assert!(self.wait(subscription, TIMEOUT), "no message");
    }

    /// Waits until the publisher has that many subscriptions.
    #[track_caller]
    pub fn await_match(&self, publisher: *mut Publisher, count: usize) {
        self.await_condition(|| {
            let mut matched = 0;
            // SAFETY: a publisher.
            let code =
                unsafe { rmw_publisher_count_matched_subscriptions(publisher, &mut matched) };
            assert_eq!(code, ret::OK);
            matched == count
        });
    }

    /// Polls until a condition holds.
    #[track_caller]
    pub fn await_condition(&self, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !holds() {
            assert!(Instant::now() < deadline, "not in time");
            self.poll();
        }
    }

    /// Receives for a millisecond.
    pub fn poll(&self) {
        let timeout = Time {
            sec: 0,
            nsec: 1_000_000,
        };
        let (none, timeout) = (null_mut, &raw const timeout);
        // SAFETY: nothing is waited for.
        unsafe {
            rmw_wait(
                none(),
                none(),
                none(),
                none(),
                none(),
                self.wait_set,
                timeout,
            )
        };
    }

    pub fn destroy_publisher(&self, publisher: *mut Publisher) {
        // SAFETY: made by this node.
        let code = unsafe { rmw_destroy_publisher(self.node, publisher) };
        assert_eq!(code, ret::OK);
    }

    pub fn destroy_client(&self, client: *mut ServiceHandle) {
        // SAFETY: made by this node.
        assert_eq!(unsafe { rmw_destroy_client(self.node, client) }, ret::OK);
    }

    pub fn destroy_service(&self, service: *mut ServiceHandle) {
        // SAFETY: made by this node.
        assert_eq!(unsafe { rmw_destroy_service(self.node, service) }, ret::OK);
    }

    /// Ends the context as rcl does. Returns what the functions returned.
    pub fn end(&mut self) -> [Ret; 4] {
        // SAFETY: made by `new`.
        unsafe {
            [
                rmw_destroy_wait_set(self.wait_set),
                rmw_destroy_node(self.node),
                rmw_shutdown(&raw mut *self.context),
                rmw_context_fini(&raw mut *self.context),
            ]
        }
    }

    pub fn destroy_subscription(&self, subscription: *mut Subscription) {
        // SAFETY: made by this node.
        let code = unsafe { rmw_destroy_subscription(self.node, subscription) };
        assert_eq!(code, ret::OK);
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        self.end();
    }
}

/// A content filter, whose strings the caller keeps.
pub fn filter(expression: &CStr, parameters: &mut [*mut c_char]) -> ContentFilterOptions {
    ContentFilterOptions {
        filter_expression: expression.as_ptr().cast_mut(),
        expression_parameters: StringArray {
            size: parameters.len(),
            data: parameters.as_mut_ptr(),
            allocator: allocator(),
        },
    }
}

/// Runs an ignored test of this program in a process of its own, with these variables, and
/// in a domain that no other test has: its process counts domains from the first one again.
/// Returns what it printed.
pub fn run_alone(test: &str, variables: &[(&str, &str)]) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--ignored", "--nocapture"]);
    child.envs(variables.iter().copied());
    child.env("ROS_DOMAIN_ID", unused_domain().to_string());
    let output = child.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
    text
}

/// The domain of a test that [`run_alone`] runs.
pub fn given_domain() -> usize {
    std::env::var("ROS_DOMAIN_ID").unwrap().parse().unwrap()
}

/// Publishes, and fails the test if that fails.
#[track_caller]
pub fn publish<T>(publisher: *mut Publisher, message: &T) {
    // SAFETY: a message of the publisher's type.
    let code = unsafe { rmw_publish(publisher, std::ptr::from_ref(message).cast(), null_mut()) };
    assert_eq!(code, ret::OK);
}

/// Takes a message. Returns whether there was one.
#[track_caller]
pub fn take<T>(subscription: *mut Subscription, message: &mut T) -> bool {
    let mut taken = false;
    // SAFETY: a message of the subscription's type.
    let code = unsafe {
        let message = std::ptr::from_mut(message).cast();
        rmw_take(subscription, message, &mut taken, null_mut())
    };
    assert_eq!(code, ret::OK);
    taken
}
