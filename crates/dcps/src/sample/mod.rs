//! A sample with its metadata (SampleInfo, DDS 1.4 §2.2.2.5.5), and how it enters and
//! leaves a cache.

pub(crate) mod instance_info;
pub(crate) mod outcome;
pub(crate) mod queued_sample;
pub(crate) mod sample_limits;

pub use outcome::{ArrivalSummary, InsertOutcome, PoppedSample};
pub use queued_sample::{
    DeliveryForm, DeliveryPath, QueuedSample, RelatedIdentity, SampleBody, SampleMeta, SharedValue,
};
pub use sample_limits::{KEEP_ALL_SAMPLES_DEFAULT, SampleLimits, samples_max};
