//! Code of the pages in docs/how_to: one function per file, compiled with the
//! workspace.

pub mod async_callbacks;
pub mod large_images;
pub mod logging;
pub mod simulated_time;
pub mod thread_settings;
