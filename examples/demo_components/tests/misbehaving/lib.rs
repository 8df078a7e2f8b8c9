//! Misbehaving components, in a library that tests load.
#![allow(clippy::disallowed_methods, reason = "misbehaves on purpose")]

use std::sync::Arc;
use std::time::Duration;

use pteros::component::{Component, ComponentError};
use pteros::interfaces::std_msgs::msg::Empty;
use pteros::prelude::*;
use pteros_dylib as _;

macro_rules! component {
    ($(#[$what:meta])* $name:ident, |$node:ident| $body:expr) => {
        $(#[$what])*
        pub struct $name {
            node: Node,
            _parts: Box<dyn std::any::Any + Send>,
        }

        impl Component for $name {
            fn new(context: &Context, options: NodeOptions) -> Result<Self, ComponentError> {
                let $node = context.create_node(options.name("misbehaving"))?;
                let parts = $body;
                Ok(Self { node: $node, _parts: Box::new(parts) })
            }

            fn node(&self) -> &Node {
                &self.node
            }
        }
    };
}

component!(
    /// Requires an argument that no test gives.
    Refuses,
    |_node| no_device()?
);

fn no_device() -> Result<(), ComponentError> {
    Err("the device /dev/arm is not there; plug it in".into())
}

component!(
    /// Panics in its constructor, after it has created a node.
    Panics,
    |node| square(node.create_publisher::<Empty>("of_panics".keep_last(1))?)
);

fn square(_publisher: Publisher<Empty>) -> u8 {
    panic!("wheel {} is square", 3)
}

component!(
    /// Hangs in its constructor until the file named by `hold` is removed, for at
    /// most a minute.
    Hangs,
    |node| {
        let until = std::time::Instant::now() + Duration::from_secs(60);
        let hold = std::env::temp_dir().join(node.name());
        while hold.exists() && std::time::Instant::now() < until {
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }
);

fn panic_at_message(_: Sample<Empty>) {
    panic!("I heard it");
}

component!(
    /// Panics at each message.
    PanicsLater,
    |node| node.create_subscription::<Empty>("panic".keep_last(1), panic_at_message)?
);

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("and stay out");
    }
}

component!(
    /// Panics in its destructor.
    PanicsAtTheEnd,
    |_node| Bomb
);

component!(
    /// Has every kind of entity, a thread and a megabyte of memory.
    Heavy,
    |node| {
        let publisher = node.create_publisher::<Empty>("heavy/out".keep_last(10))?;
        let listening = node.create_subscription::<Empty>("heavy/in".keep_last(10), |_| {})?;
        let service = node.create_service::<pteros::interfaces::std_srvs::srv::Empty>(
            "heavy/reset",
            |_| Default::default(),
        )?;
        let memory = Arc::new(vec![7_u8; 1 << 20]);
        let held = memory.clone();
        let timer = node.create_timer(Duration::from_millis(1), move || {
            let _ = publisher.publish_owned(Empty::default());
            std::hint::black_box(held.len());
        })?;
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || stopped.recv().is_err());
        (listening, service, timer, memory, Joined(Some((stop, thread))))
    }
);

/// A thread that ends with its component.
struct Joined(Option<(std::sync::mpsc::Sender<()>, std::thread::JoinHandle<bool>)>);

impl Drop for Joined {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.0.take() {
            drop(stop);
            assert!(thread.join().unwrap_or_default());
        }
    }
}

component!(
    /// Leaks its node.
    Leaks,
    |node| std::mem::forget(node.clone())
);

pteros::register_components!(
    Refuses,
    Panics,
    Hangs,
    PanicsLater,
    PanicsAtTheEnd,
    Heavy,
    Leaks
);
