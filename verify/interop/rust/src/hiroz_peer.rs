//! Peer over hiroz: topics and services of a node that is not of Pteros.

mod options;

use std::process::ExitCode;
use std::time::Duration;

use hiroz::context::ZContextBuilder;
use hiroz::node::ZNode;
use hiroz::qos::{QosDurability, QosHistory, QosProfile};
use hiroz::{Builder, Result};
use hiroz_msgs::example_interfaces::srv::AddTwoInts;
use hiroz_msgs::example_interfaces::{AddTwoIntsRequest, AddTwoIntsResponse};
use hiroz_msgs::std_msgs::String as Text;
use options::{Options, refuse, wait_for_line};

/// How long anything may take on a loaded machine.
const SOON: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    let options = Options::read("chatter", "hiroz_peer", 3);
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(4)
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build()?;
    let context = ZContextBuilder::default().build()?;
    let node = context.create_node(&options.node).build()?;
    match options.verb.as_str() {
        "pub" => runtime.block_on(publish(&node, options))?,
        "sub" => subscribe(&node, options)?,
        "server" => serve(&node, options)?,
        "client" => runtime.block_on(call(&node, options))?,
        verb => refuse(&format!("{verb}: expected pub, sub, server or client")),
    }
    Ok(())
}

fn qos(options: &Options) -> QosProfile {
    QosProfile {
        history: QosHistory::from_depth(10),
        durability: if options.is_transient_local {
            QosDurability::TransientLocal
        } else {
            QosDurability::Volatile
        },
        ..QosProfile::default()
    }
}

async fn publish(node: &ZNode, options: &Options) -> Result<()> {
    let publisher = node.create_pub::<Text>(&options.topic);
    let publisher = publisher.with_qos(qos(options)).build()?;
    println!("ready");
    options.wait_for_start();
    // Samples sent before a reader is known are lost, unless there is a history.
    if !options.is_transient_local && !publisher.wait_for_subscription(1, SOON).await {
        return Err("no subscription".into());
    }
    for number in 1..=options.count {
        let data = format!("Hello World: {number}");
        println!("sent seq={number} text={data}");
        publisher.publish(&Text { data })?;
    }
    wait_for_line();
    Ok(())
}

fn subscribe(node: &ZNode, options: &Options) -> Result<()> {
    let subscription = node.create_sub::<Text>(&options.topic);
    let subscription = subscription.with_qos(qos(options)).build()?;
    println!("ready");
    for number in 1..=options.count {
        let message = subscription.recv_timeout(SOON)?;
        println!("received seq={number} text={}", message.data);
    }
    wait_for_line();
    Ok(())
}

fn serve(node: &ZNode, options: &Options) -> Result<()> {
    let mut service = node.create_service::<AddTwoInts>(&options.topic).build()?;
    println!("ready");
    for number in 1..=options.count {
        let request = service.take_request()?;
        let AddTwoIntsRequest { a, b } = *request.message();
        request.reply_blocking(&AddTwoIntsResponse { sum: a + b })?;
        println!("served seq={number} a={a} b={b}");
    }
    wait_for_line();
    Ok(())
}

async fn call(node: &ZNode, options: &Options) -> Result<()> {
    let client = node.create_client::<AddTwoInts>(&options.topic).build()?;
    println!("ready");
    options.wait_for_start();
    for number in 1..=options.count as i64 {
        let request = AddTwoIntsRequest {
            a: number,
            b: 10 * number,
        };
        let response = client.call_with_timeout(&request, SOON).await?;
        println!("reply seq={number} sum={}", response.sum);
    }
    wait_for_line();
    Ok(())
}
