//! Discovery: what participants tell each other about themselves and their
//! endpoints (RTPS 2.5 §8.5).

pub mod data;
