//! The integration tests of RTPS, in one program; each module is a topic.

mod announcements;
mod byte_tables;
mod captured_messages;
mod captures;
mod changed_policies;
mod coherent;
mod content_filter;
mod deferred_payloads;
mod discovery_data;
mod discovery_servers;
mod filter_limits;
mod flow_controlled_retransmission;
mod flow_controlled_writer;
mod forged_discovery;
mod graph_consistency;
mod hostile_submessages;
mod inline_qos;
mod keyed_topics;
mod latency_budget;
mod limits;
mod loss;
mod off_link;
mod outbox;
mod participants;
mod paths;
mod receive_memory;
mod regressions;
mod replay;
mod required_behaviour;
mod robustness;
mod same_host;
mod soak;
mod targets;
mod type_lookup;
mod vectors;
mod writer_reader;

use pteros_test_support::allocations::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
