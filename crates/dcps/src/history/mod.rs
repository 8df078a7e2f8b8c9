//! Transient-local history: the samples that a publisher keeps for late joiners of
//! its process (DURABILITY, DDS 1.4 §2.2.3.4).

mod local_history;

pub use local_history::LocalHistory;
