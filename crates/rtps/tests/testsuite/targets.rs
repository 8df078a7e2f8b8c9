//! The fuzz targets of RTPS and messages without a fuzzer.

use pteros_test_support::fuzz::seeds::{seeds, targets, try_all};
use pteros_test_support::fuzz::{
    cdr, discovery, message, pair_attack, participant_attack, text, types,
};

/// The size limit of an input, bytes.
const BYTES_MAX: usize = 2_000;

macro_rules! targets {
    ($($name:ident: $target:path, $changes:literal;)*) => {
        $(
            #[test]
            fn $name() {
                let seeds = seeds(stringify!($name));
                assert!(seeds.len() >= 8, "{} inputs", seeds.len());
                try_all($target, &seeds, $changes, BYTES_MAX);
            }
        )*

        /// No target is left out, and no inputs are stored without a target.
        #[test]
        fn every_fuzz_target_runs_on_its_seeds() {
            let mut tried = vec![$(stringify!($name).to_string()),*];
            tried.sort();
            for mut names in targets() {
                // The tests of security and bag run these.
                names.retain(|name| !["security_", "bag_"].iter().any(|start| name.starts_with(start)));
                assert_eq!(names, tried);
            }
        }
    };
}

targets! {
    message: message::message, 20000;
    participant_data: discovery::participant_data, 10000;
    endpoint_data: discovery::endpoint_data, 10000;
    type_objects: types::type_objects, 20000;
    liveliness_data: discovery::liveliness_data, 5000;
    cdr: cdr::cdr, 10000;
    dynamic: cdr::dynamic, 5000;
    interface_file: text::interface_file, 5000;
    yaml: text::yaml, 5000;
    filter: text::filter, 10000;
    matched_reader: pair_attack::matched_reader, 3000;
    matched_writer: pair_attack::matched_writer, 3000;
    fragments: pair_attack::fragments, 3000;
    participant: participant_attack::participant, 600;
}
