//! Message sizes: payloads from nothing to 4 MB, compared by CRC.

use pteros::NamedQosExt;
use pteros::interfaces::std_msgs::msg::{String as Text, UInt8MultiArray};

use crate::interop::harness::*;
use pteros_test_support::peer::value;

/// A datagram's largest payload is 65507 bytes; Cyclone's fragments have 1344
/// bytes, in datagrams of 14720.
const SIZES: [usize; 12] = [
    0,
    1,
    1_300,
    1_344,
    14_700,
    63 << 10,
    65_400,
    65_507,
    64 << 10,
    65 << 10,
    1_000_000,
    4_000_000,
];

pub fn every_size_arrives_at_their_reader(harness: &Harness) {
    let count = SIZES.len();
    let mut peer = harness.peer(&format!("sub --type bytes --count {count}"));
    let node = harness.node();
    let publisher = node
        .create_publisher::<UInt8MultiArray>("chatter".keep_last(20))
        .unwrap();
    wait_until_peer_matched(&publisher, &mut peer);
    for (n, size) in SIZES.into_iter().enumerate() {
        let data = pattern(size, n);
        let expected = crc(&data);
        publisher.publish_owned(array(data)).unwrap();
        let line = peer.expect("received ", TIMEOUT);
        assert_eq!(value(&line, "size"), Some(&*size.to_string()), "{line}");
        assert_eq!(value(&line, "crc"), Some(&*expected), "{line}");
    }
    assert!(peer.finish(TIMEOUT).unwrap().success());
}

pub fn every_size_arrives_at_our_reader(harness: &Harness) {
    let node = harness.node();
    for size in SIZES {
        let subscription = node
            .create_polled_subscription::<UInt8MultiArray>("chatter".keep_last(10))
            .unwrap();
        let options = format!("--type bytes --count 3 --rate 0 --size {size}");
        let mut peer = harness.waiting_publisher(&options);
        wait_until_matched_and_start(&subscription, &mut peer);
        for _ in 0..3 {
            let sample = subscription
                .take_timeout(TIMEOUT)
                .unwrap_or_else(|| panic!("{size} bytes: {:?}", subscription.counts()));
            let line = peer.expect("sent ", TIMEOUT);
            assert_eq!(sample.data.len(), size);
            assert_eq!(value(&line, "crc"), Some(&*crc(&sample.data)), "{line}");
        }
        assert_eq!(subscription.counts().lost, 0);
    }
}

pub fn an_empty_string_arrives_in_both_directions(harness: &Harness) {
    let node = harness.node();
    let mut peer = harness.peer("sub --count 1");
    let publisher = node
        .create_publisher::<Text>("chatter".keep_last(10))
        .unwrap();
    wait_until_peer_matched(&publisher, &mut peer);
    publisher.publish(&Text::default()).unwrap();
    let line = peer.expect("received ", TIMEOUT);
    assert_eq!(value(&line, "size"), Some("0"), "{line}");
    drop((peer, publisher));

    let subscription = node
        .create_polled_subscription::<Text>("chatter".keep_last(10))
        .unwrap();
    let mut peer = harness.waiting_publisher("--count 1 --size 0");
    wait_until_matched_and_start(&subscription, &mut peer);
    let sample = subscription.take_timeout(TIMEOUT).expect("a sample");
    assert_eq!(sample.data, "");
}
