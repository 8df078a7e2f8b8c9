//! A node with a message type of its own: `tutorials/msg/Battery`.

use std::error::Error;
use std::time::Duration;

use pteros::prelude::*;
use tutorials::tutorials::msg::Battery;

fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("battery")?;
    let publisher = node.create_publisher::<Battery>("battery".keep_last(10))?;
    println!("publishing {}", publisher.topic());
    let clock = node.clock();
    let mut charge = 1.0_f32;
    let _timer = node.create_timer(Duration::from_secs(1), move || {
        charge = (charge - 0.01).max(0.0);
        let message = Battery {
            stamp: clock.now().into(),
            charge,
            cell_voltages: vec![3.7; 3],
            ..Battery::default()
        };
        if message.charge < Battery::LOW {
            println!("{} is low: {:.2}", message.name, message.charge);
        }
        if let Err(error) = publisher.publish(&message) {
            eprintln!("{error}");
        }
    })?;
    node.spin();
    Ok(())
}
