// C++17 on libpteros: RAII handles, exceptions and lambdas. Header only; it calls nothing
// but the functions of pteros.h, whose comments on blocking and threads hold here, too.
//
// A message type is the generated C struct. PTEROS_CPP_MESSAGE tells the header its table:
//
//   PTEROS_CPP_MESSAGE(std_msgs__msg__String)
//   pteros::Context context(argc, argv);
//   pteros::Node node(context, "talker");
//   auto publisher = node.create_publisher<std_msgs__msg__String>("chatter");
//   pteros::Message<std_msgs__msg__String> text;
//   pteros_string_assign(&text->data, "hello");
//   publisher.publish(*text);
//
// An exception must not leave a callback: the program ends then.
#ifndef PTEROS_PTEROS_HPP_
#define PTEROS_PTEROS_HPP_

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "pteros/pteros.h"

namespace pteros {

/// A failure of the library: its status and text.
class Error : public std::runtime_error {
 public:
  Error(pteros_status_t status, const char *text) : std::runtime_error(text), status_(status) {}

  /// The status; PTEROS_TIMEOUT and PTEROS_REJECTED are often expected.
  pteros_status_t status() const noexcept { return status_; }

 private:
  pteros_status_t status_;
};

using Nanoseconds = std::chrono::nanoseconds;

/// The id of a goal, which its client chose.
using GoalId = std::array<uint8_t, 16>;

namespace detail {

inline void check(int status) {
  if (status != PTEROS_OK) throw Error(pteros_status_t(status), pteros_error_message());
}

template <typename T>
T *check(T *handle) {
  if (handle == nullptr) throw Error(pteros_error_status(), pteros_error_message());
  return handle;
}

/// A handle of C with the function that frees it.
template <typename T, void (*Free)(T *)>
struct Deleter {
  void operator()(T *handle) const noexcept { Free(handle); }
};

template <typename T, void (*Free)(T *)>
using Handle = std::unique_ptr<T, Deleter<T, Free>>;

inline GoalId goal_id(const uint8_t *bytes) {
  GoalId id;
  std::copy(bytes, bytes + id.size(), id.begin());
  return id;
}

/// A function object on the heap, as user data of C.
template <typename F>
void free_function(void *user) noexcept {
  delete static_cast<F *>(user);
}

}  // namespace detail

/// The table of a message type; see PTEROS_CPP_MESSAGE.
template <typename T>
struct MessageTraits;

/// Declares a message type to this header, at global scope.
#define PTEROS_CPP_MESSAGE(T)                                              \
  template <>                                                              \
  struct pteros::MessageTraits<T> {                                        \
    static const pteros_message_type_t *type() { return &T##__type; }      \
  };

/// Declares a service and its two messages, by the name of the service, at global scope.
#define PTEROS_CPP_SERVICE(S)                                              \
  PTEROS_CPP_MESSAGE(S##_Request)                                          \
  PTEROS_CPP_MESSAGE(S##_Response)                                         \
  struct S {                                                               \
    using Request = S##_Request;                                           \
    using Response = S##_Response;                                         \
    static const pteros_service_type_t *type() { return &S##__type; }      \
  };

/// Declares an action and its three messages, by the name of the action, at global scope.
#define PTEROS_CPP_ACTION(A)                                               \
  PTEROS_CPP_MESSAGE(A##_Goal)                                             \
  PTEROS_CPP_MESSAGE(A##_Result)                                           \
  PTEROS_CPP_MESSAGE(A##_Feedback)                                         \
  struct A {                                                               \
    using Goal = A##_Goal;                                                 \
    using Result = A##_Result;                                             \
    using Feedback = A##_Feedback;                                         \
    static const pteros_action_type_t *type() { return &A##__type; }       \
  };

/// A message that owns its strings and sequences. Copies copy them.
template <typename T>
class Message {
 public:
  Message() { detail::check(pteros_message_init(type(), &value_)); }
  explicit Message(const T &other) : Message() {
    detail::check(pteros_message_copy(type(), &other, &value_));
  }
  Message(const Message &other) : Message(other.value_) {}
  Message(Message &&other) : Message() { std::swap(value_, other.value_); }
  Message &operator=(Message other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Message() { pteros_message_fini(type(), &value_); }

  T &operator*() noexcept { return value_; }
  const T &operator*() const noexcept { return value_; }
  T *operator->() noexcept { return &value_; }
  const T *operator->() const noexcept { return &value_; }

  static const pteros_message_type_t *type() { return MessageTraits<T>::type(); }

 private:
  T value_;
};

/// A participant of the ROS graph.
class Context {
 public:
  Context() : Context(0, nullptr) {}
  Context(int argc, const char *const *argv)
      : handle_(detail::check(pteros_context_new(argc, argv))) {}

  void shutdown() { detail::check(pteros_context_shutdown(get())); }
  bool is_shut_down() const { return pteros_context_is_shut_down(get()); }
  const pteros_context_t *get() const noexcept { return handle_.get(); }

 private:
  detail::Handle<pteros_context_t, pteros_context_free> handle_;
};

template <typename T>
class Publisher {
 public:
  void publish(const T &message) {
    detail::check(pteros_publisher_publish(handle_.get(), &message));
  }
  void publish(const Message<T> &message) { publish(*message); }
  size_t matched_count() const { return pteros_publisher_matched_count(handle_.get()); }
  std::string topic() const { return pteros_publisher_topic(handle_.get()); }

  /// False if the subscriptions do not come in time.
  bool wait_for_matched(size_t count, Nanoseconds timeout) {
    int status = pteros_publisher_wait_for_matched(handle_.get(), count, timeout.count());
    if (status == PTEROS_TIMEOUT) return false;
    detail::check(status);
    return true;
  }

 private:
  friend class Node;
  explicit Publisher(pteros_publisher_t *handle) : handle_(detail::check(handle)) {}
  detail::Handle<pteros_publisher_t, pteros_publisher_free> handle_;
};

class Subscription {
 public:
  size_t matched_count() const { return pteros_subscription_matched_count(handle_.get()); }
  std::string topic() const { return pteros_subscription_topic(handle_.get()); }

 private:
  friend class Node;
  explicit Subscription(pteros_subscription_t *handle) : handle_(detail::check(handle)) {}
  detail::Handle<pteros_subscription_t, pteros_subscription_free> handle_;
};

class Timer {
 public:
  void cancel() { detail::check(pteros_timer_cancel(handle_.get())); }
  void reset() { detail::check(pteros_timer_reset(handle_.get())); }

 private:
  friend class Node;
  explicit Timer(pteros_timer_t *handle) : handle_(detail::check(handle)) {}
  detail::Handle<pteros_timer_t, pteros_timer_free> handle_;
};

class Service {
 public:
  std::string name() const { return pteros_service_name(handle_.get()); }

 private:
  friend class Node;
  explicit Service(pteros_service_t *handle) : handle_(detail::check(handle)) {}
  detail::Handle<pteros_service_t, pteros_service_free> handle_;
};

template <typename S>
class Client {
 public:
  using Request = typename S::Request;
  using Response = typename S::Response;

  bool wait_for_service(Nanoseconds timeout) {
    int status = pteros_client_wait_for_service(handle_.get(), timeout.count());
    if (status == PTEROS_TIMEOUT) return false;
    detail::check(status);
    return true;
  }

  /// Blocks; needs no executor.
  Message<Response> call(const Request &request, Nanoseconds timeout) {
    Message<Response> response;
    detail::check(pteros_client_call(handle_.get(), &request, &*response, timeout.count()));
    return response;
  }

  /// Calls `done(const Response *, const char *error)` in the executor; the response is null
  /// after a failure.
  template <typename F>
  void call_async(const Request &request, F done) {
    auto answered = [](pteros_status_t, const char *error, const void *response,
                       void *user) noexcept {
      (*static_cast<F *>(user))(static_cast<const Response *>(response), error);
    };
    auto function = std::make_unique<F>(std::move(done));
    detail::check(pteros_client_call_async(handle_.get(), &request, answered,
                                           function.release(), detail::free_function<F>));
  }

 private:
  friend class Node;
  explicit Client(pteros_client_t *handle) : handle_(detail::check(handle)) {}
  detail::Handle<pteros_client_t, pteros_client_free> handle_;
};

/// What a server does with a requested goal.
enum class GoalResponse {
  Reject = PTEROS_GOAL_REJECT,
  Accept = PTEROS_GOAL_ACCEPT,
  AcceptAndDefer = PTEROS_GOAL_ACCEPT_AND_DEFER
};

/// A goal that a server has accepted, for any thread. One that ends without a result is
/// aborted.
template <typename A>
class ServerGoal {
 public:
  /// Valid while this value is.
  const typename A::Goal &goal() const {
    return *static_cast<const typename A::Goal *>(
        detail::check(pteros_goal_message(handle_.get())));
  }
  GoalId id() const {
    uint8_t id[16];
    detail::check(pteros_goal_id(handle_.get(), &id));
    return detail::goal_id(id);
  }
  /// One of PTEROS_GOAL_STATUS_...
  int status() const { return pteros_goal_status(handle_.get()); }
  bool is_canceling() const { return pteros_goal_is_canceling(handle_.get()); }

  /// Starts a deferred goal.
  void execute() { detail::check(pteros_goal_execute(handle_.get())); }
  void publish_feedback(const typename A::Feedback &feedback) {
    detail::check(pteros_goal_publish_feedback(handle_.get(), &feedback));
  }
  void succeed(const typename A::Result &result) {
    detail::check(pteros_goal_succeed(handle_.get(), &result));
  }
  void abort(const typename A::Result &result) {
    detail::check(pteros_goal_abort(handle_.get(), &result));
  }
  void canceled(const typename A::Result &result) {
    detail::check(pteros_goal_canceled(handle_.get(), &result));
  }

 private:
  friend class Node;
  explicit ServerGoal(pteros_goal_t *handle) : handle_(handle) {}
  detail::Handle<pteros_goal_t, pteros_goal_free> handle_;
};

class ActionServer {
  friend class Node;
  explicit ActionServer(pteros_action_server_t *handle) : handle_(detail::check(handle)) {}
  detail::Handle<pteros_action_server_t, pteros_action_server_free> handle_;
};

/// A goal that a server accepted. The server goes on with it when this value ends.
template <typename A>
class ClientGoal {
 public:
  /// How a goal ended.
  struct Outcome {
    /// One of PTEROS_GOAL_STATUS_...
    int status;
    Message<typename A::Result> result;
  };

  GoalId id() const {
    uint8_t id[16];
    detail::check(pteros_client_goal_id(handle_.get(), &id));
    return detail::goal_id(id);
  }
  /// The last status that was received, one of PTEROS_GOAL_STATUS_...
  int status() const { return pteros_client_goal_status(handle_.get()); }

  /// Waits for the end; needs no executor. May be called again after PTEROS_TIMEOUT.
  Outcome result(Nanoseconds timeout) {
    int8_t status = 0;
    Message<typename A::Result> result;
    detail::check(
        pteros_client_goal_result(handle_.get(), timeout.count(), &status, &*result));
    return {status, std::move(result)};
  }

  /// Asks the server to cancel it. False if the server refuses.
  bool cancel(Nanoseconds timeout) {
    int status = pteros_client_goal_cancel(handle_.get(), timeout.count());
    if (status == PTEROS_REJECTED) return false;
    detail::check(status);
    return true;
  }

 private:
  template <typename>
  friend class ActionClient;
  explicit ClientGoal(pteros_client_goal_t *handle) : handle_(detail::check(handle)) {}
  detail::Handle<pteros_client_goal_t, pteros_client_goal_free> handle_;
};

template <typename A>
class ActionClient {
 public:
  bool wait_for_server(Nanoseconds timeout) {
    int status = pteros_action_client_wait_for_server(handle_.get(), timeout.count());
    if (status == PTEROS_TIMEOUT) return false;
    detail::check(status);
    return true;
  }

  /// Waits until a server accepts the goal. Throws with PTEROS_REJECTED if it refuses.
  ClientGoal<A> send_goal(const typename A::Goal &goal, Nanoseconds timeout) {
    return ClientGoal<A>(pteros_action_client_send_goal(handle_.get(), &goal, timeout.count(),
                                                        nullptr, nullptr, nullptr));
  }

  /// As above; the executor calls `on_feedback(const Feedback &)` while the goal's value
  /// lives.
  template <typename F>
  ClientGoal<A> send_goal(const typename A::Goal &goal, Nanoseconds timeout, F on_feedback) {
    auto call = [](const void *feedback, void *user) noexcept {
      (*static_cast<F *>(user))(*static_cast<const typename A::Feedback *>(feedback));
    };
    auto function = std::make_unique<F>(std::move(on_feedback));
    return ClientGoal<A>(
        pteros_action_client_send_goal(handle_.get(), &goal, timeout.count(), call,
                                       function.release(), detail::free_function<F>));
  }

 private:
  friend class Node;
  explicit ActionClient(pteros_action_client_t *handle) : handle_(detail::check(handle)) {}
  detail::Handle<pteros_action_client_t, pteros_action_client_free> handle_;
};

/// A node. Its functions throw Error.
class Node {
 public:
  Node(const Context &context, const std::string &name, const std::string &node_namespace = "/")
      : handle_(detail::check(
            pteros_node_new(context.get(), name.c_str(), node_namespace.c_str()))) {}

  std::string name() const { return pteros_node_fully_qualified_name(get()); }
  Nanoseconds now() const { return Nanoseconds(pteros_node_now(get())); }
  void log(int severity, const std::string &text) { pteros_log(get(), severity, text.c_str()); }

  template <typename T>
  Publisher<T> create_publisher(const std::string &topic, const pteros_qos_t *qos = nullptr) {
    return Publisher<T>(
        pteros_publisher_new(get(), MessageTraits<T>::type(), topic.c_str(), qos));
  }

  /// `callback(const T &)`, or with the message info as second argument.
  template <typename T, typename F>
  Subscription create_subscription(const std::string &topic, F callback,
                                   const pteros_qos_t *qos = nullptr) {
    auto call = [](const void *message, const pteros_message_info_t *info,
                   void *user) noexcept {
      auto &function = *static_cast<F *>(user);
      const T &value = *static_cast<const T *>(message);
      if constexpr (std::is_invocable_v<F &, const T &, const pteros_message_info_t &>) {
        function(value, *info);
      } else {
        (void)info;
        function(value);
      }
    };
    auto function = std::make_unique<F>(std::move(callback));
    return Subscription(pteros_subscription_new(get(), MessageTraits<T>::type(), topic.c_str(),
                                                qos, call, function.release(),
                                                detail::free_function<F>));
  }

  template <typename F>
  Timer create_timer(Nanoseconds period, F callback, bool on_ros_time = false) {
    auto call = [](void *user) noexcept { (*static_cast<F *>(user))(); };
    auto function = std::make_unique<F>(std::move(callback));
    return Timer(pteros_timer_new(get(), period.count(), on_ros_time, call, function.release(),
                                  detail::free_function<F>));
  }

  /// `callback(const Request &, Response &)`.
  template <typename S, typename F>
  Service create_service(const std::string &name, F callback) {
    auto call = [](const void *request, void *response, void *user) noexcept {
      (*static_cast<F *>(user))(*static_cast<const typename S::Request *>(request),
                                *static_cast<typename S::Response *>(response));
    };
    auto function = std::make_unique<F>(std::move(callback));
    return Service(pteros_service_new(get(), S::type(), name.c_str(), nullptr, call,
                                      function.release(), detail::free_function<F>));
  }

  template <typename S>
  Client<S> create_client(const std::string &name) {
    return Client<S>(pteros_client_new(get(), S::type(), name.c_str(), nullptr));
  }

  /// Calls `on_accepted(ServerGoal<A>)` for each goal; leave long work to a timer or a
  /// thread. All goals and cancel requests are accepted.
  template <typename A, typename F>
  ActionServer create_action_server(const std::string &name, F on_accepted) {
    return create_action_server<A>(
        name, [](const typename A::Goal &) { return GoalResponse::Accept; },
        [](const GoalId &) { return true; }, std::move(on_accepted));
  }

  /// As above. `on_goal(const Goal &)` returns a GoalResponse, `on_cancel(const GoalId &)`
  /// whether the goal is to be cancelled.
  template <typename A, typename OnGoal, typename OnCancel, typename OnAccepted>
  ActionServer create_action_server(const std::string &name, OnGoal on_goal,
                                    OnCancel on_cancel, OnAccepted on_accepted) {
    struct Functions {
      OnGoal on_goal;
      OnCancel on_cancel;
      OnAccepted on_accepted;
    };
    auto decide = [](const void *goal, void *user) noexcept {
      auto &functions = *static_cast<Functions *>(user);
      return static_cast<int>(functions.on_goal(*static_cast<const typename A::Goal *>(goal)));
    };
    auto cancel = [](const uint8_t *goal_id, void *user) noexcept -> bool {
      return static_cast<Functions *>(user)->on_cancel(detail::goal_id(goal_id));
    };
    auto accept = [](pteros_goal_t *goal, void *user) noexcept {
      static_cast<Functions *>(user)->on_accepted(ServerGoal<A>(goal));
    };
    std::unique_ptr<Functions> functions(
        new Functions{std::move(on_goal), std::move(on_cancel), std::move(on_accepted)});
    return ActionServer(pteros_action_server_new(get(), A::type(), name.c_str(), decide, cancel,
                                                 accept, functions.release(),
                                                 detail::free_function<Functions>));
  }

  template <typename A>
  ActionClient<A> create_action_client(const std::string &name) {
    return ActionClient<A>(pteros_action_client_new(get(), A::type(), name.c_str()));
  }

  /// Declares a parameter of the value's type: bool, any integer, any float or a string.
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  void declare_parameter(const std::string &name, T value) {
    pteros_parameter_value_t c{};
    if constexpr (std::is_same_v<T, bool>) {
      c.value_type = PTEROS_PARAMETER_BOOL;
      c.bool_value = value;
    } else if constexpr (std::is_integral_v<T>) {
      c.value_type = PTEROS_PARAMETER_INTEGER;
      c.integer_value = static_cast<int64_t>(value);
    } else {
      c.value_type = PTEROS_PARAMETER_DOUBLE;
      c.double_value = static_cast<double>(value);
    }
    declare(name, c);
  }
  void declare_parameter(const std::string &name, const std::string &value) {
    declare_parameter(name, value.c_str());
  }
  void declare_parameter(const std::string &name, const char *value) {
    pteros_parameter_value_t c{};
    c.value_type = PTEROS_PARAMETER_STRING;
    c.string_value = value;
    declare(name, c);
  }

  /// The value of a parameter: bool, int64_t, double or std::string.
  template <typename T>
  T parameter(const std::string &name) const {
    if constexpr (std::is_same_v<T, std::string>) {
      rosidl_runtime_c__String text{};
      int status = pteros_node_get_string(get(), name.c_str(), &text);
      std::unique_ptr<char, decltype(&free)> memory(text.data, free);
      detail::check(status);
      return std::string(text.data, text.size);
    } else {
      T value{};
      if constexpr (std::is_same_v<T, bool>) {
        detail::check(pteros_node_get_bool(get(), name.c_str(), &value));
      } else if constexpr (std::is_same_v<T, double>) {
        detail::check(pteros_node_get_double(get(), name.c_str(), &value));
      } else {
        static_assert(std::is_same_v<T, int64_t>, "bool, int64_t, double or std::string");
        detail::check(pteros_node_get_integer(get(), name.c_str(), &value));
      }
      return value;
    }
  }

  const pteros_node_t *get() const noexcept { return handle_.get(); }

 private:
  void declare(const std::string &name, const pteros_parameter_value_t &value) {
    detail::check(pteros_node_declare_parameter(get(), name.c_str(), &value));
  }

  detail::Handle<pteros_node_t, pteros_node_free> handle_;
};

/// Receives messages and runs callbacks on the thread that spins.
class Executor {
 public:
  explicit Executor(const Context &context)
      : handle_(detail::check(pteros_executor_new(context.get()))) {}

  void add_node(const Node &node) {
    detail::check(pteros_executor_add_node(handle_.get(), node.get()));
  }
  void spin() { detail::check(pteros_executor_spin(handle_.get())); }
  void spin_for(Nanoseconds span) {
    detail::check(pteros_executor_spin_for(handle_.get(), span.count()));
  }
  bool spin_once(Nanoseconds timeout) {
    bool ran = false;
    detail::check(pteros_executor_spin_once(handle_.get(), timeout.count(), &ran));
    return ran;
  }
  size_t spin_some() {
    size_t ran = 0;
    detail::check(pteros_executor_spin_some(handle_.get(), &ran));
    return ran;
  }
  void cancel() { detail::check(pteros_executor_cancel(handle_.get())); }

  /// The descriptor for another event loop; see pteros_executor_fd.
  int fd() {
    int fd = -1;
    detail::check(pteros_executor_fd(handle_.get(), &fd));
    return fd;
  }

 private:
  detail::Handle<pteros_executor_t, pteros_executor_free> handle_;
};

}  // namespace pteros

#endif  // PTEROS_PTEROS_HPP_
