/* Shapes program on Eclipse Cyclone DDS: publishes or subscribes to one topic
 * of ShapeType with any policy. Options and lines: ../README.md. */
#include "dds/dds.h"
#include "shapes.h"

#include "../shapes_peer.h"

/* The same type as final, without type information; see ../shapes.idl. */
extern const dds_topic_descriptor_t ShapeType_final_desc;

enum { TAKE_MAX = 64 };

static struct shapes_options options;

static dds_entity_t check(dds_entity_t result, const char *action)
{
  if (result < 0)
    fail(EXIT_DDS, "%s: %s", action, dds_strretcode(result));
  return result;
}

/* -- what is reported ------------------------------------------------------ */

/* Cyclone numbers its last two policies differently. */
static unsigned policy_number(uint32_t id)
{
  if (id == DDS_DATA_REPRESENTATION_QOS_POLICY_ID)
    return 23;
  return id == DDS_TYPE_CONSISTENCY_ENFORCEMENT_QOS_POLICY_ID ? 24 : id;
}

static void report_qos(const char *name, uint32_t id)
{
  say_status(name, options.topic, "%u (%s)", policy_number(id), policy_name(policy_number(id)));
}

static void on_publication_matched(dds_entity_t e, const dds_publication_matched_status_t s, void *arg)
{
  (void)e, (void)arg;
  say_status("on_publication_matched", options.topic, "matched readers %u (change = %d)", s.current_count,
             s.current_count_change);
}

static void on_subscription_matched(dds_entity_t e, const dds_subscription_matched_status_t s, void *arg)
{
  (void)e, (void)arg;
  say_status("on_subscription_matched", options.topic, "matched writers %u (change = %d)", s.current_count,
             s.current_count_change);
}

static void on_offered_deadline(dds_entity_t e, const dds_offered_deadline_missed_status_t s, void *arg)
{
  (void)e, (void)arg;
  say_status("on_offered_deadline_missed", options.topic, "(total = %u, change = %d)", s.total_count,
             s.total_count_change);
}

static void on_requested_deadline(dds_entity_t e, const dds_requested_deadline_missed_status_t s, void *arg)
{
  (void)e, (void)arg;
  say_status("on_requested_deadline_missed", options.topic, "(total = %u, change = %d)", s.total_count,
             s.total_count_change);
}

static void on_liveliness_lost(dds_entity_t e, const dds_liveliness_lost_status_t s, void *arg)
{
  (void)e, (void)arg;
  say_status("on_liveliness_lost", options.topic, "(total = %u, change = %d)", s.total_count, s.total_count_change);
}

static void on_liveliness_changed(dds_entity_t e, const dds_liveliness_changed_status_t s, void *arg)
{
  (void)e, (void)arg;
  say_status("on_liveliness_changed", options.topic, "(alive = %u, not_alive = %u)", s.alive_count,
             s.not_alive_count);
}

static void on_offered_qos(dds_entity_t e, const dds_offered_incompatible_qos_status_t s, void *arg)
{
  (void)e, (void)arg;
  report_qos("on_offered_incompatible_qos", s.last_policy_id);
}

static void on_requested_qos(dds_entity_t e, const dds_requested_incompatible_qos_status_t s, void *arg)
{
  (void)e, (void)arg;
  report_qos("on_requested_incompatible_qos", s.last_policy_id);
}

static void on_lost(dds_entity_t e, const dds_sample_lost_status_t s, void *arg)
{
  (void)e, (void)arg;
  say_status("on_sample_lost", options.topic, "(total = %u, change = %d)", s.total_count, s.total_count_change);
}

static void on_rejected(dds_entity_t e, const dds_sample_rejected_status_t s, void *arg)
{
  (void)e, (void)arg;
  say_status("on_sample_rejected", options.topic, "(total = %u)", s.total_count);
}

/* -- policies -------------------------------------------------------------- */

static dds_duration_t milliseconds(long ms)
{
  return ms ? DDS_MSECS(ms) : DDS_INFINITY;
}

static int unlimited(int count)
{
  return count ? count : DDS_LENGTH_UNLIMITED;
}

static void set_data(void (*set)(dds_qos_t *, const void *, size_t), dds_qos_t *q, const char *text)
{
  if (text)
    set(q, text, strlen(text));
}

static dds_qos_t *make_qos(void)
{
  const struct shapes_options *o = &options;
  dds_data_representation_id_t representations[] = {
    o->representation == 2 ? DDS_DATA_REPRESENTATION_XCDR2 : DDS_DATA_REPRESENTATION_XCDR1 };
  dds_qos_t *q = dds_create_qos();
  dds_qset_reliability(q, o->best_effort ? DDS_RELIABILITY_BEST_EFFORT : DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
  dds_qset_durability(q, o->durability == 'v'   ? DDS_DURABILITY_VOLATILE
                         : o->durability == 'l' ? DDS_DURABILITY_TRANSIENT_LOCAL
                         : o->durability == 't' ? DDS_DURABILITY_TRANSIENT
                                                : DDS_DURABILITY_PERSISTENT);
  if (o->depth >= 0) {
    dds_history_kind_t kind = o->depth ? DDS_HISTORY_KEEP_LAST : DDS_HISTORY_KEEP_ALL;
    int depth = o->depth ? o->depth : 1;
    dds_qset_history(q, kind, depth);
    if (o->publish && o->durability != 'v')
      dds_qset_durability_service(q, 0, kind, depth, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED,
                                  DDS_LENGTH_UNLIMITED);
  }
  if (o->max_samples || o->max_instances || o->max_samples_per_instance)
    dds_qset_resource_limits(q, unlimited(o->max_samples), unlimited(o->max_instances),
                             unlimited(o->max_samples_per_instance));
  dds_qset_deadline(q, milliseconds(o->deadline_ms));
  if (o->publish)
    dds_qset_lifespan(q, milliseconds(o->lifespan_ms));
  dds_qset_liveliness(q, o->liveliness == 'a'   ? DDS_LIVELINESS_AUTOMATIC
                         : o->liveliness == 'p' ? DDS_LIVELINESS_MANUAL_BY_PARTICIPANT
                                                : DDS_LIVELINESS_MANUAL_BY_TOPIC,
                      milliseconds(o->lease_ms));
  if (o->strength >= 0)
    dds_qset_ownership(q, DDS_OWNERSHIP_EXCLUSIVE);
  if (o->strength >= 0 && o->publish)
    dds_qset_ownership_strength(q, o->strength);
  if (o->partition)
    dds_qset_partition1(q, o->partition);
  if (o->filter_ms && o->subscribe)
    dds_qset_time_based_filter(q, DDS_MSECS(o->filter_ms));
  dds_qset_latency_budget(q, DDS_MSECS(o->budget_ms));
  dds_qset_destination_order(q, o->order == 's' ? DDS_DESTINATIONORDER_BY_SOURCE_TIMESTAMP
                                                : DDS_DESTINATIONORDER_BY_RECEPTION_TIMESTAMP);
  dds_qset_presentation(q, o->access_scope == 'i'   ? DDS_PRESENTATION_INSTANCE
                           : o->access_scope == 't' ? DDS_PRESENTATION_TOPIC
                                                    : DDS_PRESENTATION_GROUP,
                        o->coherent, o->ordered);
  if (o->publish)
    dds_qset_writer_data_lifecycle(q, !o->no_autodispose);
  dds_qset_data_representation(q, 1, representations);
  set_data(dds_qset_userdata, q, o->user_data);
  set_data(dds_qset_topicdata, q, o->topic_data);
  set_data(dds_qset_groupdata, q, o->group_data);
  return q;
}

/* -- publishing and subscribing -------------------------------------------- */

static void set_color(ShapeType *shape, int instance)
{
  char color[140];
  shapes_color(&options, instance, color);
  color[sizeof shape->color - 1] = 0;
  strcpy(shape->color, color);
}

static void publish(dds_entity_t participant, dds_entity_t topic, const dds_qos_t *qos, dds_listener_t *listener)
{
  struct shapes_way way = {100, 100, options.size, 3, 3};
  uint8_t payload[1 << 16];
  memset(payload, 255, sizeof payload);
  ShapeType shape;
  memset(&shape, 0, sizeof shape);
  shape.additional_payload_size._buffer = payload;
  shape.additional_payload_size._length = (uint32_t)options.payload;
  dds_entity_t publisher = check(dds_create_publisher(participant, qos, NULL), "create a publisher");
  dds_entity_t writer = check(dds_create_writer(publisher, topic, qos, listener), "create a writer");
  say("Create writer for topic: %s color: %s", options.topic, options.color);
  for (long n = 0; !stop_requested && (!options.iterations || n < options.iterations); n++) {
    shapes_step(&way, &options);
    shape.x = way.x, shape.y = way.y, shape.shapesize = way.size;
    for (int i = 0; i < options.instances; i++) {
      set_color(&shape, i);
      dds_return_t written = dds_write(writer, &shape);
      if (written != DDS_RETCODE_OK)
        say("write refused: %s", dds_strretcode(written));
      if (options.print_samples)
        say_shape(options.topic, shape.color, shape.x, shape.y, shape.shapesize, options.payload, 255);
    }
    sleep_until(now_ns() + options.write_period_ms * 1000000);
  }
  for (int i = 0; i < options.instances && options.final_state != FINAL_NONE; i++) {
    set_color(&shape, i);
    if (options.final_state == FINAL_UNREGISTER)
      check(dds_unregister_instance(writer, &shape), "unregister");
    else
      check(dds_dispose(writer, &shape), "dispose");
  }
  dds_wait_for_acks(writer, DDS_SECS(1));
}

static void report(const ShapeType *shape, const dds_sample_info_t *info)
{
  uint32_t length = shape->additional_payload_size._length;
  if (info->valid_data)
    say_shape(options.topic, shape->color, shape->x, shape->y, shape->shapesize, (int)length,
              length ? shape->additional_payload_size._buffer[length - 1] : 0);
  if (info->instance_state == DDS_NOT_ALIVE_DISPOSED_INSTANCE_STATE)
    say("%-10s %-10s NOT_ALIVE_DISPOSED_INSTANCE_STATE", options.topic, shape->color);
  if (info->instance_state == DDS_NOT_ALIVE_NO_WRITERS_INSTANCE_STATE)
    say("%-10s %-10s NOT_ALIVE_NO_WRITERS_INSTANCE_STATE", options.topic, shape->color);
}

static void subscribe(dds_entity_t participant, dds_entity_t topic, const dds_qos_t *qos, dds_listener_t *listener)
{
  dds_entity_t subscriber = check(dds_create_subscriber(participant, qos, NULL), "create a subscriber");
  dds_entity_t reader = check(dds_create_reader(subscriber, topic, qos, listener), "create a reader");
  say("Create reader for topic: %s", options.topic);
  for (long n = 0; !stop_requested && (!options.iterations || n < options.iterations); n++) {
    for (;;) {
      void *samples[TAKE_MAX] = {NULL};
      dds_sample_info_t info[TAKE_MAX];
      dds_return_t count = check(dds_take(reader, samples, info, TAKE_MAX, TAKE_MAX), "take");
      for (int i = 0; i < count; i++)
        report((const ShapeType *)samples[i], &info[i]);
      dds_return_loan(reader, samples, count);
      if (count < TAKE_MAX)
        break;
    }
    sleep_until(now_ns() + options.read_period_ms * 1000000);
  }
}

int main(int argc, char **argv)
{
  options = shapes_parse(argc, argv);
  catch_stop();
  dds_entity_t participant =
    check(dds_create_participant((dds_domainid_t)options.domain, NULL, NULL), "create a participant");
  dds_qos_t *qos = make_qos();
  const dds_topic_descriptor_t *type = options.representation == 2 ? &ShapeType_desc : &ShapeType_final_desc;
  dds_entity_t topic = check(dds_create_topic(participant, type, options.topic, qos, NULL), "create a topic");
  say("Create topic: %s", options.topic);
  dds_listener_t *listener = dds_create_listener(NULL);
  dds_lset_publication_matched(listener, on_publication_matched);
  dds_lset_subscription_matched(listener, on_subscription_matched);
  dds_lset_offered_deadline_missed(listener, on_offered_deadline);
  dds_lset_requested_deadline_missed(listener, on_requested_deadline);
  dds_lset_liveliness_lost(listener, on_liveliness_lost);
  dds_lset_liveliness_changed(listener, on_liveliness_changed);
  dds_lset_offered_incompatible_qos(listener, on_offered_qos);
  dds_lset_requested_incompatible_qos(listener, on_requested_qos);
  dds_lset_sample_lost(listener, on_lost);
  dds_lset_sample_rejected(listener, on_rejected);
  if (options.publish)
    publish(participant, topic, qos, listener);
  else
    subscribe(participant, topic, qos, listener);
  dds_delete_listener(listener);
  dds_delete_qos(qos);
  dds_delete(participant);
  say("Done.");
  return EXIT_OK;
}
