//! Stories of hubs that meet in one process, on fake time. What goes between
//! them is the same as between processes: the same sockets, the same mappings.

mod link;
mod pair;
mod transfer;
mod warrant;
