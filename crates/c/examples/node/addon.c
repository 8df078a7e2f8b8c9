/* An add-on of Node.js (Node-API): subscribe(topic), and take(), which returns a string or
 * undefined. */
#include <node_api.h>
#include <pteros/pteros.h>
#include <std_msgs/msg/string.h>

static pteros_context_t *context;
static pteros_node_t *node;
static pteros_subscription_t *subscription;
static std_msgs__msg__String message;

static napi_value failed(napi_env env) {
  napi_throw_error(env, NULL, pteros_error_message());
  return NULL;
}

static napi_value subscribe(napi_env env, napi_callback_info info) {
  size_t count = 1, size = 0;
  napi_value argument;
  char topic[256];
  napi_get_cb_info(env, info, &count, &argument, NULL, NULL);
  if (napi_get_value_string_utf8(env, argument, topic, sizeof topic, &size) != napi_ok) {
    napi_throw_type_error(env, NULL, "subscribe takes the name of a topic");
    return NULL;
  }
  if (subscription != NULL) {
    napi_throw_error(env, NULL, "there is a subscription already; call end() first");
    return NULL;
  }
  context = pteros_context_new(0, NULL);
  node = pteros_node_new(context, "node_js_listener", NULL);
  subscription = pteros_subscription_new(node, &std_msgs__msg__String__type, topic, NULL, NULL,
                                         NULL, NULL);
  if (subscription == NULL || !std_msgs__msg__String__init(&message)) return failed(env);
  return NULL;
}

/* Without an executor, the library's background thread receives. */
static napi_value take(napi_env env, napi_callback_info info) {
  bool taken = false;
  napi_value text = NULL;
  (void)info;
  if (pteros_subscription_take(subscription, &message, NULL, &taken) != PTEROS_OK)
    return failed(env);
  if (taken) napi_create_string_utf8(env, message.data.data, message.data.size, &text);
  return text;
}

static napi_value end(napi_env env, napi_callback_info info) {
  (void)env;
  (void)info;
  std_msgs__msg__String__fini(&message);
  pteros_subscription_free(subscription);
  pteros_node_free(node);
  pteros_context_free(context);
  subscription = NULL;
  node = NULL;
  context = NULL;
  return NULL;
}

NAPI_MODULE_INIT(/* napi_env env, napi_value exports */) {
  napi_property_descriptor functions[] = {
      {"subscribe", NULL, subscribe, NULL, NULL, NULL, napi_default, NULL},
      {"take", NULL, take, NULL, NULL, NULL, napi_default, NULL},
      {"end", NULL, end, NULL, NULL, NULL, napi_default, NULL},
  };
  napi_define_properties(env, exports, sizeof functions / sizeof functions[0], functions);
  return exports;
}
