// A node of rclcpp for `cargo xtask ros2 --soak`: see mod.rs.
//
//   soak NAME PEER       publishes, calls PEER's service and action, and checks what
//                        it receives, until standard input says "stop" and "end"
//   soak --guest NAME PEER   ends after an answer, a result and a message of each topic
#include <atomic>
#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "example_interfaces/action/fibonacci.hpp"
#include "example_interfaces/srv/add_two_ints.hpp"
#include "rclcpp/rclcpp.hpp"
#include "rclcpp_action/rclcpp_action.hpp"
#include "std_msgs/msg/string.hpp"
#include "std_msgs/msg/u_int8_multi_array.hpp"

using AddTwoInts = example_interfaces::srv::AddTwoInts;
using Fibonacci = example_interfaces::action::Fibonacci;
using Frame = std_msgs::msg::UInt8MultiArray;
using Number = std_msgs::msg::String;
using namespace std::chrono_literals;

namespace {
constexpr size_t kFrameBytes = 200000;
constexpr auto kTick = 20ms;
// Ticks between frames, calls, goals, and changes of the inner node.
constexpr uint64_t kFrame = 25, kCall = 2, kGoal = 50, kInner = 50;
// Requests without an answer at once: those of all clients fit into the ten that a service
// keeps, also while its process waits for a processor.
constexpr size_t kPendingMax = 3;

std::atomic<bool> stopping{false}, ending{false};

// One line at a time, from any thread.
void say(const std::string & line)
{
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::cout << line << std::endl;
}

rclcpp::QoS keep_all() {return rclcpp::QoS(rclcpp::KeepAll()).reliable();}

// The last number of each source of a topic. Numbers of a source have no gap.
class Sequences
{
public:
  explicit Sequences(std::string topic)
  : topic_(std::move(topic)) {}

  void add(const std::string & source, uint64_t number)
  {
    auto [at, is_new] = last_.try_emplace(source, number);
    if (!is_new && number != at->second + 1) {
      say(
        "lost " + topic_ + " of " + source + ": " + std::to_string(number) + " came after " +
        std::to_string(at->second));
    }
    at->second = number;
  }

  void report() const
  {
    for (const auto & [source, number] : last_) {
      say("got " + topic_ + " " + source + " " + std::to_string(number));
    }
  }

  bool empty() const {return last_.empty();}

private:
  std::string topic_;
  std::map<std::string, uint64_t> last_;
};

class Soak : public rclcpp::Node
{
public:
  Soak(const std::string & name, const std::string & peer, bool is_guest)
  : Node(name), name_(name), is_guest_(is_guest), numbers_("numbers"), frames_("frames")
  {
    number_publisher_ = create_publisher<Number>("/soak/numbers", keep_all());
    frame_publisher_ = create_publisher<Frame>("/soak/frames", keep_all());
    number_subscription_ = create_subscription<Number>(
      "/soak/numbers", keep_all(), [this](const Number & message) {
        const auto split = message.data.find(' ');
        numbers_.add(message.data.substr(0, split), std::stoull(message.data.substr(split + 1)));
      });
    frame_subscription_ = create_subscription<Frame>(
      "/soak/frames", keep_all(), [this](const Frame & message) {read_frame(message);});
    service_ = create_service<AddTwoInts>(
      "/soak/" + name + "/add",
      [](AddTwoInts::Request::SharedPtr request, AddTwoInts::Response::SharedPtr response) {
        response->sum = request->a + request->b;
      });
    action_ = rclcpp_action::create_server<Fibonacci>(
      this, "/soak/" + name + "/fibonacci",
      [](const rclcpp_action::GoalUUID &, std::shared_ptr<const Fibonacci::Goal>) {
        return rclcpp_action::GoalResponse::ACCEPT_AND_EXECUTE;
      },
      [](std::shared_ptr<rclcpp_action::ServerGoalHandle<Fibonacci>>) {
        return rclcpp_action::CancelResponse::ACCEPT;
      },
      [](std::shared_ptr<rclcpp_action::ServerGoalHandle<Fibonacci>> goal) {
        auto feedback = std::make_shared<Fibonacci::Feedback>();
        feedback->sequence = {0, 1};
        for (int at = 0; at < goal->get_goal()->order; ++at) {
          const auto & numbers = feedback->sequence;
          feedback->sequence.push_back(numbers[at] + numbers[at + 1]);
          goal->publish_feedback(feedback);
        }
        auto result = std::make_shared<Fibonacci::Result>();
        result->sequence = feedback->sequence;
        goal->succeed(result);
      });
    client_ = create_client<AddTwoInts>("/soak/" + peer + "/add");
    action_client_ =
      rclcpp_action::create_client<Fibonacci>(this, "/soak/" + peer + "/fibonacci");
    timer_ = create_wall_timer(kTick, [this]() {tick();});
  }

private:
  void read_frame(const Frame & message)
  {
    uint64_t number = 0;
    std::memcpy(&number, message.data.data(), sizeof number);
    const auto & label = message.layout.dim.at(0).label;
    bool is_whole = message.data.size() == kFrameBytes;
    for (size_t at = sizeof number; is_whole && at < kFrameBytes; at += 997) {
      is_whole = message.data[at] == static_cast<uint8_t>(number);
    }
    if (!is_whole) {
      say("lost frames of " + label + ": " + std::to_string(number) + " is damaged");
    }
    frames_.add(label, number);
  }

  void tick()
  {
    if (is_guest_) {
      const bool is_done = calls_ > 0 && goals_ > 0 && !numbers_.empty() && !frames_.empty();
      if (is_done) {
        rclcpp::shutdown();
        return;
      }
    }
    ++ticks_;
    if (!stopping && !is_guest_) {
      Number number;
      number.data = name_ + " " + std::to_string(++numbers_sent_);
      number_publisher_->publish(number);
      if (ticks_ % kFrame == 0) {
        publish_frame();
      }
    }
    if (!stopping) {
      if (ticks_ % kCall == 0) {call();}
      if (ticks_ % kGoal == 0) {send_goal();}
      if (ticks_ % kInner == 0) {change_inner_node();}
    } else if (!is_guest_ && pending_calls_ == 0 && pending_goals_ == 0) {
      if (!is_reported_) {
        is_reported_ = true;
        inner_.reset();
        inner_endpoints_.clear();
        say("sent numbers " + std::to_string(numbers_sent_));
        say("sent frames " + std::to_string(frames_sent_));
        say("answered calls " + std::to_string(calls_));
        say("answered goals " + std::to_string(goals_));
      }
      if (ticks_ % kGoal == 0) {
        numbers_.report();
        frames_.report();
      }
    }
    if (ending) {
      rclcpp::shutdown();
    }
  }

  void publish_frame()
  {
    Frame frame;
    ++frames_sent_;
    frame.layout.dim.resize(1);
    frame.layout.dim[0].label = name_;
    frame.data.assign(kFrameBytes, static_cast<uint8_t>(frames_sent_));
    std::memcpy(frame.data.data(), &frames_sent_, sizeof frames_sent_);
    frame_publisher_->publish(frame);
  }

  void call()
  {
    if (!client_->service_is_ready() || pending_calls_ >= kPendingMax) {
      return;
    }
    auto request = std::make_shared<AddTwoInts::Request>();
    request->a = static_cast<int64_t>(ticks_);
    request->b = 7;
    ++pending_calls_;
    client_->async_send_request(
      request, [this, sum = request->a + 7](rclcpp::Client<AddTwoInts>::SharedFuture future) {
        --pending_calls_;
        ++calls_;
        if (future.get()->sum != sum) {
          say("lost calls of " + name_ + ": a wrong sum");
        }
      });
  }

  void send_goal()
  {
    if (!action_client_->action_server_is_ready() || pending_goals_ > 0) {
      return;
    }
    Fibonacci::Goal goal;
    goal.order = 10;
    rclcpp_action::Client<Fibonacci>::SendGoalOptions options;
    options.result_callback =
      [this](const rclcpp_action::ClientGoalHandle<Fibonacci>::WrappedResult & result) {
        --pending_goals_;
        ++goals_;
        if (result.result->sequence.size() != 12) {
          say("lost goals of " + name_ + ": a wrong result");
        }
      };
    ++pending_goals_;
    action_client_->async_send_goal(goal, options);
  }

  // A second node of this process, with an endpoint of each kind, replaces the last.
  void change_inner_node()
  {
    inner_endpoints_.clear();
    inner_.reset();
    inner_ = std::make_shared<rclcpp::Node>(name_ + "_inner");
    inner_endpoints_ = {
      inner_->create_publisher<Number>("/soak/inner", 10),
      inner_->create_subscription<Number>("/soak/inner", 10, [](const Number &) {}),
      inner_->create_service<AddTwoInts>(
        "/soak/" + name_ + "/inner",
        [](AddTwoInts::Request::SharedPtr, AddTwoInts::Response::SharedPtr) {}),
      inner_->create_client<AddTwoInts>("/soak/" + name_ + "/inner")};
  }

  std::string name_;
  bool is_guest_, is_reported_ = false;
  Sequences numbers_, frames_;
  uint64_t ticks_ = 0, numbers_sent_ = 0, frames_sent_ = 0, calls_ = 0, goals_ = 0;
  size_t pending_calls_ = 0, pending_goals_ = 0;
  rclcpp::Publisher<Number>::SharedPtr number_publisher_;
  rclcpp::Publisher<Frame>::SharedPtr frame_publisher_;
  rclcpp::Subscription<Number>::SharedPtr number_subscription_;
  rclcpp::Subscription<Frame>::SharedPtr frame_subscription_;
  rclcpp::Service<AddTwoInts>::SharedPtr service_;
  rclcpp_action::Server<Fibonacci>::SharedPtr action_;
  rclcpp::Client<AddTwoInts>::SharedPtr client_;
  rclcpp_action::Client<Fibonacci>::SharedPtr action_client_;
  rclcpp::TimerBase::SharedPtr timer_;
  rclcpp::Node::SharedPtr inner_;
  std::vector<std::shared_ptr<void>> inner_endpoints_;
};
}  // namespace

int main(int argc, char ** argv)
{
  rclcpp::init(argc, argv);
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool is_guest = words.at(0) == "--guest";
  const size_t at = is_guest ? 1 : 0;
  if (!is_guest) {
    std::thread(
      []() {
        for (std::string line; std::getline(std::cin, line); ) {
          stopping = stopping || line == "stop";
          ending = ending || line == "end";
        }
      }).detach();
  }
  {
    auto node = std::make_shared<Soak>(words.at(at), words.at(at + 1), is_guest);
    say("ready");
    rclcpp::spin(node);
  }
  say(is_guest ? "guest done" : "ended");
  return 0;
}
