//! Demo components. Each one runs alone, in a statically composed `main`, or in a
//! container that loads this crate's shared library.
#![deny(missing_docs)]

mod image_filter;
mod image_source;
mod latency_probe;
mod listener;
mod period;
mod static_transform;
mod talker;
mod throttle;

// Links the shared library of Pteros, as the container does.
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
