/*
 * libpteros: ROS 2 nodes in C.
 *
 * Handles. A `_new` function returns a handle, or NULL after a failure. Its `_free`
 * function ends it; NULL is ignored. A handle keeps what it was made from alive, so
 * handles may be freed in any order. A handle must not be used after its `_free`, nor
 * freed while another thread uses it, nor inside a call on it. The callback of an entity,
 * which its executor calls, may free the entity and the executor.
 *
 * Errors. Other functions return a status. After a failure pteros_error_message() returns
 * the text for this thread: it names the thing, the value and the way out. A function that
 * gets NULL for a handle fails; its text also names the failure before it. No function
 * ends the process, and no panic or exception leaves the library.
 *
 * Threads. All functions may be called from any thread. One thread at a time spins an
 * executor. Callbacks run on the thread that spins, one at a time per executor.
 *
 * Blocking. No function blocks for longer than publishing may (100 ms when a socket is
 * full), except those with a timeout, those that spin, and pteros_context_new, which
 * resolves the names of static peers. A negative timeout is endless.
 *
 * User data. A callback gets the pointer `user`. The library calls `free_user` (may be
 * NULL) when it needs it no longer: after the last callback, or when creation failed.
 * A C++ exception must not leave a callback.
 *
 * Memory. Strings that functions return belong to their handle. Messages belong to the
 * program; functions copy what they keep. Functions of the graph call a visitor instead
 * of returning lists.
 */
#ifndef PTEROS_PTEROS_H_
#define PTEROS_PTEROS_H_

#include "pteros/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- errors --- */

typedef enum pteros_status {
  PTEROS_OK = 0,
  PTEROS_ERROR = 1,
  PTEROS_INVALID_ARGUMENT = 2,
  PTEROS_TIMEOUT = 3,
  PTEROS_SHUT_DOWN = 4,
  PTEROS_NO_MEMORY = 5,
  PTEROS_UNSUPPORTED = 6,
  PTEROS_REJECTED = 7
} pteros_status_t;

/* Text of this thread's last failure, "" before one. Valid until its next failure. */
PTEROS_API const char *pteros_error_message(void);

/* Status of this thread's last failure, for functions that return a handle. */
PTEROS_API pteros_status_t pteros_error_status(void);

/* Version of the library, "0.1.0". */
PTEROS_API const char *pteros_version(void);

/* --- callbacks --- */

/* Called with the user data of its entity. */
typedef void (*pteros_callback_t)(void *user);

/* Frees user data. Called once, on any thread. */
typedef void (*pteros_free_user_t)(void *user);

/* --- context: a participant of the ROS graph; usually one per process --- */

typedef struct pteros_context pteros_context_t;

/*
 * Opens a context from the environment (ROS_DOMAIN_ID ...) and the words behind --ros-args
 * of the command line; argc 0 for none. Installs handlers of SIGINT and SIGTERM that shut
 * it down. Blocks while the names of static peers are resolved.
 */
PTEROS_API pteros_context_t *pteros_context_new(int argc, const char *const *argv);

/* Ends the program's hold. The context ends with the last of its nodes and entities. */
PTEROS_API void pteros_context_free(pteros_context_t *context);

/* Shuts it down: spinning ends, and nothing new can be created. Publishing still works. */
PTEROS_API pteros_status_t pteros_context_shutdown(const pteros_context_t *context);

/* Whether it is shut down, by the call above or a signal. */
PTEROS_API bool pteros_context_is_shut_down(const pteros_context_t *context);

/* The DDS domain. */
PTEROS_API uint32_t pteros_context_domain_id(const pteros_context_t *context);

/* --- node --- */

typedef struct pteros_node pteros_node_t;

/* Creates a node. `node_namespace` may be NULL: the root. Both can be remapped. */
PTEROS_API pteros_node_t *pteros_node_new(const pteros_context_t *context, const char *name,
                                          const char *node_namespace);

/*
 * Ends the program's hold. The node leaves the graph with the last of its entities, and
 * after it has left its executor: see pteros_executor_remove_node.
 */
PTEROS_API void pteros_node_free(pteros_node_t *node);

/* After remapping; "/ns", "/ns/name". Valid while the handle is. */
PTEROS_API const char *pteros_node_name(const pteros_node_t *node);
PTEROS_API const char *pteros_node_namespace(const pteros_node_t *node);
PTEROS_API const char *pteros_node_fully_qualified_name(const pteros_node_t *node);

/* ROS time in nanoseconds: that of /clock if the parameter use_sim_time is true. */
PTEROS_API int64_t pteros_node_now(const pteros_node_t *node);

/* --- QoS --- */

enum { PTEROS_HISTORY_KEEP_LAST = 0, PTEROS_HISTORY_KEEP_ALL = 1 };
enum { PTEROS_RELIABILITY_RELIABLE = 0, PTEROS_RELIABILITY_BEST_EFFORT = 1 };
enum {
  PTEROS_DURABILITY_VOLATILE = 0,
  PTEROS_DURABILITY_TRANSIENT_LOCAL = 1,
  PTEROS_DURABILITY_TRANSIENT = 2,
  PTEROS_DURABILITY_PERSISTENT = 3
};
enum { PTEROS_LIVELINESS_AUTOMATIC = 0, PTEROS_LIVELINESS_MANUAL_BY_TOPIC = 1 };

/* A QoS profile. Where a function takes a pointer, NULL is the default profile. */
typedef struct pteros_qos {
  uint32_t history;
  uint32_t depth;
  uint32_t reliability;
  uint32_t durability;
  uint32_t liveliness;
  int64_t deadline_ns; /* 0 without, as the two below; not negative */
  int64_t lifespan_ns;
  int64_t liveliness_lease_ns;
} pteros_qos_t;

/* Keep last 10, reliable, volatile. */
#define PTEROS_QOS_DEFAULT \
  { PTEROS_HISTORY_KEEP_LAST, 10, PTEROS_RELIABILITY_RELIABLE, PTEROS_DURABILITY_VOLATILE, \
    PTEROS_LIVELINESS_AUTOMATIC, 0, 0, 0 }

/* Keep last 5, best effort, volatile. */
#define PTEROS_QOS_SENSOR_DATA \
  { PTEROS_HISTORY_KEEP_LAST, 5, PTEROS_RELIABILITY_BEST_EFFORT, PTEROS_DURABILITY_VOLATILE, \
    PTEROS_LIVELINESS_AUTOMATIC, 0, 0, 0 }

/* --- publisher --- */

typedef struct pteros_publisher pteros_publisher_t;

/* Creates a publisher. The topic is expanded and remapped. */
PTEROS_API pteros_publisher_t *pteros_publisher_new(const pteros_node_t *node,
                                                    const pteros_message_type_t *type,
                                                    const char *topic, const pteros_qos_t *qos);

/* Ends it and its loans. */
PTEROS_API void pteros_publisher_free(pteros_publisher_t *publisher);

/*
 * Publishes a copy of an initialized message. Subscriptions of this context get a copy of
 * the struct, all others CDR, which is written once.
 */
PTEROS_API pteros_status_t pteros_publisher_publish(const pteros_publisher_t *publisher,
                                                    const void *message);

/* Publishes CDR with its header of 4 bytes. The bytes are copied. */
PTEROS_API pteros_status_t pteros_publisher_publish_serialized(
    const pteros_publisher_t *publisher, const uint8_t *data, size_t size);

/*
 * Lends a message of fixed size, with default values, to be written in place: zero-copy.
 * It lies in shared memory if subscriptions of other processes read it there. A publisher
 * lends 256 at most. Loans end with the publisher. PTEROS_UNSUPPORTED for a type with
 * strings or sequences.
 */
PTEROS_API pteros_status_t pteros_publisher_borrow(const pteros_publisher_t *publisher,
                                                   void **message);

/* Publishes a borrowed message without a copy. The loan ends, also after a failure. */
PTEROS_API pteros_status_t pteros_publisher_publish_borrowed(const pteros_publisher_t *publisher,
                                                             void *message);

/* Ends a loan without publishing it. */
PTEROS_API pteros_status_t pteros_publisher_return(const pteros_publisher_t *publisher,
                                                   void *message);

/* The full name after remapping. */
PTEROS_API const char *pteros_publisher_topic(const pteros_publisher_t *publisher);

/* Matched subscriptions, those of this process included. */
PTEROS_API size_t pteros_publisher_matched_count(const pteros_publisher_t *publisher);

/* Waits for so many matched subscriptions. PTEROS_TIMEOUT if they do not come. */
PTEROS_API pteros_status_t pteros_publisher_wait_for_matched(const pteros_publisher_t *publisher,
                                                             size_t count, int64_t timeout_ns);

/* Waits until reliable subscriptions have acknowledged all messages. */
PTEROS_API pteros_status_t pteros_publisher_wait_for_all_acked(
    const pteros_publisher_t *publisher, int64_t timeout_ns);

/* --- subscription --- */

typedef struct pteros_subscription pteros_subscription_t;

/* Origin of a message. Times are nanoseconds since 1970. */
typedef struct pteros_message_info {
  int64_t source_timestamp; /* 0 if the publisher sent none */
  int64_t received_timestamp;
  int64_t sequence_number;
  uint8_t publisher_gid[16];
} pteros_message_info_t;

/*
 * Called for each message. `message` is a struct of the subscription's type. It may be
 * shared with others, so it must not be changed, and it is valid during the call.
 */
typedef void (*pteros_message_callback_t)(const void *message, const pteros_message_info_t *info,
                                          void *user);

/*
 * Creates a subscription. With a callback its messages come through the node's executor.
 * With NULL they wait for pteros_subscription_take.
 */
PTEROS_API pteros_subscription_t *pteros_subscription_new(
    const pteros_node_t *node, const pteros_message_type_t *type, const char *topic,
    const pteros_qos_t *qos, pteros_message_callback_t callback, void *user,
    pteros_free_user_t free_user);

/* A condition on the fields of a message, in the language of DDS: "data > %0". */
typedef struct pteros_content_filter {
  const char *expression;
  const char *const *parameters; /* texts of %0, %1 ... */
  size_t parameter_count;
} pteros_content_filter_t;

/*
 * As pteros_subscription_new, of the messages that satisfy the filter, which is copied.
 * Publishers do not send the others. PTEROS_INVALID_ARGUMENT, with the position, if the
 * expression is wrong or names no field of the type.
 */
PTEROS_API pteros_subscription_t *pteros_subscription_new_filtered(
    const pteros_node_t *node, const pteros_message_type_t *type, const char *topic,
    const pteros_qos_t *qos, const pteros_content_filter_t *filter,
    pteros_message_callback_t callback, void *user, pteros_free_user_t free_user);

/*
 * Ends it and its loans. A callback that runs in another thread ends first or later; its
 * user data lives until then.
 */
PTEROS_API void pteros_subscription_free(pteros_subscription_t *subscription);

/*
 * Takes the oldest message into an initialized one, whose memory is reused. `taken` says
 * whether there was one. `info` may be NULL. Does not block and reads no socket: an
 * executor, or the library's background thread, receives.
 */
PTEROS_API pteros_status_t pteros_subscription_take(const pteros_subscription_t *subscription,
                                                    void *message, pteros_message_info_t *info,
                                                    bool *taken);

/*
 * Takes the oldest message without a copy, to be read until pteros_subscription_return or
 * the end of the subscription. `message` becomes NULL if there is none. A message of fixed
 * size lies where it was received, in shared memory or in the cache. One with strings or
 * sequences is read into a struct once. It must not be written: it may be shared with
 * others. It keeps memory of its publisher, so 256 at most are lent. Does not block.
 */
PTEROS_API pteros_status_t pteros_subscription_borrow(const pteros_subscription_t *subscription,
                                                      const void **message,
                                                      pteros_message_info_t *info);

/* Ends the loan of a borrowed message. PTEROS_INVALID_ARGUMENT for any other address. */
PTEROS_API pteros_status_t pteros_subscription_return(const pteros_subscription_t *subscription,
                                                      const void *message);

/*
 * Replaces the content filter; NULL ends it. Messages that wait stay. Does not block. After a
 * failure the filter before stays; see pteros_subscription_new_filtered.
 */
PTEROS_API pteros_status_t pteros_subscription_set_content_filter(
    const pteros_subscription_t *subscription, const pteros_content_filter_t *filter);

/* Whether a content filter is set. */
PTEROS_API bool pteros_subscription_is_cft_enabled(const pteros_subscription_t *subscription);

/* The full name after remapping. */
PTEROS_API const char *pteros_subscription_topic(const pteros_subscription_t *subscription);

/* Matched publishers, those of this process included. */
PTEROS_API size_t pteros_subscription_matched_count(const pteros_subscription_t *subscription);

/* --- timer --- */

typedef struct pteros_timer pteros_timer_t;

/*
 * Creates a timer whose callback the node's executor runs. The first tick is one period
 * from now. With `on_ros_time` it follows /clock while use_sim_time is true. Ticks that a
 * busy executor misses are skipped.
 */
PTEROS_API pteros_timer_t *pteros_timer_new(const pteros_node_t *node, int64_t period_ns,
                                            bool on_ros_time, pteros_callback_t callback,
                                            void *user, pteros_free_user_t free_user);

/* Ends it. A callback that runs in another thread ends first or later. */
PTEROS_API void pteros_timer_free(pteros_timer_t *timer);

/* Stops it until pteros_timer_reset, which restarts the period from now. */
PTEROS_API pteros_status_t pteros_timer_cancel(const pteros_timer_t *timer);
PTEROS_API pteros_status_t pteros_timer_reset(const pteros_timer_t *timer);

/* Changes the period. The next tick is one new period from now. */
PTEROS_API pteros_status_t pteros_timer_set_period(const pteros_timer_t *timer,
                                                   int64_t period_ns);

/* --- service --- */

typedef struct pteros_service pteros_service_t;

/* A request that waits for its response. The program frees or answers it. */
typedef struct pteros_request pteros_request_t;

/* Answers a request at once: fills `response`, which has the type's default values. */
typedef void (*pteros_service_callback_t)(const void *request, void *response, void *user);

/* Gets a request to answer now or later, from any thread. */
typedef void (*pteros_request_callback_t)(pteros_request_t *request, void *user);

/* Creates a service. The node's executor runs the callback. `qos` is usually NULL. */
PTEROS_API pteros_service_t *pteros_service_new(const pteros_node_t *node,
                                                const pteros_service_type_t *type,
                                                const char *name, const pteros_qos_t *qos,
                                                pteros_service_callback_t callback, void *user,
                                                pteros_free_user_t free_user);

/* As above, with requests that are answered later. */
PTEROS_API pteros_service_t *pteros_service_new_deferred(
    const pteros_node_t *node, const pteros_service_type_t *type, const char *name,
    const pteros_qos_t *qos, pteros_request_callback_t callback, void *user,
    pteros_free_user_t free_user);

/* Ends it. Requests that wait can still be answered or freed. */
PTEROS_API void pteros_service_free(pteros_service_t *service);

/* The full name after remapping. */
PTEROS_API const char *pteros_service_name(const pteros_service_t *service);

/* Clients that are matched in both directions. */
PTEROS_API size_t pteros_service_client_count(const pteros_service_t *service);

/* The request, valid while the handle is. */
PTEROS_API const void *pteros_request_message(const pteros_request_t *request);

/* Sends a copy of the response and frees the request, also after a failure. */
PTEROS_API pteros_status_t pteros_request_respond(pteros_request_t *request,
                                                  const void *response);

/* Frees a request without a response: its client waits in vain. */
PTEROS_API void pteros_request_free(pteros_request_t *request);

/* --- client --- */

typedef struct pteros_client pteros_client_t;

/*
 * Called once: with PTEROS_OK and the response, or with a status, a text and NULL.
 * `response` and `error` are valid during the call.
 */
typedef void (*pteros_response_callback_t)(pteros_status_t status, const char *error,
                                           const void *response, void *user);

/* Creates a client. The name is expanded and remapped. `qos` is usually NULL. */
PTEROS_API pteros_client_t *pteros_client_new(const pteros_node_t *node,
                                              const pteros_service_type_t *type,
                                              const char *name, const pteros_qos_t *qos);

/* Ends it. Calls without a response are given up without their callback. */
PTEROS_API void pteros_client_free(pteros_client_t *client);

/* The full name after remapping. */
PTEROS_API const char *pteros_client_service_name(const pteros_client_t *client);

/* Whether a server is there. */
PTEROS_API bool pteros_client_service_is_ready(const pteros_client_t *client);

/* Waits for a server. Drives the network itself and runs no callbacks. */
PTEROS_API pteros_status_t pteros_client_wait_for_service(const pteros_client_t *client,
                                                          int64_t timeout_ns);

/*
 * Sends a request and waits for the response, and first for a server. Needs no executor.
 * In a callback of the executor that also runs the server it times out. `response` is an
 * initialized message.
 */
PTEROS_API pteros_status_t pteros_client_call(const pteros_client_t *client, const void *request,
                                              void *response, int64_t timeout_ns);

/*
 * Sends a request; the node's executor calls `callback`. After a failure the callback is
 * not called, and `free_user` is.
 */
PTEROS_API pteros_status_t pteros_client_call_async(const pteros_client_t *client,
                                                    const void *request,
                                                    pteros_response_callback_t callback,
                                                    void *user, pteros_free_user_t free_user);

/* --- parameters --- */

enum {
  PTEROS_PARAMETER_NOT_SET = 0,
  PTEROS_PARAMETER_BOOL = 1,
  PTEROS_PARAMETER_INTEGER = 2,
  PTEROS_PARAMETER_DOUBLE = 3,
  PTEROS_PARAMETER_STRING = 4,
  PTEROS_PARAMETER_BYTE_ARRAY = 5,
  PTEROS_PARAMETER_BOOL_ARRAY = 6,
  PTEROS_PARAMETER_INTEGER_ARRAY = 7,
  PTEROS_PARAMETER_DOUBLE_ARRAY = 8,
  PTEROS_PARAMETER_STRING_ARRAY = 9
};

/*
 * A value. Only the field of its type counts. The elements of an array are uint8_t, bool,
 * int64_t, double or const char *. A function reads the memory during the call.
 */
typedef struct pteros_parameter_value {
  int value_type;
  bool bool_value;
  int64_t integer_value;
  double double_value;
  const char *string_value;
  const void *array_value;
  size_t array_size;
} pteros_parameter_value_t;

/*
 * Declares a parameter of the value's type. Overrides of the command line and its files
 * replace the default. A value of PTEROS_PARAMETER_NOT_SET declares one of any type.
 */
PTEROS_API pteros_status_t pteros_node_declare_parameter(const pteros_node_t *node,
                                                         const char *name,
                                                         const pteros_parameter_value_t *value);

/* Sets a declared parameter. PTEROS_REJECTED with the reason if it is refused. */
PTEROS_API pteros_status_t pteros_node_set_parameter(const pteros_node_t *node, const char *name,
                                                     const pteros_parameter_value_t *value);
PTEROS_API bool pteros_node_has_parameter(const pteros_node_t *node, const char *name);

/* Reads a declared parameter of that type. `value` of a string is an initialized string. */
PTEROS_API pteros_status_t pteros_node_get_bool(const pteros_node_t *node, const char *name,
                                                bool *value);
PTEROS_API pteros_status_t pteros_node_get_integer(const pteros_node_t *node, const char *name,
                                                   int64_t *value);
PTEROS_API pteros_status_t pteros_node_get_double(const pteros_node_t *node, const char *name,
                                                  double *value);
PTEROS_API pteros_status_t pteros_node_get_string(const pteros_node_t *node, const char *name,
                                                  rosidl_runtime_c__String *value);

/* Called with a parameter. Both pointers are valid during the call. */
typedef void (*pteros_parameter_visitor_t)(const char *name,
                                           const pteros_parameter_value_t *value, void *user);

/* Visits the parameters that equal `prefix` or begin with it and a dot; NULL: all. */
PTEROS_API pteros_status_t pteros_node_visit_parameters(const pteros_node_t *node,
                                                        const char *prefix,
                                                        pteros_parameter_visitor_t visitor,
                                                        void *user);

/*
 * Checks a value before it is set or declared, by anyone. Returns NULL to accept it, or the
 * reason for a refusal, which must stay valid until the next call. It must not set or
 * declare parameters itself.
 */
typedef const char *(*pteros_set_parameter_callback_t)(const char *name,
                                                       const pteros_parameter_value_t *value,
                                                       void *user);

typedef struct pteros_parameter_callback pteros_parameter_callback_t;

/* Registers a check. It is called on the thread that sets. */
PTEROS_API pteros_parameter_callback_t *pteros_parameter_callback_new(
    const pteros_node_t *node, pteros_set_parameter_callback_t callback, void *user,
    pteros_free_user_t free_user);

/* Ends the check. */
PTEROS_API void pteros_parameter_callback_free(pteros_parameter_callback_t *callback);

/* --- graph --- */

/* Called with a name, and a namespace or a type. Both are valid during the call. */
typedef void (*pteros_pair_visitor_t)(const char *name, const char *other, void *user);

/* Visits the nodes that are known: name and namespace. */
PTEROS_API pteros_status_t pteros_graph_visit_nodes(const pteros_context_t *context,
                                                    pteros_pair_visitor_t visitor, void *user);

/* Visits topics and services: full name and type, once per type. */
PTEROS_API pteros_status_t pteros_graph_visit_topics(const pteros_context_t *context,
                                                     pteros_pair_visitor_t visitor, void *user);
PTEROS_API pteros_status_t pteros_graph_visit_services(const pteros_context_t *context,
                                                       pteros_pair_visitor_t visitor, void *user);

/* Publishers and subscriptions of a topic, which is expanded and not remapped. */
PTEROS_API size_t pteros_node_count_publishers(const pteros_node_t *node, const char *topic);
PTEROS_API size_t pteros_node_count_subscriptions(const pteros_node_t *node, const char *topic);

/* --- logging: console, log file and /rosout --- */

enum {
  PTEROS_LOG_DEBUG = 10,
  PTEROS_LOG_INFO = 20,
  PTEROS_LOG_WARN = 30,
  PTEROS_LOG_ERROR = 40,
  PTEROS_LOG_FATAL = 50
};

/* Logs a text with the node's logger, if its level allows. */
PTEROS_API pteros_status_t pteros_log(const pteros_node_t *node, int severity,
                                      const char *message);

/* Whether the node's logger logs that severity. */
PTEROS_API bool pteros_log_is_enabled(const pteros_node_t *node, int severity);

/* Sets the level of the node's logger. */
PTEROS_API pteros_status_t pteros_log_set_level(const pteros_node_t *node, int severity);

/* --- action server --- */

typedef struct pteros_action_server pteros_action_server_t;

/* A goal that the server has accepted. Usable from any thread; the program frees it. */
typedef struct pteros_goal pteros_goal_t;

enum { PTEROS_GOAL_REJECT = 0, PTEROS_GOAL_ACCEPT = 1, PTEROS_GOAL_ACCEPT_AND_DEFER = 2 };

/* Numbers of action_msgs/msg/GoalStatus. */
enum {
  PTEROS_GOAL_STATUS_UNKNOWN = 0,
  PTEROS_GOAL_STATUS_ACCEPTED = 1,
  PTEROS_GOAL_STATUS_EXECUTING = 2,
  PTEROS_GOAL_STATUS_CANCELING = 3,
  PTEROS_GOAL_STATUS_SUCCEEDED = 4,
  PTEROS_GOAL_STATUS_CANCELED = 5,
  PTEROS_GOAL_STATUS_ABORTED = 6
};

/* Decides on a requested goal: one of PTEROS_GOAL_... */
typedef int (*pteros_goal_callback_t)(const void *goal, void *user);

/* Decides on a cancel request. The goal id has 16 bytes. */
typedef bool (*pteros_cancel_callback_t)(const uint8_t *goal_id, void *user);

/* Gets an accepted goal. Leave long work to a timer or a thread. */
typedef void (*pteros_accepted_callback_t)(pteros_goal_t *goal, void *user);

/*
 * Creates an action server; the node's executor runs the callbacks. `on_goal` and
 * `on_cancel` may be NULL: all goals are accepted, all cancel requests too.
 */
PTEROS_API pteros_action_server_t *pteros_action_server_new(
    const pteros_node_t *node, const pteros_action_type_t *type, const char *name,
    pteros_goal_callback_t on_goal, pteros_cancel_callback_t on_cancel,
    pteros_accepted_callback_t on_accepted, void *user, pteros_free_user_t free_user);

/* Ends it. The handles of its goals are still to be freed. */
PTEROS_API void pteros_action_server_free(pteros_action_server_t *server);

/* The goal message, valid while the handle is. */
PTEROS_API const void *pteros_goal_message(const pteros_goal_t *goal);

/* Writes the 16 bytes of its id, which the client chose. */
PTEROS_API pteros_status_t pteros_goal_id(const pteros_goal_t *goal, uint8_t (*id)[16]);

/* One of PTEROS_GOAL_STATUS_...; unknown once the server is freed. */
PTEROS_API int8_t pteros_goal_status(const pteros_goal_t *goal);

/* Whether a cancel request was accepted; end the goal with pteros_goal_canceled. */
PTEROS_API bool pteros_goal_is_canceling(const pteros_goal_t *goal);

/* Starts a deferred goal. */
PTEROS_API pteros_status_t pteros_goal_execute(const pteros_goal_t *goal);

/*
 * Publishes a copy of the feedback. Fails if the message is unusable. A message that cannot
 * be sent is logged as a warning.
 */
PTEROS_API pteros_status_t pteros_goal_publish_feedback(const pteros_goal_t *goal,
                                                        const void *feedback);

/* End the goal with a copy of the result. The handle is still to be freed. */
PTEROS_API pteros_status_t pteros_goal_succeed(const pteros_goal_t *goal, const void *result);
PTEROS_API pteros_status_t pteros_goal_abort(const pteros_goal_t *goal, const void *result);
PTEROS_API pteros_status_t pteros_goal_canceled(const pteros_goal_t *goal, const void *result);

/* Frees the handle. A goal that has not ended is aborted with an empty result. */
PTEROS_API void pteros_goal_free(pteros_goal_t *goal);

/* --- action client --- */

typedef struct pteros_action_client pteros_action_client_t;

/* A goal that a server accepted. */
typedef struct pteros_client_goal pteros_client_goal_t;

/* Gets feedback, valid during the call. */
typedef void (*pteros_feedback_callback_t)(const void *feedback, void *user);

/* Creates an action client. The name is expanded and remapped. */
PTEROS_API pteros_action_client_t *pteros_action_client_new(const pteros_node_t *node,
                                                            const pteros_action_type_t *type,
                                                            const char *name);

/* Ends it. The handles of its goals are still to be freed. */
PTEROS_API void pteros_action_client_free(pteros_action_client_t *client);

/* Waits for a server. Drives the network itself and runs no callbacks. */
PTEROS_API pteros_status_t pteros_action_client_wait_for_server(
    const pteros_action_client_t *client, int64_t timeout_ns);

/*
 * Sends a copy of the goal and waits until a server accepts it. NULL if none does, with
 * PTEROS_REJECTED or PTEROS_TIMEOUT as pteros_error_status(). The node's executor calls
 * `on_feedback` (may be NULL) until the goal's handle is freed.
 */
PTEROS_API pteros_client_goal_t *pteros_action_client_send_goal(
    const pteros_action_client_t *client, const void *goal, int64_t timeout_ns,
    pteros_feedback_callback_t on_feedback, void *user, pteros_free_user_t free_user);

/* Frees the handle. The server goes on with the goal. */
PTEROS_API void pteros_client_goal_free(pteros_client_goal_t *goal);

/* Writes the 16 bytes of its id. */
PTEROS_API pteros_status_t pteros_client_goal_id(const pteros_client_goal_t *goal,
                                                 uint8_t (*id)[16]);

/* The last status that was received, one of PTEROS_GOAL_STATUS_... */
PTEROS_API int8_t pteros_client_goal_status(const pteros_client_goal_t *goal);

/*
 * Waits for the end of the goal. Writes its status (may be NULL) and the result into an
 * initialized message. May be called again after PTEROS_TIMEOUT. Needs no executor.
 */
PTEROS_API pteros_status_t pteros_client_goal_result(const pteros_client_goal_t *goal,
                                                     int64_t timeout_ns, int8_t *status,
                                                     void *result);

/* Asks the server to cancel the goal. PTEROS_REJECTED if it refuses. */
PTEROS_API pteros_status_t pteros_client_goal_cancel(const pteros_client_goal_t *goal,
                                                     int64_t timeout_ns);

/* --- lifecycle node (managed node) --- */

/* A node with the states of lifecycle_msgs, its services ~/change_state ... and its topic. */
typedef struct pteros_lifecycle_node pteros_lifecycle_node_t;

/* Numbers of lifecycle_msgs/msg/State. Those from 10 on last as long as a callback. */
enum {
  PTEROS_STATE_UNKNOWN = 0,
  PTEROS_STATE_UNCONFIGURED = 1,
  PTEROS_STATE_INACTIVE = 2,
  PTEROS_STATE_ACTIVE = 3,
  PTEROS_STATE_FINALIZED = 4,
  PTEROS_STATE_CONFIGURING = 10,
  PTEROS_STATE_CLEANING_UP = 11,
  PTEROS_STATE_SHUTTING_DOWN = 12,
  PTEROS_STATE_ACTIVATING = 13,
  PTEROS_STATE_DEACTIVATING = 14,
  PTEROS_STATE_ERROR_PROCESSING = 15
};

/* Numbers of lifecycle_msgs/msg/Transition. */
enum {
  PTEROS_TRANSITION_CONFIGURE = 1,
  PTEROS_TRANSITION_CLEANUP = 2,
  PTEROS_TRANSITION_ACTIVATE = 3,
  PTEROS_TRANSITION_DEACTIVATE = 4,
  PTEROS_TRANSITION_UNCONFIGURED_SHUTDOWN = 5,
  PTEROS_TRANSITION_INACTIVE_SHUTDOWN = 6,
  PTEROS_TRANSITION_ACTIVE_SHUTDOWN = 7,
  PTEROS_CALLBACK_SUCCESS = 97,
  PTEROS_CALLBACK_FAILURE = 98,
  PTEROS_CALLBACK_ERROR = 99
};

/*
 * Does the work of a transition: `entered` is one of PTEROS_STATE_CONFIGURING to
 * PTEROS_STATE_ERROR_PROCESSING, `previous` the state before. Returns PTEROS_CALLBACK_...:
 * after a failure the node goes back, after an error (any other number) it is called for
 * PTEROS_STATE_ERROR_PROCESSING. Runs in the node's executor if a service asked for the
 * transition, else on the thread that changes the state; never twice at a time.
 */
typedef int (*pteros_transition_callback_t)(uint8_t entered, uint8_t previous, void *user);

/* Creates a node in state unconfigured. Without a callback every transition succeeds. */
PTEROS_API pteros_lifecycle_node_t *pteros_lifecycle_node_new(
    const pteros_context_t *context, const char *name, const char *node_namespace,
    pteros_transition_callback_t callback, void *user, pteros_free_user_t free_user);

/* Ends the program's hold, the callback and the services; see pteros_node_free. */
PTEROS_API void pteros_lifecycle_node_free(pteros_lifecycle_node_t *node);

/*
 * The node below, for publishers, timers, executors and so on, which work in every state.
 * It belongs to the lifecycle node and is valid while that is: do not free it.
 */
PTEROS_API const pteros_node_t *pteros_lifecycle_node_node(const pteros_lifecycle_node_t *node);

/* The state now, one of PTEROS_STATE_... Does not block. */
PTEROS_API uint8_t pteros_lifecycle_node_state(const pteros_lifecycle_node_t *node);

/*
 * Runs a transition with its callback, on this thread. `state` (may be NULL) becomes the
 * state reached, also after a failure. PTEROS_REJECTED if the state has no such transition or
 * another one is in progress; PTEROS_ERROR if the callback failed.
 */
PTEROS_API pteros_status_t pteros_lifecycle_node_change_state(
    const pteros_lifecycle_node_t *node, uint8_t transition, uint8_t *state);

/* As above, by label: "configure", "cleanup", "activate", "deactivate" or "shutdown". */
PTEROS_API pteros_status_t pteros_lifecycle_node_change_state_by_label(
    const pteros_lifecycle_node_t *node, const char *label, uint8_t *state);

/* Called with a transition and the state that it enters. `label` is valid during the call. */
typedef void (*pteros_transition_visitor_t)(uint8_t id, const char *label, uint8_t entered,
                                            void *user);

/* Visits the transitions that can be requested in the state now. */
PTEROS_API pteros_status_t pteros_lifecycle_node_visit_transitions(
    const pteros_lifecycle_node_t *node, pteros_transition_visitor_t visitor, void *user);

/* --- transforms between coordinate frames (tf) --- */

/* Receives /tf and /tf_static into a buffer, which the listeners of a context share. */
typedef struct pteros_tf_listener pteros_tf_listener_t;

/* Publishes transforms on /tf or /tf_static. */
typedef struct pteros_tf_broadcaster pteros_tf_broadcaster_t;

/* Turns and moves points of the child (source) frame into the parent (target) frame. */
typedef struct pteros_transform {
  int64_t time_ns;       /* ROS time */
  double translation[3]; /* x, y, z; metres */
  double rotation[4];    /* quaternion x, y, z, w */
} pteros_transform_t;

/* Creates a listener. It needs no executor. */
PTEROS_API pteros_tf_listener_t *pteros_tf_listener_new(const pteros_node_t *node);

/* Ends it. The buffer ends with the last listener. */
PTEROS_API void pteros_tf_listener_free(pteros_tf_listener_t *listener);

/*
 * Looks up the transform from `source` to `target` at a time; 0 is the newest common time.
 * Waits for it at most `timeout_ns` of ROS time, also in a callback: it drives the network
 * itself. PTEROS_TIMEOUT if it did not come; with a timeout of 0, PTEROS_ERROR if it is not
 * there. The text names the frames and the missing link. `transform` is written on success.
 */
PTEROS_API pteros_status_t pteros_tf_listener_lookup(const pteros_tf_listener_t *listener,
                                                     const char *target, const char *source,
                                                     int64_t time_ns, int64_t timeout_ns,
                                                     pteros_transform_t *transform);

/* Creates a broadcaster. A static one keeps its transforms for late joiners. */
PTEROS_API pteros_tf_broadcaster_t *pteros_tf_broadcaster_new(const pteros_node_t *node,
                                                              bool is_static);

/* Ends it. */
PTEROS_API void pteros_tf_broadcaster_free(pteros_tf_broadcaster_t *broadcaster);

/*
 * Publishes a transform from `child` to `parent`. PTEROS_INVALID_ARGUMENT for an empty frame
 * name, equal frames, a number that is not finite or a quaternion that is not normalized.
 */
PTEROS_API pteros_status_t pteros_tf_broadcaster_send(const pteros_tf_broadcaster_t *broadcaster,
                                                      const char *parent, const char *child,
                                                      const pteros_transform_t *transform);

/* --- executor: receives messages and runs callbacks --- */

typedef struct pteros_executor pteros_executor_t;

/* Creates an executor without nodes. */
PTEROS_API pteros_executor_t *pteros_executor_new(const pteros_context_t *context);

/* Ends it. In a callback of its own, the spin ends after the callback, and it with it. */
PTEROS_API void pteros_executor_free(pteros_executor_t *executor);

/* Adds a node, also while it spins. A node is in one executor at a time. */
PTEROS_API pteros_status_t pteros_executor_add_node(const pteros_executor_t *executor,
                                                    const pteros_node_t *node);
PTEROS_API pteros_status_t pteros_executor_remove_node(const pteros_executor_t *executor,
                                                       const pteros_node_t *node);

/* Runs callbacks until the context is shut down or pteros_executor_cancel. Blocks. */
PTEROS_API pteros_status_t pteros_executor_spin(const pteros_executor_t *executor);

/* As above, for at most that time. */
PTEROS_API pteros_status_t pteros_executor_spin_for(const pteros_executor_t *executor,
                                                    int64_t duration_ns);

/*
 * Runs at most one callback and waits for it, until pteros_executor_cancel. `ran` (may be
 * NULL): whether one ran.
 */
PTEROS_API pteros_status_t pteros_executor_spin_once(const pteros_executor_t *executor,
                                                     int64_t timeout_ns, bool *ran);

/* Runs the callbacks that are ready, without waiting. `ran` (may be NULL): how many. */
PTEROS_API pteros_status_t pteros_executor_spin_some(const pteros_executor_t *executor,
                                                     size_t *ran);

/*
 * Ends the current pteros_executor_spin, _spin_for or _spin_once, or else the next one, from
 * any thread and callback: it returns PTEROS_OK after the running callback. Does not block.
 * pteros_executor_spin_some never waits, so it needs no end.
 */
PTEROS_API pteros_status_t pteros_executor_cancel(const pteros_executor_t *executor);

/*
 * The descriptor for another event loop (poll, epoll, libuv, GLib). It is readable when
 * pteros_executor_spin_some has work; timers are included. Poll it level-triggered, do not
 * read from it or close it. From then on only pteros_executor_spin_some runs callbacks. If
 * the system has no descriptor left, the call fails and the executor stays as it was: spin
 * it, or call again later.
 */
PTEROS_API pteros_status_t pteros_executor_fd(const pteros_executor_t *executor, int *fd);

#ifdef __cplusplus
}
#endif

#endif /* PTEROS_PTEROS_H_ */
