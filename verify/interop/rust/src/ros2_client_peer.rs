//! Peer over ros2-client with its Zenoh backend: topics and services of a node that is
//! not of Pteros. That backend has no transient local history.

mod options;

use std::error::Error;
use std::future::Future;
use std::process::ExitCode;
use std::time::Duration;

use options::{Options, refuse, wait_for_line};
use ros2_client::qos::{History, WhenFull};
use ros2_client::{
    Context, MessageTypeName, Name, Node, NodeName, NodeOptions, QosProfile, ServiceTypeName, Topic,
};
use serde::{Deserialize, Serialize};

/// How long anything may take on a loaded machine.
const SOON: Duration = Duration::from_secs(20);

#[derive(Serialize, Deserialize)]
struct AddTwoIntsRequest {
    a: i64,
    b: i64,
}

#[derive(Serialize, Deserialize)]
struct AddTwoIntsResponse {
    sum: i64,
}

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let options = Options::read("chatter", "ros2_client_peer", 3);
    if options.is_transient_local {
        refuse("--durability transient_local: ros2-client has none over Zenoh");
    }
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(4)
        }
    }
}

fn run(options: &Options) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build()?;
    let context = Context::new()?;
    let name = NodeName::new("/", &options.node)?;
    let node = context.new_node(name, NodeOptions::new().enable_rosout(false))?;
    match options.verb.as_str() {
        "pub" => runtime.block_on(publish(&node, options))?,
        "sub" => runtime.block_on(subscribe(&node, options))?,
        "server" => runtime.block_on(serve(&node, options))?,
        "client" => call(&node, options)?,
        verb => refuse(&format!("{verb}: expected pub, sub, server or client")),
    }
    Ok(())
}

fn topic(node: &Node, options: &Options) -> Result<Topic, Box<dyn Error>> {
    let qos = QosProfile::publisher_default();
    let qos = qos.reliability_reliable(WhenFull::Block);
    let qos = qos.history(History::KeepLast { depth: 10 });
    let name = Name::new("/", &options.topic)?;
    let kind = MessageTypeName::new("std_msgs", "String");
    Ok(node.create_topic(&name, kind, &qos))
}

/// The value, or an error after [`SOON`].
async fn soon<T, E: Error + 'static>(
    value: impl Future<Output = Result<T, E>>,
) -> Result<T, Box<dyn Error>> {
    Ok(tokio::time::timeout(SOON, value).await??)
}

async fn publish(node: &Node, options: &Options) -> Outcome {
    let publisher = node.create_publisher::<String>(&topic(node, options)?, None)?;
    println!("ready");
    options.wait_for_start();
    // Samples sent before a reader is known are lost.
    tokio::time::timeout(SOON, publisher.wait_for_subscription(node)).await?;
    for number in 1..=options.count {
        let text = format!("Hello World: {number}");
        println!("sent seq={number} text={text}");
        publisher.publish(text).map_err(|error| error.to_string())?;
    }
    wait_for_line();
    Ok(())
}

async fn subscribe(node: &Node, options: &Options) -> Outcome {
    let subscription = node.create_subscription::<String>(&topic(node, options)?, None)?;
    println!("ready");
    for number in 1..=options.count {
        let (text, _) = soon(subscription.async_take()).await?;
        println!("received seq={number} text={text}");
    }
    wait_for_line();
    Ok(())
}

async fn serve(node: &Node, options: &Options) -> Outcome {
    let (name, kind) = service(options)?;
    let server = node.create_server::<AddTwoIntsRequest, AddTwoIntsResponse>(&name, &kind)?;
    println!("ready");
    for number in 1..=options.count {
        let (id, AddTwoIntsRequest { a, b }) = soon(server.async_receive_request()).await?;
        server.send_response(id, AddTwoIntsResponse { sum: a + b })?;
        println!("served seq={number} a={a} b={b}");
    }
    wait_for_line();
    Ok(())
}

fn call(node: &Node, options: &Options) -> Outcome {
    let (name, kind) = service(options)?;
    let client = node.create_client::<AddTwoIntsRequest, AddTwoIntsResponse>(&name, &kind)?;
    println!("ready");
    options.wait_for_start();
    for number in 1..=options.count as i64 {
        let response = client.call(AddTwoIntsRequest {
            a: number,
            b: 10 * number,
        })?;
        println!("reply seq={number} sum={}", response.sum);
    }
    wait_for_line();
    Ok(())
}

fn service(options: &Options) -> Result<(Name, ServiceTypeName), Box<dyn Error>> {
    let kind = ServiceTypeName::new("example_interfaces", "AddTwoInts");
    Ok((Name::new("/", &options.topic)?, kind))
}
