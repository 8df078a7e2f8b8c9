//! Dynamic types: a message whose type is known only at run time. Its definition is
//! text and its value YAML. It is sent as any other message.

use std::error::Error;
use std::time::Duration;

use pteros::PublisherOptions;
use pteros::SubscriptionOptions;
use pteros::msg::dynamic::{DynamicMessage, DynamicType, YamlOptions};
use pteros::msg::schema::InterfaceKind;
use pteros::prelude::*;

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut library = pteros::interfaces::library().clone();
    let definition = "geometry_msgs/Point position\nfloat32 ripeness 0.5\n";
    library.insert_text(
        "orchard",
        InterfaceKind::Message,
        "Apple",
        definition,
        "here",
    );
    let apple = DynamicType::new(&library.describe("orchard/msg/Apple")?)?;
    println!("{} is {}", apple.name(), apple.hash());

    let context = Context::new()?;
    let node = context.create_node("orchard")?;
    let publisher = node.create_publisher::<DynamicMessage>(PublisherOptions::of_type(
        &apple,
        "apples".keep_last(10),
    ))?;
    let subscription = node.create_polled_subscription::<DynamicMessage>(
        SubscriptionOptions::of_type(&apple, "apples".keep_last(10)),
    )?;
    publisher.publish(&DynamicMessage::from_yaml(&apple, "{position: {x: 1.5}}")?)?;
    let received = subscription
        .take_timeout(Duration::from_secs(5))
        .ok_or("no apple received")?;
    print!("{}", received.to_yaml(&YamlOptions::default()));
    println!("{}", received.to_json());
    Ok(())
}
