//! Payloads from nothing to 4 MB; contents are compared by their CRC.

use pteros::interfaces::std_msgs::msg::{String as Text, UInt8MultiArray};

use crate::peer::value;
use crate::stage::*;

/// The datagram's largest payload is 65507 bytes; Cyclone's fragments are of
/// 1344 bytes, in datagrams of 14720.
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

pub fn every_size_arrives_at_theirs(stage: &Stage) {
    let count = SIZES.len();
    let mut peer = stage.peer(&format!("sub --type bytes --count {count}"));
    let node = stage.node();
    let publisher = node
        .create_publisher::<UInt8MultiArray>("chatter", 20)
        .unwrap();
    wait_until_they_hear(&publisher, &mut peer);
    for (n, size) in SIZES.into_iter().enumerate() {
        let data = pattern(size, n);
        let expected = crc(&data);
        publisher.publish_owned(array(data)).unwrap();
        let line = peer.expect("received ", PATIENCE);
        assert_eq!(value(&line, "size"), Some(&*size.to_string()), "{line}");
        assert_eq!(value(&line, "crc"), Some(&*expected), "{line}");
    }
    assert!(peer.finish(PATIENCE).unwrap().success());
}

pub fn every_size_arrives_at_ours(stage: &Stage) {
    let node = stage.node();
    for size in SIZES {
        let subscription = node
            .create_polled_subscription::<UInt8MultiArray>("chatter", 10)
            .unwrap();
        let options = format!("--type bytes --count 3 --rate 0 --size {size}");
        let mut peer = stage.waiting_publisher(&options);
        wait_until_we_hear(&subscription, &mut peer);
        for _ in 0..3 {
            let sample = subscription
                .take_timeout(PATIENCE)
                .unwrap_or_else(|| panic!("{size} bytes: {:?}", subscription.counts()));
            let line = peer.expect("sent ", PATIENCE);
            assert_eq!(sample.data.len(), size);
            assert_eq!(value(&line, "crc"), Some(&*crc(&sample.data)), "{line}");
        }
        assert_eq!(subscription.counts().lost, 0);
    }
}

pub fn an_empty_string_goes_both_ways(stage: &Stage) {
    let node = stage.node();
    let mut peer = stage.peer("sub --count 1");
    let publisher = node.create_publisher::<Text>("chatter", 10).unwrap();
    wait_until_they_hear(&publisher, &mut peer);
    publisher.publish(&Text::default()).unwrap();
    let line = peer.expect("received ", PATIENCE);
    assert_eq!(value(&line, "size"), Some("0"), "{line}");
    drop((peer, publisher));

    let subscription = node
        .create_polled_subscription::<Text>("chatter", 10)
        .unwrap();
    let mut peer = stage.waiting_publisher("--count 1 --size 0");
    wait_until_we_hear(&subscription, &mut peer);
    let sample = subscription.take_timeout(PATIENCE).expect("a sample");
    assert_eq!(sample.data, "");
}
