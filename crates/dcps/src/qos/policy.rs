//! Policies as users name them, "system default" and "best available" included
//! (rmw `types.h`).

/// How many samples are kept, on either side (keep last / keep all).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum HistoryPolicy {
    /// The newest samples, at least one.
    KeepLast(usize),
    /// Everything, up to the resource limits.
    KeepAll,
    /// DDS's own default: the last sample.
    SystemDefault,
}

/// Whether lost samples are retransmitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ReliabilityPolicy {
    /// Retransmitted, as long as the publisher keeps them.
    Reliable,
    /// Counted, not retransmitted.
    BestEffort,
    /// The default of rmw implementations: reliable.
    SystemDefault,
    /// Publishers: reliable. Subscriptions: reliable if every publisher known at
    /// creation is.
    BestAvailable,
}

/// Whether late joiners get earlier samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum DurabilityPolicy {
    /// They start with the next sample.
    Volatile,
    /// They get what the living publisher keeps (transient local / late joiner).
    TransientLocal,
    /// Publishers: late joiners also get samples stored before the publisher's
    /// process ended, once the publisher is created again. Subscriptions: only such
    /// publishers match. Not part of ROS 2.
    Transient,
    /// As `Transient`, and stored samples survive a power failure: each batch is
    /// synced to disk.
    Persistent,
    /// DDS's own default: volatile.
    SystemDefault,
    /// Publishers: transient local. Subscriptions: transient local if every
    /// publisher known at creation is.
    BestAvailable,
}

/// How a publisher asserts its liveliness.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum LivelinessPolicy {
    /// By the middleware, as long as the process runs.
    Automatic,
    /// By the application, for all publishers of the context at once. DDS only; ROS
    /// 2 has removed it.
    ManualByParticipant,
    /// By the application, for each publisher, by publishing or asserting.
    ManualByTopic,
    /// DDS's own default: automatic.
    SystemDefault,
    /// Publishers: manual by topic if a subscription known at creation requests it, else
    /// automatic. Subscriptions: manual by topic if every publisher known at creation is.
    BestAvailable,
}
