//! Components to compose with. Each runs alone, composed by hand in a `main`, or
//! loaded by a container from this crate's shared library.
#![deny(missing_docs)]

mod image_filter;
mod image_source;
mod latency_probe;
mod listener;
mod period;
mod static_transform;
mod talker;
mod throttle;

// Shares Pteros with the container instead of bringing a copy along.
use pteros_dylib as _;

pub use image_filter::ImageFilter;
pub use image_source::ImageSource;
pub use latency_probe::LatencyProbe;
pub use listener::Listener;
pub use static_transform::StaticTransformPublisher;
pub use talker::Talker;
pub use throttle::Throttle;

pteros::register_components!(
    Talker,
    Listener,
    ImageSource,
    ImageFilter,
    Throttle,
    LatencyProbe,
    StaticTransformPublisher,
);
