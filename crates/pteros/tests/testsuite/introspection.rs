//! Service introspection: clients and services that publish events of their
//! requests and responses.

use std::time::Duration;

use pteros::ClientOptions;
use pteros::interfaces::example_interfaces::srv::{
    AddTwoInts, AddTwoIntsEvent, AddTwoIntsRequest, AddTwoIntsResponse,
};
use pteros::msg::dynamic::DynamicMessage;
use pteros::msg::dynamic::DynamicService;
use pteros::msg::library::InterfaceLibrary;
use pteros::prelude::*;
use pteros::service::ServiceIntrospectionState::{Contents, Metadata, Off};
use pteros::{ServiceOptions, error::CreateError};

const TIMEOUT: Duration = Duration::from_secs(20);

struct Adder {
    context: Context,
    node: Node,
    service: Service<AddTwoInts>,
    events: Subscription<AddTwoIntsEvent>,
}

/// `/robot/add` and a subscription to its events.
fn adder(domain: u32) -> Adder {
    let context = Context::with_options(ContextOptions::local(domain)).unwrap();
    let options = NodeOptions::new("adder").namespace("/robot");
    let node = context.create_node(options).unwrap();
    let service = node
        .create_service::<AddTwoInts>("add", |asked| AddTwoIntsResponse {
            sum: asked.a + asked.b,
        })
        .unwrap();
    let hearer = context.create_node("hearer").unwrap();
    let events = hearer
        .create_polled_subscription("/robot/add/_service_event")
        .unwrap();
    Adder {
        context,
        node,
        service,
        events,
    }
}

impl Adder {
    fn call(&self, client: &Client<AddTwoInts>, a: i64) {
        let mut call = client.call_async(&AddTwoIntsRequest { a, b: 1 }).unwrap();
        let mut answer = None;
        let answered = self.node.spin_until(
            || {
                answer = call.take();
                answer.is_some()
            },
            TIMEOUT,
        );
        assert!(answered);
        assert_eq!(answer.unwrap().unwrap().sum, a + 1);
    }

    fn received_events(&self) -> Vec<AddTwoIntsEvent> {
        let taken = std::iter::from_fn(|| self.events.take());
        taken.map(Sample::into_inner).collect()
    }
}

#[test]
fn each_end_publishes_its_configured_introspection_events() {
    let adder = adder(46);
    let asker = adder.context.create_node("asker").unwrap();
    let client = asker.create_client::<AddTwoInts>("/robot/add").unwrap();
    adder.call(&client, 1);
    assert_eq!(adder.received_events(), []);
    let qos = QosProfile::default();
    client
        .configure_introspection(qos.clone(), Contents)
        .unwrap();
    adder
        .service
        .configure_introspection(qos.clone(), Metadata)
        .unwrap();
    adder.call(&client, 2);
    let received_events = adder.received_events();
    let kinds: Vec<_> = received_events
        .iter()
        .map(|event| event.info.event_type)
        .collect();
    // Request sent, request received, response sent, response received.
    assert_eq!(kinds, [0, 1, 2, 3]);
    let infos = received_events.iter().map(|event| &event.info);
    assert!(
        infos
            .clone()
            .all(|info| info.client_gid == received_events[0].info.client_gid)
    );
    assert!(infos.clone().all(|info| info.sequence_number == 2));
    assert!(infos.clone().all(|info| info.stamp.sec > 1_500_000_000));
    assert_eq!(
        received_events[0].request,
        [AddTwoIntsRequest { a: 2, b: 1 }]
    );
    assert_eq!(received_events[3].response, [AddTwoIntsResponse { sum: 3 }]);
    assert!(received_events[0].response.is_empty() && received_events[3].request.is_empty());
    assert!(received_events[1].request.is_empty() && received_events[2].response.is_empty());
    client.configure_introspection(qos.clone(), Off).unwrap();
    adder
        .service
        .configure_introspection(qos, Contents)
        .unwrap();
    adder.call(&client, 3);
    let received_events = adder.received_events();
    let kinds: Vec<_> = received_events
        .iter()
        .map(|event| event.info.event_type)
        .collect();
    assert_eq!(kinds, [1, 2]);
    assert_eq!(
        received_events[0].request,
        [AddTwoIntsRequest { a: 3, b: 1 }]
    );
    assert_eq!(received_events[1].response, [AddTwoIntsResponse { sum: 4 }]);
    let publishers = adder
        .context
        .graph()
        .publishers("/robot/add/_service_event");
    assert_eq!(publishers.len(), 1, "{publishers:?}");
    assert_eq!(publishers[0].node_name.as_deref(), Some("adder"));
}

#[test]
fn dynamic_clients_and_services_publish_the_same_events() {
    let context = Context::with_options(ContextOptions::local(47)).unwrap();
    let node = context.create_node("adder").unwrap();
    let name = "example_interfaces/srv/AddTwoInts";
    let ty = DynamicService::new(pteros::interfaces::library(), name).unwrap();
    let response = ty.response().clone();
    let service = node
        .create_service::<DynamicService>(ServiceOptions::of_type(&ty, "add"), move |asked| {
            let mut answer = DynamicMessage::new(&response);
            let sum = asked.get("a").unwrap().into_owned();
            answer.set("sum", sum).unwrap();
            answer
        })
        .unwrap();
    let client = node
        .create_client::<DynamicService>(ClientOptions::of_type(&ty, "add"))
        .unwrap();
    let events = node
        .create_polled_subscription::<AddTwoIntsEvent>("/add/_service_event")
        .unwrap();
    service
        .configure_introspection(QosProfile::default(), Contents)
        .unwrap();
    client
        .configure_introspection(QosProfile::default(), Contents)
        .unwrap();
    let mut request = DynamicMessage::new(ty.request());
    request.set_yaml("a", "7").unwrap();
    let mut call = client.call_async(&request).unwrap();
    let mut received_events = Vec::new();
    node.spin_until(
        || {
            let _ = call.take();
            received_events.extend(std::iter::from_fn(|| events.take()));
            received_events.len() == 4
        },
        TIMEOUT,
    );
    let kinds: Vec<_> = received_events
        .iter()
        .map(|event| event.info.event_type)
        .collect();
    assert_eq!(kinds, [0, 1, 2, 3]);
    assert_eq!(received_events[1].request[0].a, 7);
    assert_eq!(received_events[3].response[0].sum, 7);
}

#[test]
fn a_library_without_the_types_of_events_is_named() {
    use pteros::msg::schema::InterfaceKind;
    let mut library = InterfaceLibrary::new();
    library.insert_text(
        "own",
        InterfaceKind::Service,
        "Ask",
        "---\nbool ok\n",
        "Ask.srv",
    );
    let ty = DynamicService::new(&library, "own/srv/Ask").unwrap();
    let context = Context::with_options(ContextOptions::local(48)).unwrap();
    let node = context.create_node("asker").unwrap();
    let client = node
        .create_client::<DynamicService>(ClientOptions::of_type(&ty, "ask"))
        .unwrap();
    let refused = client.configure_introspection(QosProfile::default(), Metadata);
    assert!(
        matches!(refused, Err(CreateError::NoEventType { .. })),
        "{refused:?}"
    );
    client
        .configure_introspection(QosProfile::default(), Off)
        .unwrap();
}
