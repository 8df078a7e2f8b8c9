/* Parameter server and client on Eclipse Cyclone DDS, with the wire format of
 * rmw_cyclonedds. Options and lines: ../README.md. */
#include "../node_peer.h"
#include "node.h"
#include "../parameter_peer.h"

#include "parameters.h"

#define MSG(name) rcl_interfaces_msg_dds__##name##_
#define SRV(name) rcl_interfaces_srv_dds__##name##_
#define TYPES(name) &rcl_interfaces_srv_dds__##name##_Request__desc, &rcl_interfaces_srv_dds__##name##_Response__desc

/* A sequence that refers to external memory. */
#define OF(length, items) { (uint32_t)(length), (uint32_t)(length), items, false }

static struct node_options options;
static struct service gets, types, sets, atomics, describes, lists;
static dds_entity_t events, graph;

/* -- values ------------------------------------------------------------------ */

/* The part of a value that a message refers to. */
struct wire {
  char *texts[ITEMS_MAX];
};

/* Points at `v` and `w`. */
static MSG(ParameterValue) message_of(const struct value *v, struct wire *w)
{
  MSG(ParameterValue) m = { v->kind, false, 0, 0, (char *)"", OF(0, NULL), OF(0, NULL), OF(0, NULL), OF(0, NULL), OF(0, NULL) };
  for (uint32_t i = 0; i < v->count; i++)
    w->texts[i] = (char *)v->texts[i];
  switch (v->kind) {
  case BOOL: m.bool_value = v->bools[0]; break;
  case INTEGER: m.integer_value = v->integers[0]; break;
  case DOUBLE: m.double_value = v->doubles[0]; break;
  case STRING: m.string_value = (char *)v->texts[0]; break;
  case BYTE_ARRAY: m.byte_array_value = (dds_sequence_octet)OF(v->count, (uint8_t *)v->bytes); break;
  case BOOL_ARRAY: m.bool_array_value = (dds_sequence_bool)OF(v->count, (bool *)v->bools); break;
  case INTEGER_ARRAY: m.integer_array_value = (dds_sequence_long_long)OF(v->count, (int64_t *)v->integers); break;
  case DOUBLE_ARRAY: m.double_array_value = (dds_sequence_double)OF(v->count, (double *)v->doubles); break;
  case STRING_ARRAY: m.string_array_value = (dds_sequence_string)OF(v->count, w->texts); break;
  }
  return m;
}

#define COPY(to, from) \
  for (v.count = 0; v.count < (from)._length && v.count < ITEMS_MAX; v.count++) \
    to[v.count] = (from)._buffer[v.count]

static struct value value_of(const MSG(ParameterValue) *m)
{
  struct value v;
  memset(&v, 0, sizeof v);
  v.kind = m->kind;
  v.count = 1;
  switch (m->kind) {
  case BOOL: v.bools[0] = m->bool_value; break;
  case INTEGER: v.integers[0] = m->integer_value; break;
  case DOUBLE: v.doubles[0] = m->double_value; break;
  case STRING: snprintf(v.texts[0], TEXT_MAX, "%s", m->string_value); break;
  case BYTE_ARRAY: COPY(v.bytes, m->byte_array_value); break;
  case BOOL_ARRAY: COPY(v.bools, m->bool_array_value); break;
  case INTEGER_ARRAY: COPY(v.integers, m->integer_array_value); break;
  case DOUBLE_ARRAY: COPY(v.doubles, m->double_array_value); break;
  case STRING_ARRAY:
    for (v.count = 0; v.count < m->string_array_value._length && v.count < ITEMS_MAX; v.count++)
      snprintf(v.texts[v.count], TEXT_MAX, "%s", m->string_array_value._buffer[v.count]);
  }
  return v;
}

static void write_sample(dds_entity_t writer, const void *sample)
{
  check(dds_write(writer, sample), "write");
}

/* -- server ---------------------------------------------------------------- */

static void tell_event(const struct parameter *parameters, uint32_t count, bool are_new)
{
  MSG(Parameter) rows[NAMES_MAX];
  struct wire wires[NAMES_MAX];
  MSG(ParameterEvent) event = { { 7, 8 }, (char *)options.name, OF(0, NULL), OF(0, NULL), OF(0, NULL) };
  for (uint32_t i = 0; i < count; i++) {
    rows[i].name = (char *)parameters[i].name;
    rows[i].value = message_of(&parameters[i].value, &wires[i]);
  }
  dds_sequence_rcl_interfaces_msg_dds__Parameter_ list = OF(count, rows);
  *(are_new ? &event.new_parameters : &event.changed_parameters) = list;
  write_sample(events, &event);
}

static void answer_get(const void *sample)
{
  const SRV(GetParameters_Request) *r = sample;
  MSG(ParameterValue) values[NAMES_MAX];
  struct wire wires[NAMES_MAX];
  uint32_t count = 0;
  /* As rclcpp: an unknown name gives an empty response. */
  for (; count < r->names._length && count < NAMES_MAX; count++) {
    const struct parameter *p = find_own(r->names._buffer[count]);
    if (!p) {
      count = 0;
      break;
    }
    values[count] = message_of(&p->value, &wires[count]);
  }
  SRV(GetParameters_Response) reply = { r->client, r->number, OF(count, values) };
  write_sample(gets.writer, &reply);
}

static void answer_types(const void *sample)
{
  const SRV(GetParameterTypes_Request) *r = sample;
  uint8_t kinds[NAMES_MAX];
  uint32_t count = 0;
  for (; count < r->names._length && count < NAMES_MAX; count++) {
    const struct parameter *p = find_own(r->names._buffer[count]);
    kinds[count] = p ? p->value.kind : NOT_SET;
  }
  SRV(GetParameterTypes_Response) reply = { r->client, r->number, OF(count, kinds) };
  write_sample(types.writer, &reply);
}

static void answer_set(const void *sample)
{
  const SRV(SetParameters_Request) *r = sample;
  MSG(SetParametersResult) rows[NAMES_MAX];
  uint32_t count = 0;
  for (; count < r->parameters._length && count < NAMES_MAX; count++) {
    const char *name = r->parameters._buffer[count].name;
    struct value v = value_of(&r->parameters._buffer[count].value);
    const char *why = refusal(name, &v);
    say("asked %s %s", name, text_of(&v));
    rows[count].successful = !*why;
    rows[count].reason = (char *)why;
    if (!*why) {
      find_own(name)->value = v;
      tell_event(find_own(name), 1, false);
    }
  }
  SRV(SetParameters_Response) reply = { r->client, r->number, OF(count, rows) };
  write_sample(sets.writer, &reply);
}

static void answer_atomic(const void *sample)
{
  const SRV(SetParametersAtomically_Request) *r = sample;
  const char *why = "";
  for (uint32_t i = 0; i < r->parameters._length && !*why; i++) {
    struct value v = value_of(&r->parameters._buffer[i].value);
    why = refusal(r->parameters._buffer[i].name, &v);
  }
  for (uint32_t i = 0; i < r->parameters._length && !*why; i++)
    find_own(r->parameters._buffer[i].name)->value = value_of(&r->parameters._buffer[i].value);
  SRV(SetParametersAtomically_Response) reply = { r->client, r->number, { !*why, (char *)why } };
  write_sample(atomics.writer, &reply);
}

static void answer_describe(const void *sample)
{
  const SRV(DescribeParameters_Request) *r = sample;
  MSG(ParameterDescriptor) rows[NAMES_MAX];
  MSG(IntegerRange) ranges[NAMES_MAX];
  uint32_t count = 0;
  for (; count < r->names._length && count < NAMES_MAX; count++) {
    const struct parameter *p = find_own(r->names._buffer[count]);
    if (!p) {
      count = 0;
      break;
    }
    ranges[count] = (MSG(IntegerRange)) { p->from, p->to, p->step };
    rows[count] = (MSG(ParameterDescriptor)) { (char *)p->name, p->value.kind, (char *)p->description, (char *)"", p->read_only,
                                                 false, OF(0, NULL), OF(p->is_ranged, &ranges[count]) };
  }
  SRV(DescribeParameters_Response) reply = { r->client, r->number, OF(count, rows) };
  write_sample(describes.writer, &reply);
}

static void answer_list(const void *sample)
{
  const SRV(ListParameters_Request) *r = sample;
  char *names[NAMES_MAX], *prefixes[NAMES_MAX];
  char texts[NAMES_MAX][TEXT_MAX];
  uint32_t count = 0, prefix_count = 0;
  for (int i = 0; i < own_count; i++) {
    bool listed = r->prefixes._length == 0 && is_listed(own[i].name, NULL, r->depth);
    for (uint32_t k = 0; k < r->prefixes._length; k++)
      listed |= is_listed(own[i].name, r->prefixes._buffer[k], r->depth);
    if (!listed)
      continue;
    names[count++] = own[i].name;
    bool is_new = prefix_of(own[i].name, texts[prefix_count]);
    for (uint32_t k = 0; is_new && k < prefix_count; k++)
      is_new = strcmp(texts[k], texts[prefix_count]) != 0;
    if (is_new) {
      prefixes[prefix_count] = texts[prefix_count];
      prefix_count++;
    }
  }
  SRV(ListParameters_Response) reply = { r->client, r->number, { OF(count, names), OF(prefix_count, prefixes) } };
  write_sample(lists.writer, &reply);
}

/* -- client ---------------------------------------------------------------- */

static void ask_names(enum ask ask, const char *const *names, uint32_t count)
{
  struct service *s = ask == ASK_GET ? &gets : ask == ASK_TYPES ? &types : &describes;
  /* The three requests have the same layout. */
  SRV(GetParameters_Request) r = { s->next.client, ++s->next.number, OF(count, (char **)names) };
  write_sample(s->writer, &r);
}

static void ask_list(const char *const *prefixes, uint32_t count, uint64_t depth)
{
  SRV(ListParameters_Request) r = { lists.next.client, ++lists.next.number, OF(count, (char **)prefixes), depth };
  write_sample(lists.writer, &r);
}

static void ask_set(const struct parameter *parameters, uint32_t count, bool atomically)
{
  struct service *s = atomically ? &atomics : &sets;
  MSG(Parameter) rows[NAMES_MAX];
  struct wire wires[NAMES_MAX];
  for (uint32_t i = 0; i < count; i++) {
    rows[i].name = (char *)parameters[i].name;
    rows[i].value = message_of(&parameters[i].value, &wires[i]);
  }
  /* The two requests have the same layout. */
  SRV(SetParameters_Request) r = { s->next.client, ++s->next.number, OF(count, rows) };
  write_sample(s->writer, &r);
}

static void hear_get(const void *sample)
{
  const SRV(GetParameters_Response) *r = sample;
  if (r->client != gets.next.client)
    return;
  for (uint32_t i = 0; i < r->values._length; i++) {
    struct value v = value_of(&r->values._buffer[i]);
    say("value %lld %u %s", (long long)r->number, i, text_of(&v));
  }
  say("values %lld %u", (long long)r->number, r->values._length);
}

static void hear_types(const void *sample)
{
  const SRV(GetParameterTypes_Response) *r = sample;
  if (r->client != types.next.client)
    return;
  for (uint32_t i = 0; i < r->types._length; i++)
    say("type %lld %u %u", (long long)r->number, i, r->types._buffer[i]);
}

static void hear_set(const void *sample)
{
  const SRV(SetParameters_Response) *r = sample;
  if (r->client != sets.next.client)
    return;
  for (uint32_t i = 0; i < r->results._length; i++)
    say("set %lld %u %d %s", (long long)r->number, i, r->results._buffer[i].successful, r->results._buffer[i].reason);
}

static void hear_atomic(const void *sample)
{
  const SRV(SetParametersAtomically_Response) *r = sample;
  if (r->client == atomics.next.client)
    say("atomic %lld %d %s", (long long)r->number, r->result.successful, r->result.reason);
}

static void hear_describe(const void *sample)
{
  const SRV(DescribeParameters_Response) *r = sample;
  if (r->client != describes.next.client)
    return;
  for (uint32_t i = 0; i < r->descriptors._length; i++) {
    const MSG(ParameterDescriptor) *d = &r->descriptors._buffer[i];
    say("descriptor %lld %s kind=%u read_only=%d dynamic=%d constraints=%s text=%s", (long long)r->number, d->name, d->kind,
        d->read_only, d->dynamic_typing, d->additional_constraints, d->description);
    for (uint32_t k = 0; k < d->integer_range._length; k++)
      say("range %lld %s %lld %lld %llu", (long long)r->number, d->name, (long long)d->integer_range._buffer[k].from_value,
          (long long)d->integer_range._buffer[k].to_value, (unsigned long long)d->integer_range._buffer[k].step);
    for (uint32_t k = 0; k < d->floating_point_range._length; k++)
      say("range %lld %s %g %g %g", (long long)r->number, d->name, d->floating_point_range._buffer[k].from_value,
          d->floating_point_range._buffer[k].to_value, d->floating_point_range._buffer[k].step);
  }
}

static void hear_list(const void *sample)
{
  const SRV(ListParameters_Response) *r = sample;
  if (r->client != lists.next.client)
    return;
  for (uint32_t i = 0; i < r->result.names._length; i++)
    say("name %lld %s", (long long)r->number, r->result.names._buffer[i]);
  for (uint32_t i = 0; i < r->result.prefixes._length; i++)
    say("prefix %lld %s", (long long)r->number, r->result.prefixes._buffer[i]);
  say("names %lld %u", (long long)r->number, r->result.names._length);
}

static void say_event(const char *node, const char *what, const dds_sequence_rcl_interfaces_msg_dds__Parameter_ *list)
{
  for (uint32_t i = 0; i < list->_length; i++) {
    struct value v = value_of(&list->_buffer[i].value);
    say("event %s %s %s %s", node, what, list->_buffer[i].name, text_of(&v));
  }
}

static void hear_event(const void *sample)
{
  const MSG(ParameterEvent) *e = sample;
  say_event(e->node, "new", &e->new_parameters);
  say_event(e->node, "changed", &e->changed_parameters);
  say_event(e->node, "deleted", &e->deleted_parameters);
}

/* -------------------------------------------------------------------------- */

static struct service *const services[] = { &gets, &types, &sets, &atomics, &describes, &lists };
enum { SERVICES = sizeof services / sizeof *services };
static void (*const answers[SERVICES])(const void *) = {
  answer_get, answer_types, answer_set, answer_atomic, answer_describe, answer_list };
static void (*const hears[SERVICES])(const void *) = { hear_get, hear_types, hear_set, hear_atomic, hear_describe, hear_list };

/* The node is in this participant. */
static void tell_graph(void)
{
  dds_guid_t guid;
  check(dds_get_guid(participant, &guid), "ask for the guid");
  rmw_dds_common_msg_dds__NodeEntitiesInfo_ node = { { 0 }, { 0 }, OF(0, NULL), OF(0, NULL) };
  snprintf(node.node_namespace, sizeof node.node_namespace, "/");
  snprintf(node.node_name, sizeof node.node_name, "%s", options.name + 1);
  rmw_dds_common_msg_dds__ParticipantEntitiesInfo_ info = { { { 0 } }, OF(1, &node) };
  memcpy(info.gid.data, guid.v, 16);
  write_sample(graph, &info);
}

static void open_ends(void)
{
  bool serve = options.serve;
  gets = open_service(serve, options.name, "get_parameters", TYPES(GetParameters));
  types = open_service(serve, options.name, "get_parameter_types", TYPES(GetParameterTypes));
  sets = open_service(serve, options.name, "set_parameters", TYPES(SetParameters));
  atomics = open_service(serve, options.name, "set_parameters_atomically", TYPES(SetParametersAtomically));
  describes = open_service(serve, options.name, "describe_parameters", TYPES(DescribeParameters));
  lists = open_service(serve, options.name, "list_parameters", TYPES(ListParameters));
  dds_qos_t *plain = node_qos(1000), *kept = node_qos(1);
  dds_qset_durability(kept, DDS_DURABILITY_TRANSIENT_LOCAL);
  events = (serve ? open_writer : open_reader)(&rcl_interfaces_msg_dds__ParameterEvent__desc, "rt/parameter_events", plain);
  if (serve) {
    graph = open_writer(&rmw_dds_common_msg_dds__ParticipantEntitiesInfo__desc, "ros_discovery_info", kept);
    tell_graph();
  }
  dds_delete_qos(plain);
  dds_delete_qos(kept);
}

static bool is_all_met(void)
{
  for (int i = 0; i < SERVICES; i++)
    if (!is_met(services[i]))
      return false;
  return has_matched(events, options.serve);
}

int main(int argc, char **argv)
{
  options = node_parse(argc, argv, "/theirs");
  catch_stop();
  participant = check(dds_create_participant((dds_domainid_t)options.domain, NULL, NULL), "create a participant");
  declare_own();
  open_ends();
  say("ready");
  bool met = false, told = false;
  for (int64_t end = node_end(&options); !stop_requested && now_ns() < end; sleep_ns(1000000)) {
    if (!met && is_all_met()) {
      met = true;
      say("met");
    }
    if (options.serve && !told && has_matched(events, true)) {
      told = true;
      tell_event(own, (uint32_t)own_count, true);
    }
    /* As rmw_cyclonedds: no response before its client's reader is matched. */
    for (int i = 0; i < SERVICES; i++)
      if (!options.serve || has_matched(services[i]->writer, true))
        take_all(services[i]->reader, (options.serve ? answers : hears)[i]);
    if (!options.serve) {
      take_all(events, hear_event);
      follow_orders();
    }
  }
  return EXIT_OK;
}
