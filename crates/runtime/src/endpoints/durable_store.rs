//! Durable store of publishers: durability TRANSIENT and PERSISTENT (DDS 1.4
//! §2.2.3.4), with durability service (§2.2.3.5).
//!
//! There is no separate service process: the publisher's own process keeps a store. A
//! later publisher with the same domain, node and topic, or the same store name, serves
//! from it. Stored samples precede new ones, under new sequence numbers, with GUID and
//! sequence number of the original writer. Subscriptions that have received them drop
//! them (see `duplicate_filter`).

use std::path::PathBuf;

use pteros_rtps::qos::{Durability, EndpointQos, History};
use pteros_rtps::writer::WriterConfig;
use pteros_store::{BYTES_MAX_DEFAULT, Depth, Retention, SAMPLES_MAX_DEFAULT};

/// The location of stores and their maximum size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreOptions {
    /// The folder. Without one no publisher can be transient or persistent.
    pub folder: Option<PathBuf>,
    /// The most bytes of samples in one store.
    pub bytes_max: u64,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            folder: None,
            bytes_max: BYTES_MAX_DEFAULT,
        }
    }
}

/// Whether a publisher with these policies keeps a store.
pub(crate) fn is_durable(qos: &EndpointQos) -> bool {
    qos.durability >= Durability::Transient
}

/// Extends the history of a durable writer to what its store keeps, if that is
/// more.
pub(crate) fn extend_history(config: &mut WriterConfig, bytes_max: u64) {
    let qos = &mut config.qos;
    if !is_durable(qos) {
        return;
    }
    let limits = &mut config.limits;
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    limits.history_bytes_max = limits.history_bytes_max.max(bytes_max);
    qos.history = late_joiner_history(qos);
}

/// The announced QoS, with the history that late joiners of a durable writer get.
pub(crate) fn late_joiner_qos(qos: &EndpointQos) -> EndpointQos {
    EndpointQos {
        history: late_joiner_history(qos),
        ..qos.clone()
    }
}

fn late_joiner_history(qos: &EndpointQos) -> History {
    let service = &qos.durability_service;
    match (qos.history, service.history) {
        (History::KeepLast(own), History::KeepLast(stored)) => History::KeepLast(own.max(stored)),
        (History::KeepLast(own), History::KeepAll) => {
            let stored = service.resource_limits.max_samples;
            let stored = stored.unwrap_or(SAMPLES_MAX_DEFAULT as u32);
            History::KeepLast(own.max(stored))
        }
        (History::KeepAll, _) => History::KeepAll,
    }
}

pub(crate) fn retention(qos: &EndpointQos, bytes_max: u64) -> Retention {
    let service = &qos.durability_service;
    let limit = |n: Option<u32>| n.map_or(usize::MAX, |n| n as usize);
    Retention {
        depth: match service.history {
            History::KeepLast(depth) => Depth::KeepLast(depth as usize),
            History::KeepAll => Depth::KeepAll,
        },
        samples_max: limit(service.resource_limits.max_samples),
        instances_max: limit(service.resource_limits.max_instances),
        samples_per_instance_max: limit(service.resource_limits.max_samples_per_instance),
        bytes_max,
        cleanup_nanos: if service.cleanup_delay.is_infinite() {
            -1
        } else {
            service.cleanup_delay.as_nanos()
        },
    }
}
