//! Interfaces of the tutorials (`tutorials::tutorials::msg::Battery`), and the code
//! of the how-to pages.
//!
//! The programs in `src/bin` are the code of docs/tutorials and docs/start. Each
//! file is whole: copy it into `src/bin` of a package of your own.

#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/interfaces.rs"));

pub mod how_to;
