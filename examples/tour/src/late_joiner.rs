//! Transient local: a late joiner gets the last samples, in order. Map servers use
//! this.

use std::error::Error;
use std::time::Duration;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("map_server")?;
    let latched = QosProfile::default().keep_last(2).transient_local();
    let publisher = node.create_publisher::<Text>("map".qos(&latched))?;
    for floor in ["cellar", "ground floor", "attic"] {
        let data = format!("map of the {floor}");
        publisher.publish(&Text { data })?;
    }
    // Like another process: a separate context shares nothing with the first one.
    let elsewhere = Context::new()?;
    let late = elsewhere.create_node("planner")?;
    let subscription = late.create_polled_subscription::<Text>("map".qos(&latched))?;
    while let Some(map) = subscription.take_timeout(Duration::from_secs(2)) {
        println!("late, but I have the {}", map.data);
        if map.info().sequence == 3 {
            break;
        }
    }
    Ok(())
}
