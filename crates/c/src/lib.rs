//! `libpteros`: the C API of Pteros.
//!
//! Each exported function is declared and documented in `include/pteros/pteros.h`. It
//! checks its arguments and calls the Rust client library. So parameters, actions, clocks
//! and the graph have one implementation, and this crate has no state of ROS. A failure or
//! a panic becomes a status and a text of the calling thread (`error`).
//!
//! `argument` reads what C passes, `message` makes a struct of the user a message of
//! the client library, and each further module is one kind of entity.
//!
//! # The contract of C
//! A parameter `Option<&T>` is a nullable pointer. The comments `SAFETY: the contract of C`
//! mean what `pteros.h` demands of the caller:
//!
//! - A pointer is null or points to an initialized value of its type, which stays there
//!   for the call. A null pointer is refused before its use.
//! - A handle was made by its `_new` function and is not freed yet.
//! - A C string ends with NUL. An array has as many elements as the caller says.
//! - A message has the type of its entity.
//! - A callback may be called on the thread that spins, with its user data, until its
//!   `free_user` was called.

mod action_client;
mod action_server;
mod argument;
mod callback;
mod client;
mod context;
mod error;
mod executor;
mod graph;
mod lifecycle;
mod logging;
mod message;
mod node;
mod parameters;
mod publisher;
mod qos;
mod service;
mod subscription;
mod timer;
mod transforms;
mod types;
