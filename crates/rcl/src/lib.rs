//! ROS client library core: the parts of a client library that need no message types of
//! a language.
//!
//! The client libraries of Rust (`pteros`) and Python (`rclpy`) stand on it, as rclcpp and
//! rclpy on ROS 2's rcl, and the RMW plug-in uses parts of it. It stands on
//! `pteros-runtime`, which has the participant and its endpoints. Users import from
//! `pteros` what is public there.
//!
//! | concept | module |
//! |---|---|
//! | ROS arguments, remapping | [`args`] |
//! | parameters: values, texts, files, descriptors, store | [`parameter`] |
//! | QoS overrides by parameters | [`qos_overrides`] |
//! | event statuses of publishers and subscriptions | [`event_status`] |
//! | QoS profiles in rmw's numbers, and their compatibility | [`rmw_qos`] |
//! | guard conditions, and the queues that they wake | [`guard_condition`], [`wakers`] |
//! | wait sets; what waits for samples and for statuses | [`wait_set`], [`data_waiter`], [`event_waiter`] |
//! | graph: nodes, topics, services, endpoints, matching | [`graph`] |
//! | time, clocks, jumps, `/clock` | [`time`], [`clock`], [`time_source`] |
//! | schedules of timers and rates | [`timer_schedule`], [`timer_heap`], [`rate`] |
//! | logging: levels, console, files, `/rosout` | [`log`], [`log_outputs`] |
//! | tf buffer | [`tf`] |
//! | message filters: synchronizers, caches, chains | [`message_filters`] |
//! | diagnostics: reports, frequencies, ages of stamps | [`diagnostics`] |
//! | state machines of goals and of managed nodes | [`action`], [`lifecycle`] |
//! | types of endpoints and their descriptions | [`message_type_info`], [`known_types`], [`type_description`] |
//! | errors of creation, wrong ROS arguments | [`error`] |
//! | local time in texts and file names | [`local_time`] |
//! | options of the runtime from the environment | [`core_options()`] |
//! | outbound messages: payload, its memory | [`outbound_message`], [`payload`], [`payload_memory`] |
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod action;
pub mod args;
mod arguments_error;
pub mod clock;
mod core_options;
pub mod data_waiter;
pub mod diagnostics;
pub mod error;
pub mod event_status;
pub mod event_waiter;
pub mod graph;
pub mod guard_condition;
pub mod known_types;
pub mod lifecycle;
pub mod local_time;
pub mod log;
pub mod log_outputs;
pub mod message_filters;
pub mod message_type_info;
pub mod outbound_message;
pub mod parameter;
pub mod payload;
pub mod payload_memory;
pub mod qos_overrides;
pub mod rate;
pub mod rmw_qos;
pub mod tf;
pub mod time;
pub mod time_source;
pub mod timer_heap;
pub mod timer_schedule;
pub mod type_description;
pub mod wait_set;
pub mod wakers;

pub use core_options::core_options;
