//! Payloads as messages: the first byte chooses the type. A decoded message encodes
//! in both representations and decodes again to the same value. A view shows the
//! same, wherever it lies.

use std::sync::LazyLock;

use pteros_interfaces as types;
use pteros_msg::cdr::{Representation, from_payload, to_payload};
use pteros_msg::dynamic::{DynamicMessage, DynamicType, YamlOptions};
use pteros_msg::library::InterfaceLibrary;
use pteros_msg::schema::InterfaceKind;
use pteros_msg::view::{Viewable, view_payload};

const BOTH: [Representation; 2] = [Representation::Xcdr1, Representation::Xcdr2];

fn typed<M: Viewable>(payload: &[u8]) {
    // Invalid UTF-8 is borrowed, and may exceed a bound only once it is replaced.
    let view = view_payload::<M>(payload);
    let Ok(message) = from_payload::<M>(payload) else {
        return;
    };
    let view = view.expect("what can be copied can be lent");
    let shown = format!("{:?}", message.as_view());
    assert_eq!(format!("{view:?}"), shown);
    let aside = [&[0; 4], payload].concat();
    let view = view_payload::<M>(&aside[4..]).expect("wherever it lies");
    assert_eq!(format!("{view:?}"), shown);
    for representation in BOTH {
        let bytes = to_payload(&message, representation);
        let again: M = from_payload(&bytes).expect("our own writing");
        assert_eq!(to_payload(&again, representation), bytes);
    }
}

pub fn cdr(data: &[u8]) {
    let Some((choice, payload)) = data.split_first() else {
        return;
    };
    match choice % 12 {
        0 => typed::<types::std_msgs::msg::String>(payload),
        1 => typed::<types::sensor_msgs::msg::PointCloud2>(payload),
        2 => typed::<types::tf2_msgs::msg::TFMessage>(payload),
        3 => typed::<types::diagnostic_msgs::msg::DiagnosticArray>(payload),
        4 => typed::<types::rcl_interfaces::msg::ParameterEvent>(payload),
        5 => typed::<types::rmw_dds_common::msg::ParticipantEntitiesInfo>(payload),
        6 => typed::<types::test_msgs::msg::WStrings>(payload),
        7 => typed::<types::test_msgs::msg::BoundedSequences>(payload),
        8 => typed::<types::test_msgs::msg::Arrays>(payload),
        9 => typed::<types::test_msgs::msg::UnboundedSequences>(payload),
        10 => typed::<types::nav_msgs::msg::OccupancyGrid>(payload),
        _ => typed::<types::test_msgs::msg::Empty>(payload),
    }
}

static DYNAMIC: LazyLock<Vec<DynamicType>> = LazyLock::new(|| {
    let mut library = types::library().clone();
    library.insert_text(
        "fuzz",
        InterfaceKind::Message,
        "Nested",
        NESTED,
        "Nested.msg",
    );
    let names = [
        "fuzz/msg/Nested",
        "std_msgs/msg/String",
        "rmw_dds_common/msg/ParticipantEntitiesInfo",
        "visualization_msgs/msg/MarkerArray",
        "test_msgs/msg/UnboundedSequences",
        "test_msgs/msg/WStrings",
        "test_msgs/msg/Empty",
        "test_msgs/msg/BoundedSequences",
    ];
    names.map(|name| resolve(&library, name)).into()
});

const NESTED: &str = "string[] names\nwstring<=5[<=3] wide\nstd_msgs/Header[2] heads\n\
                      test_msgs/Arrays[] arrays\nbool[3] flags\nfloat64[<=7] numbers\n\
                      test_msgs/Empty[] nothings\nbyte[] raw\nstring<=4 short\n";

fn resolve(library: &InterfaceLibrary, name: &str) -> DynamicType {
    let description = library.describe(name).expect("it is in the library");
    DynamicType::new(&description).expect("it is complete")
}

/// The types that dynamic targets choose from.
pub fn dynamic_types() -> &'static [DynamicType] {
    &DYNAMIC
}

pub fn dynamic(data: &[u8]) {
    let Some((choice, payload)) = data.split_first() else {
        return;
    };
    let all = dynamic_types();
    let ty = &all[usize::from(*choice) % all.len()];
    let Ok(message) = DynamicMessage::from_payload(ty, payload) else {
        return;
    };
    message.check_bounds().expect("read within bounds");
    for representation in BOTH {
        let bytes = message.to_payload(representation);
        let again = DynamicMessage::from_payload(ty, &bytes).expect("our own writing");
        assert_eq!(again.to_payload(representation), bytes);
    }
    let short = YamlOptions {
        truncate_length: Some(16),
        ..YamlOptions::default()
    };
    let _ = (message.to_yaml(&short), message.to_csv(&short));
}
