//! The integration tests of the simulator, in one program; each module is a topic.

mod forced;
mod forgery;
mod networks;
mod nodes;
mod quick;
mod scenarios;
mod seeds;
mod sound;
mod transports;
