//! Zero-copy: messages written and read in place; see `view.rs` and `loan.rs`.

use pteros::interfaces::geometry_msgs::msg::{Point, Pose};
use pteros::interfaces::sensor_msgs::msg::{CameraInfo, Image, LaserScan, PointCloud2, PointField};
use pteros::interfaces::visualization_msgs::msg::Marker;
use pteros::msg::Viewable;
use pteros::msg::view::Cow;
use pteros::prelude::*;
use pteros::publisher::PublisherGroup;
use pteros::qos::{Presentation, Representation};
use pteros::subscription::SubscriptionGroup;
use pteros::{
    SubscriptionOptions,
    error::PublishError,
    subscription::{InPlaceMessage, MessageView, in_place},
};

use crate::conformance::harness::{Harness, TIMEOUT, TestTransport};

fn views<T: Viewable>(harness: &Harness, qos: &QosProfile) -> Subscription<InPlaceMessage<T>> {
    let options = SubscriptionOptions::new("topic".qos(qos));
    harness
        .subscribing
        .create_polled_subscription(options)
        .unwrap()
}

/// A publisher, an in-place subscription and a typed one, all matched.
fn endpoints<T: Viewable>(
    harness: &Harness,
) -> (
    Publisher<T>,
    Subscription<InPlaceMessage<T>>,
    Subscription<T>,
) {
    let qos = QosProfile::default();
    let publisher = harness
        .publishing
        .create_publisher("topic".qos(&qos))
        .unwrap();
    let views = views::<T>(harness, &qos);
    let typed = harness
        .subscribing
        .create_polled_subscription::<T>("topic".qos(&qos))
        .unwrap();
    assert!(publisher.wait_for_matched(2, TIMEOUT));
    assert!(views.wait_for_matched(1, TIMEOUT) && typed.wait_for_matched(1, TIMEOUT));
    (publisher, views, typed)
}

fn image(pixels: usize) -> Image {
    let mut image = Image {
        width: 1 + pixels as u32 / 100,
        height: 100,
        encoding: "mono8".into(),
        data: (0..pixels).map(|n| n as u8).collect(),
        ..Image::default()
    };
    image.header.frame_id = "left".into();
    image
}

/// The address of a borrowed sequence.
#[allow(clippy::ptr_arg, reason = "whether it is lent is the question")]
fn borrowed_from<E: Clone>(sequence: &Cow<'_, [E]>) -> Option<*const E> {
    match sequence {
        Cow::Borrowed(elements) => Some(elements.as_ptr()),
        Cow::Owned(_) => None,
    }
}

pub fn a_view_shows_what_a_copy_has(harness: &Harness) {
    let (publisher, views, typed) = endpoints::<Image>(harness);
    for pixels in [0, 10, 100_000] {
        let sent = image(pixels);
        publisher.publish(&sent).unwrap();
        assert_eq!(*typed.take_timeout(TIMEOUT).unwrap(), sent);
        let sample = views.take_timeout(TIMEOUT).unwrap();
        assert_eq!(sample.info().delivery_path, harness.path());
        assert_eq!(sample.to_message().unwrap(), sent);
        let view = sample.view().unwrap();
        assert_eq!((view.width, view.height), (sent.width, sent.height));
        assert!(view.encoding == "mono8" && view.header.frame_id == "left");
        assert_eq!(view.data, sent.data);
        // The same address twice: viewing copied nothing.
        let again = sample.clone();
        assert!(borrowed_from(&view.data).is_some());
        assert_eq!(
            borrowed_from(&again.view().unwrap().data),
            borrowed_from(&view.data)
        );
    }
    assert_eq!(views.undecodable_count(), 0);
}

pub fn loaned_messages_reach_views_and_typed_subscriptions(harness: &Harness) {
    let (publisher, views, typed) = endpoints::<Image>(harness);
    for pixels in [0, 10, 100_000] {
        let sent = image(pixels);
        let mut draft = sent.clone();
        draft.data = vec![1, 2, 3];
        let mut loan = publisher
            .borrow_loaned_sequence(&mut draft, |image| &mut image.data, pixels)
            .unwrap();
        assert_eq!(draft.data, [1, 2, 3], "the draft is as it was");
        assert_eq!(loan.len(), pixels);
        assert_eq!(
            loan.is_shared(),
            harness.transport == TestTransport::SharedMemory && pixels > 1000
        );
        loan.copy_from_slice(&sent.data);
        publisher.publish_loaned(loan).unwrap();
        assert_eq!(*typed.take_timeout(TIMEOUT).unwrap(), sent);
        let sample = views.take_timeout(TIMEOUT).unwrap();
        assert_eq!(sample.info().delivery_path, harness.path());
        assert_eq!(sample.view().unwrap().data, sent.data);
        assert_eq!(sample.to_message().unwrap(), sent);
    }
    assert_eq!(publisher.counts().published, 3);
}

pub fn a_message_of_fixed_layout_is_written_where_it_is_read(harness: &Harness) {
    let (publisher, views, typed) = endpoints::<Pose>(harness);
    let mut loan = publisher.borrow_loaned_message().unwrap();
    assert_eq!(*loan, Pose::default(), "the quaternion's w is 1");
    loan.position.y = -2.5;
    let sent = *loan;
    publisher.publish_loaned(loan).unwrap();
    assert_eq!(*typed.take_timeout(TIMEOUT).unwrap(), sent);
    let sample = views.take_timeout(TIMEOUT).unwrap();
    assert_eq!(*sample.view().unwrap(), sent);
    let mut loan = publisher.borrow_loaned_message_uninitialized().unwrap();
    *loan = Pose::default();
    publisher.publish_loaned(loan).unwrap();
    assert_eq!(*typed.take_timeout(TIMEOUT).unwrap(), Pose::default());
}

pub fn wide_numbers_and_messages_are_borrowed_where_aligned(harness: &Harness) {
    let (publisher, views, typed) = endpoints::<Marker>(harness);
    let mut sent = Marker {
        ns: "path".into(),
        points: (0..500)
            .map(|n| Point {
                x: f64::from(n),
                ..Point::default()
            })
            .collect(),
        ..Marker::default()
    };
    publisher.publish(&sent).unwrap();
    let sample = views.take_timeout(TIMEOUT).unwrap();
    let view = sample.view().unwrap();
    assert_eq!(view.points, sent.points);
    // The bytes of a datagram start at any address, and those of a node that shares
    // no values; a chunk's are aligned.
    let is_anywhere = harness.copies_bytes() || !harness.shares_values;
    assert!(is_anywhere || borrowed_from(&view.points).is_some());
    assert_eq!(*typed.take_timeout(TIMEOUT).unwrap(), sent);

    sent.points.truncate(400);
    let mut draft = sent.clone();
    let mut points = publisher
        .borrow_loaned_sequence(&mut draft, |marker| &mut marker.points, 400)
        .unwrap();
    points.copy_from_slice(&sent.points);
    publisher.publish_loaned(points).unwrap();
    assert_eq!(*typed.take_timeout(TIMEOUT).unwrap(), sent);
    let sample = views.take_timeout(TIMEOUT).unwrap();
    let view = sample.view().unwrap();
    assert_eq!(view.points, sent.points);
    assert!(harness.copies_bytes() || borrowed_from(&view.points).is_some());
}

pub fn fields_behind_the_loaned_sequence_are_sent_too(harness: &Harness) {
    let (publisher, views, typed) = endpoints::<PointCloud2>(harness);
    let field = |name: &str, offset| PointField {
        name: name.into(),
        offset,
        datatype: PointField::FLOAT32,
        count: 1,
    };
    let mut cloud = PointCloud2 {
        fields: vec![field("x", 0), field("y", 4)],
        is_dense: true,
        ..PointCloud2::default()
    };
    let mut data = publisher
        .borrow_loaned_sequence(&mut cloud, |cloud| &mut cloud.data, 8001)
        .unwrap();
    data.fill(3);
    publisher.publish_loaned(data).unwrap();
    cloud.data = vec![3; 8001];
    assert_eq!(*typed.take_timeout(TIMEOUT).unwrap(), cloud);
    let sample = views.take_timeout(TIMEOUT).unwrap();
    let view = sample.view().unwrap();
    assert!(view.is_dense && view.fields[1].name == "y");
    assert_eq!(view.data, cloud.data);
}

pub fn a_loan_is_kept_for_late_joiners(harness: &Harness) {
    let qos = QosProfile::default().keep_last(2).transient_local();
    let publisher = harness
        .publishing
        .create_publisher::<LaserScan>("topic".qos(&qos))
        .unwrap();
    let mut scan = LaserScan {
        intensities: vec![1.0; 10],
        ..LaserScan::default()
    };
    for n in 0..3 {
        let mut ranges = publisher
            .borrow_loaned_sequence(&mut scan, |scan| &mut scan.ranges, 2000)
            .unwrap();
        ranges.fill(n as f32);
        publisher.publish_loaned(ranges).unwrap();
    }
    let late = views::<LaserScan>(harness, &qos);
    for n in 1..3 {
        let sample = late.take_timeout(TIMEOUT).unwrap();
        let view = sample.view().unwrap();
        assert_eq!(view.ranges, vec![n as f32; 2000]);
        assert_eq!(view.intensities[..], [1.0; 10]);
    }
}

pub fn a_kept_view_is_not_overwritten_by_later_messages(harness: &Harness) {
    let (publisher, views, _typed) = endpoints::<Image>(harness);
    let mut kept = Vec::new();
    for n in 0..20_u8 {
        let mut draft = image(0);
        let mut pixels = publisher
            .borrow_loaned_sequence(&mut draft, |image| &mut image.data, 5000)
            .unwrap();
        pixels.fill(n);
        publisher.publish_loaned(pixels).unwrap();
        kept.push(views.take_timeout(TIMEOUT).unwrap());
    }
    drop(publisher);
    for (n, sample) in kept.iter().enumerate() {
        let view = sample.view().unwrap();
        assert!(view.data.iter().all(|pixel| usize::from(*pixel) == n));
    }
}

pub fn a_loan_may_be_dropped_and_may_outlive_its_publisher(harness: &Harness) {
    let (publisher, views, _typed) = endpoints::<Image>(harness);
    let lend = |publisher: &Publisher<Image>| {
        publisher
            .borrow_loaned_sequence(&mut image(0), |image| &mut image.data, 5000)
            .unwrap()
    };
    (0..200).for_each(|_| drop(lend(&publisher)));
    assert_eq!(publisher.counts().published, 0);
    let mut pixels = lend(&publisher);
    drop(publisher);
    pixels.fill(9);
    let successor = harness
        .publishing
        .create_publisher::<Image>("topic".keep_last(10))
        .unwrap();
    assert!(successor.wait_for_matched(2, TIMEOUT));
    successor.publish_loaned(pixels).unwrap();
    let sample = views.take_timeout(TIMEOUT).unwrap();
    assert_eq!(sample.view().unwrap().data[..], [9; 5000]);
}

pub fn an_invalid_loan_is_a_clear_error(harness: &Harness) {
    let (publisher, ..) = endpoints::<Image>(harness);
    let mut unrelated = image(0);
    let refused =
        publisher.borrow_loaned_sequence(&mut image(0), |_| Box::leak(Box::new(vec![0_u8; 1])), 10);
    let Err(PublishError::Invalid { reason, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("not a field of the message"), "{reason}");
    let huge = publisher.borrow_loaned_sequence(&mut unrelated, |image| &mut image.data, 3 << 30);
    let Err(PublishError::TooLarge { size, max, .. }) = huge else {
        panic!("{huge:?}");
    };
    assert!(size >= 3 << 30 && max < size);
    let beyond =
        publisher.borrow_loaned_sequence(&mut unrelated, |image| &mut image.data, usize::MAX);
    assert!(matches!(beyond, Err(PublishError::TooLarge { .. })));
}

pub fn a_callback_reads_in_place(harness: &Harness) {
    use std::sync::mpsc::channel;
    let (sender, receiver) = channel();
    let publisher = harness
        .publishing
        .create_publisher::<Image>("topic".keep_last(10))
        .unwrap();
    let callback = move |image: MessageView<'_, Image>| {
        let sum: u64 = image.data.iter().map(|pixel| u64::from(*pixel)).sum();
        sender
            .send((sum, image.info().delivery_path, image.keep()))
            .unwrap();
    };
    let views = harness
        .subscribing
        .create_subscription("topic".keep_last(10), in_place(callback))
        .unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT) && views.wait_for_matched(1, TIMEOUT));
    let sent = image(10_000);
    publisher.publish(&sent).unwrap();
    let mut got = None;
    assert!(harness.subscribing.spin_until(
        || {
            got = receiver.try_recv().ok();
            got.is_some()
        },
        TIMEOUT
    ));
    let (sum, path, kept) = got.unwrap();
    assert_eq!(
        sum,
        sent.data.iter().map(|pixel| u64::from(*pixel)).sum::<u64>()
    );
    assert_eq!(path, harness.path());
    assert_eq!(kept.to_message().unwrap(), sent);
}

pub fn loans_and_views_keep_to_the_representation_of_the_profile(harness: &Harness) {
    let qos = QosProfile::default().representation(Representation::Xcdr2);
    let node = &harness.publishing;
    let poses = node.create_publisher::<Pose>("poses".qos(&qos)).unwrap();
    let infos = node
        .create_publisher::<CameraInfo>("infos".qos(&qos))
        .unwrap();
    let markers = node.create_publisher::<Marker>("topic".qos(&qos)).unwrap();
    let node = &harness.subscribing;
    let seen_poses = node.create_polled_subscription::<InPlaceMessage<Pose>>("poses".qos(&qos));
    let seen_infos =
        node.create_polled_subscription::<InPlaceMessage<CameraInfo>>("infos".qos(&qos));
    let (seen_poses, seen_infos) = (seen_poses.unwrap(), seen_infos.unwrap());
    assert!(poses.wait_for_matched(1, TIMEOUT) && infos.wait_for_matched(1, TIMEOUT));

    let mut pose = poses.borrow_loaned_message().unwrap();
    pose.orientation.z = 0.5;
    let sent = *pose;
    poses.publish_loaned(pose).unwrap();
    let sample = seen_poses.take_timeout(TIMEOUT).unwrap();
    assert_eq!(*sample.view().unwrap(), sent);

    // Eight bytes each, aligned to four: they may be kept separately until sent.
    for count in [0, 1, 300] {
        for name in ["", "a", "odd"] {
            let mut info = CameraInfo::default();
            info.header.frame_id = name.into();
            info.k[8] = 9.0;
            let mut d = infos
                .borrow_loaned_sequence(&mut info, |info| &mut info.d, count)
                .unwrap();
            d.iter_mut().zip(0..).for_each(|(d, n)| *d = f64::from(n));
            infos.publish_loaned(d).unwrap();
            let sample = seen_infos.take_timeout(TIMEOUT).unwrap();
            let view = sample.view().unwrap();
            assert!(view.d.iter().zip(0..).all(|(d, n)| *d == f64::from(n)));
            assert_eq!((view.d.len(), view.k[8]), (count, 9.0));
            assert!(view.header.frame_id == name);
        }
    }

    let mut marker = Marker::default();
    let refused = markers.borrow_loaned_sequence(&mut marker, |marker| &mut marker.points, 3);
    let Err(PublishError::Invalid { reason, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("XCDR2"), "{reason}");
    let other = harness
        .publishing
        .create_publisher::<Pose>("poses".keep_last(10));
    let foreign = poses.publish_loaned(other.unwrap().borrow_loaned_message().unwrap());
    assert!(matches!(foreign, Err(PublishError::Invalid { .. })));
}

pub fn a_group_shows_views_of_whole_sets(harness: &Harness) {
    let presentation = Presentation {
        access_scope: 2,
        coherent: true,
        ordered: false,
    };
    let out = PublisherGroup::new(&harness.publishing, presentation);
    let group = SubscriptionGroup::new(&harness.subscribing, presentation);
    let (out, group) = (out.unwrap(), group.unwrap());
    let publisher = out
        .create_publisher::<Image>("topic".keep_last(10))
        .unwrap();
    let options = SubscriptionOptions::new("topic".keep_last(10));
    let views = group
        .create_polled_subscription::<InPlaceMessage<Image>>(options)
        .unwrap();
    assert!(publisher.wait_for_matched(1, TIMEOUT) && views.wait_for_matched(1, TIMEOUT));
    assert!(group.take().is_none(), "the first look");
    let set = out.begin_coherent_changes().unwrap();
    for n in 0..2_u8 {
        let mut pixels = publisher
            .borrow_loaned_sequence(&mut image(0), |image| &mut image.data, 3000)
            .unwrap();
        pixels.fill(n);
        publisher.publish_loaned(pixels).unwrap();
    }
    assert!(views.take().is_none(), "the set goes on");
    drop(set);
    for n in 0..2_u8 {
        let mut sample = None;
        harness.wait_until("the set", || {
            sample = views.take();
            sample.is_some()
        });
        assert_eq!(sample.unwrap().view().unwrap().data[..], [n; 3000]);
    }
}
