//! Sample filters of a subscription, one policy each, and its order by source.

mod content_filter;
pub(crate) mod destination_order;
pub(crate) mod duplicate_filter;
pub(crate) mod ownership;
pub(crate) mod time_based_filter;

pub use content_filter::{BuildType, ContentFilterError, FilterSpec, MessageType};
pub use duplicate_filter::DuplicateFilter;
pub use ownership::Owners;
pub use time_based_filter::TimeBasedFilter;
