// Parameter server and client on eProsima Fast DDS, with the wire format of
// rmw_fastrtps. Options and lines: ../README.md. The structure is that of
// ../cyclone/parameters.c.

#include "../node_peer.h"
#include "node.hpp"
#include "../parameter_peer.h"

#include "parametersPubSubTypes.h"

namespace msg = rcl_interfaces::msg::dds_;
namespace srv = rcl_interfaces::srv::dds_;

static node_options options;
static Service<srv::GetParameters_Request_PubSubType, srv::GetParameters_Response_PubSubType> gets;
static Service<srv::GetParameterTypes_Request_PubSubType, srv::GetParameterTypes_Response_PubSubType> types;
static Service<srv::SetParameters_Request_PubSubType, srv::SetParameters_Response_PubSubType> sets;
static Service<srv::SetParametersAtomically_Request_PubSubType, srv::SetParametersAtomically_Response_PubSubType> atomics;
static Service<srv::DescribeParameters_Request_PubSubType, srv::DescribeParameters_Response_PubSubType> describes;
static Service<srv::ListParameters_Request_PubSubType, srv::ListParameters_Response_PubSubType> lists;
static DataWriter *event_writer, *graph_writer;
static DataReader *event_reader;

// -- values -------------------------------------------------------------------

static msg::ParameterValue_ message_of(const value &v)
{
  msg::ParameterValue_ m;
  const auto n = v.count;
  m.kind(v.kind);
  m.bool_value(false);
  m.integer_value(0);
  m.double_value(0);
  switch (v.kind) {
  case BOOL: m.bool_value(v.bools[0]); break;
  case INTEGER: m.integer_value(v.integers[0]); break;
  case DOUBLE: m.double_value(v.doubles[0]); break;
  case STRING: m.string_value(v.texts[0]); break;
  case BYTE_ARRAY: m.byte_array_value({ v.bytes, v.bytes + n }); break;
  case BOOL_ARRAY: m.bool_array_value(std::vector<bool>(v.bools, v.bools + n)); break;
  case INTEGER_ARRAY: m.integer_array_value({ v.integers, v.integers + n }); break;
  case DOUBLE_ARRAY: m.double_array_value({ v.doubles, v.doubles + n }); break;
  case STRING_ARRAY: m.string_array_value({ v.texts, v.texts + n }); break;
  }
  return m;
}

template <class To, class From>
static uint32_t copy_items(To *to, const From &from)
{
  uint32_t count = 0;
  for (; count < from.size() && count < ITEMS_MAX; count++)
    to[count] = from[count];
  return count;
}

static value value_of(const msg::ParameterValue_ &m)
{
  value v{};
  v.kind = m.kind();
  v.count = 1;
  switch (v.kind) {
  case BOOL: v.bools[0] = m.bool_value(); break;
  case INTEGER: v.integers[0] = m.integer_value(); break;
  case DOUBLE: v.doubles[0] = m.double_value(); break;
  case STRING: snprintf(v.texts[0], TEXT_MAX, "%s", m.string_value().c_str()); break;
  case BYTE_ARRAY: v.count = copy_items(v.bytes, m.byte_array_value()); break;
  case BOOL_ARRAY: v.count = copy_items(v.bools, m.bool_array_value()); break;
  case INTEGER_ARRAY: v.count = copy_items(v.integers, m.integer_array_value()); break;
  case DOUBLE_ARRAY: v.count = copy_items(v.doubles, m.double_array_value()); break;
  case STRING_ARRAY:
    for (v.count = 0; v.count < m.string_array_value().size() && v.count < ITEMS_MAX; v.count++)
      snprintf(v.texts[v.count], TEXT_MAX, "%s", m.string_array_value()[v.count].c_str());
  }
  return v;
}

static msg::Parameter_ message_of(const parameter &p)
{
  msg::Parameter_ m;
  m.name(p.name);
  m.value(message_of(p.value));
  return m;
}

static msg::SetParametersResult_ result_of(const char *why)
{
  msg::SetParametersResult_ m;
  m.successful(!*why);
  m.reason(why);
  return m;
}

// -- server -------------------------------------------------------------------

static void tell_event(const parameter *parameters, int count, bool are_new)
{
  msg::ParameterEvent_ event;
  event.stamp().sec(7);
  event.stamp().nanosec(8);
  event.node(options.name);
  for (int i = 0; i < count; i++)
    (are_new ? event.new_parameters() : event.changed_parameters()).push_back(message_of(parameters[i]));
  write_sample(event_writer, event);
}

static msg::ParameterDescriptor_ descriptor_of(const parameter &p)
{
  msg::ParameterDescriptor_ m;
  m.name(p.name);
  m.kind(p.value.kind);
  m.description(p.description);
  m.read_only(p.read_only);
  m.dynamic_typing(false);
  if (p.is_ranged) {
    msg::IntegerRange_ range;
    range.from_value(p.from);
    range.to_value(p.to);
    range.step(p.step);
    m.integer_range().push_back(range);
  }
  return m;
}

static srv::ListParameters_Response_ listed(const srv::ListParameters_Request_ &request)
{
  srv::ListParameters_Response_ reply;
  for (int i = 0; i < own_count; i++) {
    const char *name = own[i].name;
    bool is_meant = request.prefixes().empty() && is_listed(name, nullptr, request.depth());
    for (const auto &prefix : request.prefixes())
      is_meant |= is_listed(name, prefix.c_str(), request.depth());
    if (!is_meant)
      continue;
    reply.result().names().push_back(name);
    char prefix[TEXT_MAX];
    bool is_new = prefix_of(name, prefix);
    for (const auto &known : reply.result().prefixes())
      is_new = is_new && known != prefix;
    if (is_new)
      reply.result().prefixes().push_back(prefix);
  }
  return reply;
}

static void answer_questions()
{
  // As rmw_fastrtps: no response before its client's reader is matched.
  if (has_matched(gets.writer))
    gets.take_requests([](const auto &request, const requester &who) {
      srv::GetParameters_Response_ reply;
      for (const auto &name : request.names()) {
        // As rclcpp: an unknown name gives an empty response.
        const parameter *p = find_own(name.c_str());
        if (!p) {
          reply.values().clear();
          break;
        }
        reply.values().push_back(message_of(p->value));
      }
      gets.answer(who, reply);
    });
  if (has_matched(types.writer))
    types.take_requests([](const auto &request, const requester &who) {
      srv::GetParameterTypes_Response_ reply;
      for (const auto &name : request.names()) {
        const parameter *p = find_own(name.c_str());
        reply.types().push_back(p ? p->value.kind : uint8_t(NOT_SET));
      }
      types.answer(who, reply);
    });
  if (has_matched(describes.writer))
    describes.take_requests([](const auto &request, const requester &who) {
      srv::DescribeParameters_Response_ reply;
      for (const auto &name : request.names()) {
        const parameter *p = find_own(name.c_str());
        if (!p) {
          reply.descriptors().clear();
          break;
        }
        reply.descriptors().push_back(descriptor_of(*p));
      }
      describes.answer(who, reply);
    });
  if (has_matched(lists.writer))
    lists.take_requests([](const auto &request, const requester &who) {
      auto reply = listed(request);
      lists.answer(who, reply);
    });
}

static void follow_settings()
{
  if (has_matched(sets.writer))
    sets.take_requests([](const auto &request, const requester &who) {
      srv::SetParameters_Response_ reply;
      for (const auto &wanted : request.parameters()) {
        const char *name = wanted.name().c_str();
        value v = value_of(wanted.value());
        const char *why = refusal(name, &v);
        say("asked %s %s", name, text_of(&v));
        reply.results().push_back(result_of(why));
        if (!*why) {
          find_own(name)->value = v;
          tell_event(find_own(name), 1, false);
        }
      }
      sets.answer(who, reply);
    });
  if (has_matched(atomics.writer))
    atomics.take_requests([](const auto &request, const requester &who) {
      const char *why = "";
      for (const auto &wanted : request.parameters()) {
        value v = value_of(wanted.value());
        if (!*why)
          why = refusal(wanted.name().c_str(), &v);
      }
      for (const auto &wanted : request.parameters())
        if (!*why)
          find_own(wanted.name().c_str())->value = value_of(wanted.value());
      srv::SetParametersAtomically_Response_ reply;
      reply.result(result_of(why));
      atomics.answer(who, reply);
    });
}

// -- client -------------------------------------------------------------------

template <class S>
static void ask_names(S &service, const char *const *names, uint32_t count)
{
  typename S::Request request;
  request.names({ names, names + count });
  service.ask(request);
}

static void ask_names(enum ask ask, const char *const *names, uint32_t count)
{
  switch (ask) {
  case ASK_GET: return ask_names(gets, names, count);
  case ASK_TYPES: return ask_names(types, names, count);
  case ASK_DESCRIBE: return ask_names(describes, names, count);
  }
}

static void ask_list(const char *const *prefixes, uint32_t count, uint64_t depth)
{
  srv::ListParameters_Request_ request;
  request.prefixes({ prefixes, prefixes + count });
  request.depth(depth);
  lists.ask(request);
}

template <class S>
static void ask_set(S &service, const parameter *parameters, uint32_t count)
{
  typename S::Request request;
  for (uint32_t i = 0; i < count; i++)
    request.parameters().push_back(message_of(parameters[i]));
  service.ask(request);
}

static void ask_set(const parameter *parameters, uint32_t count, bool atomically)
{
  if (atomically)
    ask_set(atomics, parameters, count);
  else
    ask_set(sets, parameters, count);
}

static void say_descriptor(long long number, const msg::ParameterDescriptor_ &d)
{
  const char *name = d.name().c_str();
  say("descriptor %lld %s kind=%u read_only=%d dynamic=%d constraints=%s text=%s", number, name, d.kind(), d.read_only(),
      d.dynamic_typing(), d.additional_constraints().c_str(), d.description().c_str());
  for (const auto &r : d.integer_range())
    say("range %lld %s %lld %lld %llu", number, name, (long long)r.from_value(), (long long)r.to_value(), (unsigned long long)r.step());
  for (const auto &r : d.floating_point_range())
    say("range %lld %s %g %g %g", number, name, r.from_value(), r.to_value(), r.step());
}

static void say_event(const std::string &node, const char *what, const std::vector<msg::Parameter_> &list)
{
  for (const auto &p : list) {
    value v = value_of(p.value());
    say("event %s %s %s %s", node.c_str(), what, p.name().c_str(), text_of(&v));
  }
}

static void hear_answers()
{
  gets.take_replies([](long long number, const auto &reply) {
    unsigned i = 0;
    for (const auto &m : reply.values()) {
      value v = value_of(m);
      say("value %lld %u %s", number, i++, text_of(&v));
    }
    say("values %lld %u", number, i);
  });
  types.take_replies([](long long number, const auto &reply) {
    unsigned i = 0;
    for (unsigned kind : reply.types())
      say("type %lld %u %u", number, i++, kind);
  });
  sets.take_replies([](long long number, const auto &reply) {
    unsigned i = 0;
    for (const auto &r : reply.results())
      say("set %lld %u %d %s", number, i++, r.successful(), r.reason().c_str());
  });
  atomics.take_replies([](long long number, const auto &reply) {
    say("atomic %lld %d %s", number, reply.result().successful(), reply.result().reason().c_str());
  });
  describes.take_replies([](long long number, const auto &reply) {
    for (const auto &d : reply.descriptors())
      say_descriptor(number, d);
  });
  lists.take_replies([](long long number, const auto &reply) {
    for (const auto &name : reply.result().names())
      say("name %lld %s", number, name.c_str());
    for (const auto &prefix : reply.result().prefixes())
      say("prefix %lld %s", number, prefix.c_str());
    say("names %lld %zu", number, reply.result().names().size());
  });
  take_all<msg::ParameterEvent_>(event_reader, [](const auto &e, const SampleInfo &) {
    say_event(e.node(), "new", e.new_parameters());
    say_event(e.node(), "changed", e.changed_parameters());
    say_event(e.node(), "deleted", e.deleted_parameters());
  });
}

// -----------------------------------------------------------------------------

// The node is in this participant.
static void tell_graph()
{
  namespace graph = rmw_dds_common::msg::dds_;
  graph::NodeEntitiesInfo_ node;
  node.node_namespace("/");
  node.node_name(options.name + 1);
  graph::ParticipantEntitiesInfo_ info;
  const GUID_t &guid = participant->guid();
  memcpy(info.gid().data().data(), guid.guidPrefix.value, 12);
  memcpy(info.gid().data().data() + 12, guid.entityId.value, 4);
  info.node_entities_info_seq().push_back(node);
  write_sample(graph_writer, info);
}

static void open_ends()
{
  bool serve = options.serve;
  gets.open(serve, options.name, "get_parameters");
  types.open(serve, options.name, "get_parameter_types");
  sets.open(serve, options.name, "set_parameters");
  atomics.open(serve, options.name, "set_parameters_atomically");
  describes.open(serve, options.name, "describe_parameters");
  lists.open(serve, options.name, "list_parameters");
  if (!serve) {
    event_reader = open_reader<msg::ParameterEvent_PubSubType>("rt/parameter_events", 1000, false);
    return;
  }
  event_writer = open_writer<msg::ParameterEvent_PubSubType>("rt/parameter_events", 1000, false);
  graph_writer = open_writer<rmw_dds_common::msg::dds_::ParticipantEntitiesInfo_PubSubType>("ros_discovery_info", 1, true);
  tell_graph();
}

static bool is_met()
{
  bool events = options.serve ? has_matched(event_writer) : has_matched(event_reader);
  return events && gets.is_met() && types.is_met() && sets.is_met() && atomics.is_met() && describes.is_met() && lists.is_met();
}

int main(int argc, char **argv)
{
  options = node_parse(argc, argv, "/theirs");
  catch_stop();
  open_participant(options.domain);
  declare_own();
  open_ends();
  say("ready");
  bool met = false, told = false;
  for (int64_t end = node_end(&options); !stop_requested && now_ns() < end; sleep_ns(1000000)) {
    if (!met && is_met()) {
      met = true;
      say("met");
    }
    if (!options.serve) {
      follow_orders();
      hear_answers();
      continue;
    }
    if (!told && has_matched(event_writer)) {
      told = true;
      tell_event(own, own_count, true);
    }
    answer_questions();
    follow_settings();
  }
  close_participant();
  return EXIT_OK;
}
