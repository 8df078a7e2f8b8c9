// Program of ROS 2's rclcpp for `pteros lab`, with the options and lines of host.h.
// RMW_IMPLEMENTATION names the middleware below it; the path in its lines is what the
// loaded one calls itself.
//
// Nodes have rclcpp's default options: parameter services, /rosout, /parameter_events.
// One thread calls back, that of the executor. `nodes` spins in the main thread, as
// rclcpp::spin() does. The others publish from the main thread at their rate, but
// `intra` publishes in a timer's callback, as a node of a composed process does.
//
// Options of its own: `--executor single|events`; `--serialize yes` switches rclcpp's
// intra-process communication off, so that the middleware carries what stays inside.

#define HOST_OPTION(name, value) own_option(name, value)
#define HOST_REST() rest()
static bool own_option(const char *name, const char *value);
static void rest();

#include "../host.h"

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <rclcpp/executors/single_threaded_executor.hpp>
#include <rclcpp/experimental/executors/events_executor/events_executor.hpp>
#include <rclcpp/rclcpp.hpp>
#include <rmw/rmw.h>
#include <std_msgs/msg/string.hpp>
#include <std_msgs/msg/u_int8_multi_array.hpp>

using Bytes = std_msgs::msg::UInt8MultiArray;
using Text = std_msgs::msg::String;

static bool events, serialize;
static std::shared_ptr<rclcpp::Executor> executor;
static std::thread spinner;
static std::vector<rclcpp::Node::SharedPtr> nodes;
static std::vector<rclcpp::PublisherBase::SharedPtr> publishers;
static std::vector<rclcpp::SubscriptionBase::SharedPtr> subscriptions;
static rclcpp::TimerBase::SharedPtr request;
static Bytes bytes;
static Text text;

static bool own_option(const char *name, const char *value)
{
  if (!strcmp(name, "--executor"))
    events = choice(name, value, "single|events") == 1;
  else if (!strcmp(name, "--serialize"))
    serialize = choice(name, value, "no|yes") == 1;
  else
    return false;
  return true;
}

static bool is_passed_inside()
{
  return host.verb == HOST_INTRA && !serialize;
}

static void publish_now()
{
  if (host.text) {
    auto &publisher = static_cast<rclcpp::Publisher<Text> &>(*publishers.back());
    if (is_passed_inside()) {
      auto message = std::make_unique<Text>(text);
      traffic_fill(reinterpret_cast<uint8_t *>(&message->data[0]));
      publisher.publish(std::move(message));
    } else {
      traffic_fill(reinterpret_cast<uint8_t *>(&text.data[0]));
      publisher.publish(text);
    }
  } else {
    auto &publisher = static_cast<rclcpp::Publisher<Bytes> &>(*publishers.back());
    if (is_passed_inside()) {
      auto message = std::make_unique<Bytes>(bytes);
      traffic_fill(message->data.data());
      publisher.publish(std::move(message));
    } else {
      traffic_fill(bytes.data.data());
      publisher.publish(bytes);
    }
  }
}

static void received(const uint8_t *data, size_t size)
{
  if (traffic_receive(data, size, is_passed_inside() ? "intra-process" : rmw_get_implementation_identifier()))
    publish_now();
}

// rclcpp refuses KEEP_ALL for messages that it passes inside: this depth exceeds every run there.
static const size_t DEPTH_INSIDE = 1000;

static rclcpp::QoS history()
{
  if (!host.keep_all)
    return rclcpp::QoS(rclcpp::KeepLast((size_t)host.depth));
  if (is_passed_inside())
    return rclcpp::QoS(rclcpp::KeepLast(DEPTH_INSIDE));
  return rclcpp::QoS(rclcpp::KeepAll());
}

static rclcpp::QoS qos()
{
  rclcpp::QoS qos = history();
  host.best_effort ? qos.best_effort() : qos.reliable();
  host.transient_local ? qos.transient_local() : qos.durability_volatile();
  if (host.deadline_ms)
    qos.deadline(rclcpp::Duration::from_nanoseconds(host.deadline_ms * 1000000));
  return qos;
}

static void join()
{
  if (host.loan)
    fail(HOST_UNSUPPORTED, "unsupported: rclcpp lends no messages of unbounded types");
  rclcpp::init(0, nullptr);
  if (events)
    executor = std::make_shared<rclcpp::experimental::executors::EventsExecutor>();
  else
    executor = std::make_shared<rclcpp::executors::SingleThreadedExecutor>();
}

static rclcpp::Node::SharedPtr add_node(const char *part, long number)
{
  rclcpp::NodeOptions options;
  options.use_intra_process_comms(is_passed_inside());
  std::string name = std::string("host_") + part + std::to_string(getpid()) + "_" + std::to_string(number);
  nodes.push_back(std::make_shared<rclcpp::Node>(name, options));
  return nodes.back();
}

static void add_publisher(rclcpp::Node &node, const char *topic)
{
  if (host.text)
    publishers.push_back(node.create_publisher<Text>(topic, qos()));
  else
    publishers.push_back(node.create_publisher<Bytes>(topic, qos()));
}

static void add_subscription(rclcpp::Node &node, const char *topic)
{
  if (host.text)
    subscriptions.push_back(node.create_subscription<Text>(topic, qos(), [](Text::ConstSharedPtr message) {
      received(reinterpret_cast<const uint8_t *>(message->data.data()), message->data.size());
    }));
  else
    subscriptions.push_back(node.create_subscription<Bytes>(topic, qos(), [](Bytes::ConstSharedPtr message) {
      received(message->data.data(), message->data.size());
    }));
}

// rclcpp's matched events would be in the executor's wait set while it is measured.
static void watch_matches()
{
  std::thread([] {
    long wanted_readers = host.verb == HOST_MEET ? host.of : host.verb == HOST_FORWARD ? 1 : host.subscribers;
    long wanted_writers = host.verb == HOST_MEET ? host.of : 1;
    long readers, writers;
    do {
      sleep_ns(4000000);
      stack_matched(&readers, &writers);
    } while ((!publishers.empty() && readers < wanted_readers) ||
             (!subscriptions.empty() && host.verb != HOST_FORWARD && writers < wanted_writers));
    sem_post(&traffic.changed);
  }).detach();
}

static void stack_open(const char *out, const char *in)
{
  join();
  bytes.data.resize(host.size);
  fill_payload(bytes.data.data(), host.size, 1, false);
  text.data.assign(host.size, 'x');
  auto node = add_node("", 0);
  if (out)
    add_publisher(*node, out);
  if (in) {
    // Two nodes share a composed process.
    auto of_input = host.verb == HOST_INTRA ? add_node("in", 1) : node;
    add_subscription(*of_input, in);
  }
  if (host.verb == HOST_INTRA) {
    auto publish = [] {
      request->cancel();
      publish_now();
    };
    request = node->create_wall_timer(std::chrono::nanoseconds(0), publish, nullptr, false);
  }
  for (auto &each : nodes)
    executor->add_node(each);
  spinner = std::thread([] { executor->spin(); });
  if (host.verb != HOST_SUB && host.verb != HOST_PONG)
    watch_matches();
}

static void stack_publish(void)
{
  if (request)
    request->reset();
  else
    publish_now();
}

static void stack_matched(long *readers, long *writers)
{
  *readers = publishers.empty() ? 0 : (long)publishers.back()->get_subscription_count();
  *writers = subscriptions.empty() ? 0 : (long)subscriptions.back()->get_publisher_count();
}

static void stack_add_node(const char *out, const char *in)
{
  if (!executor)
    join();
  auto node = add_node("", (long)nodes.size());
  add_publisher(*node, out);
  add_subscription(*node, in);
  executor->add_node(node);
}

// The executor has a thread, or none exists: without nodes, and where nodes rest.
static void rest()
{
  if (executor && host.verb == HOST_NODES)
    executor->spin();
  pause();
}

int main(int argc, char **argv)
{
  int code = host_main(argc, argv);
  if (spinner.joinable()) {
    executor->cancel();
    spinner.join();
  }
  // Before the context, which is destroyed when `main` returns.
  request.reset();
  subscriptions.clear();
  publishers.clear();
  nodes.clear();
  executor.reset();
  return code;
}
