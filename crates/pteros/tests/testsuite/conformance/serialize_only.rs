//! Serialize-only mode: nodes without intra-process communication, with counted
//! serializations and decodings.

use std::cell::Cell;
use std::collections::BTreeSet;

use pteros::NodeOptions;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::msg::cdr::{DecodeError, Decoder, Encoder};
use pteros::msg::describe::TypeDescription;
use pteros::msg::hash::TypeHash;
use pteros::msg::message::{Decode, Encode, Message};
use pteros::prelude::*;

use crate::conformance::harness::{TIMEOUT, text};

thread_local! {
    /// Messages decoded by this thread, which takes what it has published.
    static DECODED: Cell<usize> = const { Cell::new(0) };
}

/// A text that counts how often it is decoded.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counted(Text);

impl Encode for Counted {
    fn encode(&self, out: &mut Encoder<'_>) {
        self.0.encode(out);
    }
}

impl Decode for Counted {
    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        DECODED.set(DECODED.get() + 1);
        Text::decode(input).map(Self)
    }
}

impl Message for Counted {
    const TYPE_NAME: &'static str = Text::TYPE_NAME;
    const TYPE_HASH: TypeHash = Text::TYPE_HASH;

    fn type_description() -> &'static TypeDescription {
        Text::type_description()
    }
}

/// Two nodes of one context: the first shares values, the second does not.
fn nodes() -> [Node; 2] {
    let context = Context::with_options(ContextOptions {
        discovery_range: Some(pteros::config::DiscoveryRange::Off),
        ..ContextOptions::default()
    })
    .unwrap();
    [true, false].map(|shares_values| {
        let options = NodeOptions::new(format!("shares_{shares_values}"));
        let node = context.create_node(options.use_intra_process_comms(shares_values));
        node.unwrap()
    })
}

#[test]
fn a_message_is_serialized_once_for_all_serialized_readers_and_decoded_by_each() {
    let [on, off] = nodes();
    for (publishing, shares_values) in [(&on, true), (&off, false)] {
        for (sharing, taking_bytes) in [(2, 0), (0, 2), (2, 2), (0, 0)] {
            let what = format!("{shares_values}, to {sharing} and {taking_bytes}");
            let publisher = publishing
                .create_publisher::<Counted>("topic".keep_last(10))
                .unwrap();
            let homes = [vec![&on; sharing], vec![&off; taking_bytes]].concat();
            let made = homes.iter().map(|node| {
                let made = node.create_polled_subscription::<Counted>("topic".keep_last(10));
                made.unwrap()
            });
            let all: Vec<_> = made.collect();
            assert!(publisher.wait_for_matched(all.len(), TIMEOUT), "{what}");
            DECODED.set(0);
            for n in 0..3 {
                publisher.publish(&Counted(text(n))).unwrap();
                let samples: Vec<_> = all.iter().map(|s| s.take().unwrap()).collect();
                assert!(samples.iter().all(|s| s.0 == text(n)), "{what}");
                let places = samples.iter().map(|sample| std::ptr::from_ref(&**sample));
                let places: BTreeSet<_> = places.collect();
                let values = if shares_values {
                    taking_bytes + usize::from(sharing > 0)
                } else {
                    all.len()
                };
                assert_eq!(places.len(), values, "{what}");
            }
            let (bytes, decoded) = if shares_values {
                (taking_bytes > 0, taking_bytes)
            } else {
                (!all.is_empty(), all.len())
            };
            assert_eq!(
                publisher.counts().serialized,
                3 * u64::from(bytes),
                "{what}"
            );
            assert_eq!(DECODED.get(), 3 * decoded, "{what}");
        }
    }
}

#[test]
fn late_joiners_get_kept_samples_in_either_form() {
    let [on, off] = nodes();
    let latched = QosProfile::default().keep_last(2).transient_local();
    for publishing in [&on, &off] {
        let publisher = publishing.create_publisher("topic".qos(&latched)).unwrap();
        for n in 0..3 {
            publisher.publish(&Counted(text(n))).unwrap();
        }
        for node in [&on, &off] {
            let late = node.create_polled_subscription::<Counted>("topic".qos(&latched));
            let late = late.unwrap();
            assert!(late.wait_for_matched(1, TIMEOUT));
            let all: Vec<_> = std::iter::from_fn(|| late.take())
                .map(|sample| sample.into_inner().0)
                .collect();
            assert_eq!(all, [text(1), text(2)]);
        }
    }
}
