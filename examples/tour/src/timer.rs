//! Timer: counts to three, then ends the program.

use std::error::Error;
use std::time::Duration;

use pteros::prelude::*;

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("counter")?;
    let mut ticks = 0;
    let stop = context.clone();
    let timer = node.create_timer(Duration::from_millis(100), move || {
        ticks += 1;
        println!("tick {ticks}");
        if ticks == 3 {
            stop.shutdown();
        }
    })?;
    node.spin();
    println!("{} ticks of {:?}", timer.ticks(), timer.period());
    Ok(())
}
