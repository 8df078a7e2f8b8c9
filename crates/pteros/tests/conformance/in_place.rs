//! Messages written and read where they lie; see `view.rs` and `loan.rs`.

use pteros::interfaces::geometry_msgs::msg::{Point, Pose};
use pteros::interfaces::sensor_msgs::msg::{CameraInfo, Image, LaserScan, PointCloud2, PointField};
use pteros::interfaces::visualization_msgs::msg::Marker;
use pteros::msg::Viewable;
use pteros::msg::view::Cow;
use pteros::prelude::*;
use pteros::qos::{Presentation, Representation};
use pteros::{InPlace, Path, PublishError, SubscriptionOptions, View};

use crate::stage::{PATIENCE, Stage, Way};

fn views<T: Viewable>(stage: &Stage, qos: &QosProfile) -> Subscription<InPlace<T>> {
    let options = SubscriptionOptions::new(qos);
    stage
        .subscribing
        .create_view_subscription_with("topic", options)
        .unwrap()
}

/// A publisher, views and a typed subscription beside, all matched.
fn ends<T: Viewable>(stage: &Stage) -> (Publisher<T>, Subscription<InPlace<T>>, Subscription<T>) {
    let qos = QosProfile::default();
    let publisher = stage.publishing.create_publisher("topic", &qos).unwrap();
    let views = views::<T>(stage, &qos);
    let typed = stage
        .subscribing
        .create_polled_subscription::<T>("topic", &qos)
        .unwrap();
    assert!(publisher.wait_for_matched(2, PATIENCE));
    assert!(views.wait_for_matched(1, PATIENCE) && typed.wait_for_matched(1, PATIENCE));
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

/// The address of a sequence that is lent.
#[allow(clippy::ptr_arg, reason = "whether it is lent is the question")]
fn lent<E: Clone>(sequence: &Cow<'_, [E]>) -> Option<*const E> {
    match sequence {
        Cow::Borrowed(elements) => Some(elements.as_ptr()),
        Cow::Owned(_) => None,
    }
}

pub fn a_view_shows_what_a_copy_has(stage: &Stage) {
    let (publisher, views, typed) = ends::<Image>(stage);
    for pixels in [0, 10, 100_000] {
        let sent = image(pixels);
        publisher.publish(&sent).unwrap();
        assert_eq!(*typed.take_timeout(PATIENCE).unwrap(), sent);
        let sample = views.take_timeout(PATIENCE).unwrap();
        assert_eq!(sample.info().path, stage.path());
        assert_eq!(sample.to_message().unwrap(), sent);
        let view = sample.view().unwrap();
        assert_eq!((view.width, view.height), (sent.width, sent.height));
        assert!(view.encoding == "mono8" && view.header.frame_id == "left");
        assert_eq!(view.data, sent.data);
        // Twice the same place: nothing was copied to look at it.
        let again = sample.clone();
        assert!(lent(&view.data).is_some());
        assert_eq!(lent(&again.view().unwrap().data), lent(&view.data));
    }
    assert_eq!(views.undecodable_count(), 0);
}

pub fn what_is_loaned_reaches_views_and_copies(stage: &Stage) {
    let (publisher, views, typed) = ends::<Image>(stage);
    for pixels in [0, 10, 100_000] {
        let sent = image(pixels);
        let mut draft = sent.clone();
        draft.data = vec![1, 2, 3];
        let mut loan = publisher
            .loan_sequence(&mut draft, |image| &mut image.data, pixels)
            .unwrap();
        assert_eq!(draft.data, [1, 2, 3], "the draft is as it was");
        assert_eq!(loan.len(), pixels);
        assert_eq!(
            loan.is_shared(),
            stage.way == Way::SharedMemory && pixels > 1000
        );
        loan.copy_from_slice(&sent.data);
        publisher.publish_loaned(loan).unwrap();
        assert_eq!(*typed.take_timeout(PATIENCE).unwrap(), sent);
        let sample = views.take_timeout(PATIENCE).unwrap();
        assert_eq!(sample.info().path, stage.path());
        assert_eq!(sample.view().unwrap().data, sent.data);
        assert_eq!(sample.to_message().unwrap(), sent);
    }
    assert_eq!(publisher.counts().published, 3);
}

pub fn a_message_of_fixed_layout_is_written_where_it_is_read(stage: &Stage) {
    let (publisher, views, typed) = ends::<Pose>(stage);
    let mut loan = publisher.loan().unwrap();
    assert_eq!(*loan, Pose::default(), "the quaternion's w is 1");
    loan.position.y = -2.5;
    let sent = *loan;
    publisher.publish_loaned(loan).unwrap();
    assert_eq!(*typed.take_timeout(PATIENCE).unwrap(), sent);
    let sample = views.take_timeout(PATIENCE).unwrap();
    assert_eq!(*sample.view().unwrap(), sent);
    let mut loan = publisher.loan_unset().unwrap();
    *loan = Pose::default();
    publisher.publish_loaned(loan).unwrap();
    assert_eq!(*typed.take_timeout(PATIENCE).unwrap(), Pose::default());
}

pub fn wide_numbers_and_messages_are_lent_where_they_are_aligned(stage: &Stage) {
    let (publisher, views, typed) = ends::<Marker>(stage);
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
    let sample = views.take_timeout(PATIENCE).unwrap();
    let view = sample.view().unwrap();
    assert_eq!(view.points, sent.points);
    // A datagram's bytes begin anywhere, as those of a node that shares no values;
    // a chunk's are aligned.
    let is_anywhere = stage.path() == Path::Network || !stage.shares;
    assert!(is_anywhere || lent(&view.points).is_some());
    assert_eq!(*typed.take_timeout(PATIENCE).unwrap(), sent);

    sent.points.truncate(400);
    let mut draft = sent.clone();
    let mut points = publisher
        .loan_sequence(&mut draft, |marker| &mut marker.points, 400)
        .unwrap();
    points.copy_from_slice(&sent.points);
    publisher.publish_loaned(points).unwrap();
    assert_eq!(*typed.take_timeout(PATIENCE).unwrap(), sent);
    let sample = views.take_timeout(PATIENCE).unwrap();
    let view = sample.view().unwrap();
    assert_eq!(view.points, sent.points);
    assert!(stage.path() == Path::Network || lent(&view.points).is_some());
}

pub fn fields_behind_the_loaned_sequence_are_sent_too(stage: &Stage) {
    let (publisher, views, typed) = ends::<PointCloud2>(stage);
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
        .loan_sequence(&mut cloud, |cloud| &mut cloud.data, 8001)
        .unwrap();
    data.fill(3);
    publisher.publish_loaned(data).unwrap();
    cloud.data = vec![3; 8001];
    assert_eq!(*typed.take_timeout(PATIENCE).unwrap(), cloud);
    let sample = views.take_timeout(PATIENCE).unwrap();
    let view = sample.view().unwrap();
    assert!(view.is_dense && view.fields[1].name == "y");
    assert_eq!(view.data, cloud.data);
}

pub fn a_loan_is_kept_for_late_joiners(stage: &Stage) {
    let qos = QosProfile::default().keep_last(2).transient_local();
    let publisher = stage
        .publishing
        .create_publisher::<LaserScan>("topic", &qos)
        .unwrap();
    let mut scan = LaserScan {
        intensities: vec![1.0; 10],
        ..LaserScan::default()
    };
    for n in 0..3 {
        let mut ranges = publisher
            .loan_sequence(&mut scan, |scan| &mut scan.ranges, 2000)
            .unwrap();
        ranges.fill(n as f32);
        publisher.publish_loaned(ranges).unwrap();
    }
    let late = views::<LaserScan>(stage, &qos);
    for n in 1..3 {
        let sample = late.take_timeout(PATIENCE).unwrap();
        let view = sample.view().unwrap();
        assert_eq!(view.ranges, vec![n as f32; 2000]);
        assert_eq!(view.intensities[..], [1.0; 10]);
    }
}

pub fn a_kept_view_is_untouched_by_what_comes_after(stage: &Stage) {
    let (publisher, views, _typed) = ends::<Image>(stage);
    let mut kept = Vec::new();
    for n in 0..20_u8 {
        let mut draft = image(0);
        let mut pixels = publisher
            .loan_sequence(&mut draft, |image| &mut image.data, 5000)
            .unwrap();
        pixels.fill(n);
        publisher.publish_loaned(pixels).unwrap();
        kept.push(views.take_timeout(PATIENCE).unwrap());
    }
    drop(publisher);
    for (n, sample) in kept.iter().enumerate() {
        let view = sample.view().unwrap();
        assert!(view.data.iter().all(|pixel| usize::from(*pixel) == n));
    }
}

pub fn a_loan_may_be_dropped_and_may_outlive_its_publisher(stage: &Stage) {
    let (publisher, views, _typed) = ends::<Image>(stage);
    let lend = |publisher: &Publisher<Image>| {
        publisher
            .loan_sequence(&mut image(0), |image| &mut image.data, 5000)
            .unwrap()
    };
    (0..200).for_each(|_| drop(lend(&publisher)));
    assert_eq!(publisher.counts().published, 0);
    let mut pixels = lend(&publisher);
    drop(publisher);
    pixels.fill(9);
    let successor = stage
        .publishing
        .create_publisher::<Image>("topic", 10)
        .unwrap();
    assert!(successor.wait_for_matched(2, PATIENCE));
    successor.publish_loaned(pixels).unwrap();
    let sample = views.take_timeout(PATIENCE).unwrap();
    assert_eq!(sample.view().unwrap().data[..], [9; 5000]);
}

pub fn a_loan_that_cannot_be_is_a_clear_error(stage: &Stage) {
    let (publisher, ..) = ends::<Image>(stage);
    let mut stranger = image(0);
    let refused =
        publisher.loan_sequence(&mut image(0), |_| Box::leak(Box::new(vec![0_u8; 1])), 10);
    let Err(PublishError::Invalid { reason, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("not a field of the message"), "{reason}");
    let huge = publisher.loan_sequence(&mut stranger, |image| &mut image.data, 3 << 30);
    let Err(PublishError::TooLarge { size, max, .. }) = huge else {
        panic!("{huge:?}");
    };
    assert!(size >= 3 << 30 && max < size);
    let beyond = publisher.loan_sequence(&mut stranger, |image| &mut image.data, usize::MAX);
    assert!(matches!(beyond, Err(PublishError::TooLarge { .. })));
}

pub fn a_callback_reads_in_place(stage: &Stage) {
    use std::sync::mpsc::channel;
    let (sender, heard) = channel();
    let publisher = stage
        .publishing
        .create_publisher::<Image>("topic", 10)
        .unwrap();
    let callback = move |image: View<'_, Image>| {
        let sum: u64 = image.data.iter().map(|pixel| u64::from(*pixel)).sum();
        sender.send((sum, image.info().path, image.keep())).unwrap();
    };
    let views = stage
        .subscribing
        .create_view_subscription("topic", 10, callback)
        .unwrap();
    assert!(publisher.wait_for_matched(1, PATIENCE) && views.wait_for_matched(1, PATIENCE));
    let sent = image(10_000);
    publisher.publish(&sent).unwrap();
    let mut got = None;
    assert!(stage.subscribing.spin_until(
        || {
            got = heard.try_recv().ok();
            got.is_some()
        },
        PATIENCE
    ));
    let (sum, path, kept) = got.unwrap();
    assert_eq!(sum, sent.data.iter().map(|pixel| u64::from(*pixel)).sum());
    assert_eq!(path, stage.path());
    assert_eq!(kept.to_message().unwrap(), sent);
}

pub fn loans_and_views_keep_to_the_representation_of_the_profile(stage: &Stage) {
    let qos = QosProfile::default().representation(Representation::Xcdr2);
    let node = &stage.publishing;
    let poses = node.create_publisher::<Pose>("poses", &qos).unwrap();
    let infos = node.create_publisher::<CameraInfo>("infos", &qos).unwrap();
    let markers = node.create_publisher::<Marker>("topic", &qos).unwrap();
    let node = &stage.subscribing;
    let options = || SubscriptionOptions::new(&qos);
    let seen_poses = node.create_view_subscription_with::<Pose>("poses", options());
    let seen_infos =
        node.create_view_subscription_with::<CameraInfo>("infos", SubscriptionOptions::new(&qos));
    let (seen_poses, seen_infos) = (seen_poses.unwrap(), seen_infos.unwrap());
    assert!(poses.wait_for_matched(1, PATIENCE) && infos.wait_for_matched(1, PATIENCE));

    let mut pose = poses.loan().unwrap();
    pose.orientation.z = 0.5;
    let sent = *pose;
    poses.publish_loaned(pose).unwrap();
    let sample = seen_poses.take_timeout(PATIENCE).unwrap();
    assert_eq!(*sample.view().unwrap(), sent);

    // Of eight bytes each, aligned to four: they may lie beside until sent.
    for count in [0, 1, 300] {
        for name in ["", "a", "odd"] {
            let mut info = CameraInfo::default();
            info.header.frame_id = name.into();
            info.k[8] = 9.0;
            let mut d = infos
                .loan_sequence(&mut info, |info| &mut info.d, count)
                .unwrap();
            d.iter_mut().zip(0..).for_each(|(d, n)| *d = f64::from(n));
            infos.publish_loaned(d).unwrap();
            let sample = seen_infos.take_timeout(PATIENCE).unwrap();
            let view = sample.view().unwrap();
            assert!(view.d.iter().zip(0..).all(|(d, n)| *d == f64::from(n)));
            assert_eq!((view.d.len(), view.k[8]), (count, 9.0));
            assert!(view.header.frame_id == name);
        }
    }

    let mut marker = Marker::default();
    let refused = markers.loan_sequence(&mut marker, |marker| &mut marker.points, 3);
    let Err(PublishError::Invalid { reason, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("XCDR2"), "{reason}");
    let other = stage.publishing.create_publisher::<Pose>("poses", 10);
    let foreign = poses.publish_loaned(other.unwrap().loan().unwrap());
    assert!(matches!(foreign, Err(PublishError::Invalid { .. })));
}

pub fn a_group_shows_views_of_whole_sets(stage: &Stage) {
    let presentation = Presentation {
        access_scope: 2,
        coherent: true,
        ordered: false,
    };
    let out = stage.publishing.create_publisher_group(presentation);
    let group = stage.subscribing.create_subscription_group(presentation);
    let (out, group) = (out.unwrap(), group.unwrap());
    let publisher = out.create_publisher::<Image>("topic", 10).unwrap();
    let options = SubscriptionOptions::new(10);
    let views = group
        .create_view_subscription_with::<Image>("topic", options)
        .unwrap();
    assert!(publisher.wait_for_matched(1, PATIENCE) && views.wait_for_matched(1, PATIENCE));
    assert!(group.take().is_none(), "the first look");
    let set = out.begin_coherent_changes().unwrap();
    for n in 0..2_u8 {
        let mut pixels = publisher
            .loan_sequence(&mut image(0), |image| &mut image.data, 3000)
            .unwrap();
        pixels.fill(n);
        publisher.publish_loaned(pixels).unwrap();
    }
    assert!(views.take().is_none(), "the set goes on");
    drop(set);
    for n in 0..2_u8 {
        let mut sample = None;
        stage.until("the set", || {
            sample = views.take();
            sample.is_some()
        });
        assert_eq!(sample.unwrap().view().unwrap().data[..], [n; 3000]);
    }
}
