/* Common part of the C and C++ shapes programs: options, lines, the motion of
 * the shape. Plain C that also compiles as C++. The options are those of the
 * OMG's interoperability test program, and further ones of `examples/shapes`;
 * README.md in this folder lists them. It contains no DDS. */
#ifndef SHAPES_PEER_H
#define SHAPES_PEER_H

#include <getopt.h>

#include "peer.h"

enum shapes_final { FINAL_NONE, FINAL_UNREGISTER, FINAL_DISPOSE };

struct shapes_options {
  bool publish, subscribe, best_effort, print_samples;
  int domain, depth;         /* depth -1: the stack's default, 0: KEEP_ALL */
  long deadline_ms, lifespan_ms, lease_ms, filter_ms, budget_ms; /* 0 is none */
  long write_period_ms, read_period_ms, iterations;              /* 0: no limit */
  int strength;              /* -1 is shared */
  const char *topic, *color, *partition, *user_data, *topic_data, *group_data, *content_filter;
  char durability;           /* v, l, t, p */
  int representation;        /* 1 or 2 */
  int size, size_modulo, instances, payload;
  enum shapes_final final_state;
  char liveliness;           /* a, p, t */
  char order;                /* r, s */
  char access_scope;         /* i, t, g */
  bool coherent, ordered, no_autodispose;
  int coherent_count;
  int max_samples, max_instances, max_samples_per_instance; /* 0: unlimited */
};

static struct shapes_options shapes_parse(int argc, char **argv)
{
  enum { LONG = 256 };
  static const struct option longs[] = {
    {"write-period", 1, 0, LONG}, {"read-period", 1, 0, LONG + 1}, {"time-filter", 1, 0, LONG + 2},
    {"lifespan", 1, 0, LONG + 3}, {"num-iterations", 1, 0, LONG + 4}, {"num-instances", 1, 0, LONG + 5},
    {"final-instance-state", 1, 0, LONG + 6}, {"access-scope", 1, 0, LONG + 7}, {"coherent", 0, 0, LONG + 8},
    {"ordered", 0, 0, LONG + 9}, {"coherent-sample-count", 1, 0, LONG + 10},
    {"additional-payload-size", 1, 0, LONG + 11}, {"cft", 1, 0, LONG + 12}, {"size-modulo", 1, 0, LONG + 13},
    {"liveliness", 1, 0, LONG + 14}, {"lease", 1, 0, LONG + 15}, {"destination-order", 1, 0, LONG + 16},
    {"latency-budget", 1, 0, LONG + 17}, {"no-autodispose", 0, 0, LONG + 18}, {"user-data", 1, 0, LONG + 19},
    {"topic-data", 1, 0, LONG + 20}, {"group-data", 1, 0, LONG + 21}, {"max-samples", 1, 0, LONG + 22},
    {"max-instances", 1, 0, LONG + 23}, {"max-samples-per-instance", 1, 0, LONG + 24}, {0, 0, 0, 0}};
  struct shapes_options o;
  memset(&o, 0, sizeof o);
  o.depth = o.strength = -1;
  o.durability = 'v', o.liveliness = 'a', o.order = 'r', o.access_scope = 'i';
  o.representation = o.instances = 1;
  o.size = 20;
  o.write_period_ms = 33, o.read_period_ms = 100;
  int option;
  while ((option = getopt_long(argc, argv, "PSbrwd:k:f:s:t:c:p:D:x:z:", longs, NULL)) != -1) {
    switch (option) {
    case 'P': o.publish = true; break;
    case 'S': o.subscribe = true; break;
    case 'b': o.best_effort = true; break;
    case 'r': o.best_effort = false; break;
    case 'w': o.print_samples = true; break;
    case 'd': o.domain = atoi(optarg); break;
    case 'k': o.depth = atoi(optarg); break;
    case 'f': o.deadline_ms = atol(optarg); break;
    case 's': o.strength = atoi(optarg); break;
    case 't': o.topic = optarg; break;
    case 'c': o.color = optarg; break;
    case 'p': o.partition = optarg; break;
    case 'D': o.durability = *optarg; break;
    case 'x': o.representation = atoi(optarg); break;
    case 'z': o.size = atoi(optarg); break;
    case LONG: o.write_period_ms = atol(optarg); break;
    case LONG + 1: o.read_period_ms = atol(optarg); break;
    case LONG + 2: o.filter_ms = atol(optarg); break;
    case LONG + 3: o.lifespan_ms = atol(optarg); break;
    case LONG + 4: o.iterations = atol(optarg); break;
    case LONG + 5: o.instances = atoi(optarg); break;
    case LONG + 6: o.final_state = *optarg == 'u' ? FINAL_UNREGISTER : FINAL_DISPOSE; break;
    case LONG + 7: o.access_scope = *optarg; break;
    case LONG + 8: o.coherent = true; break;
    case LONG + 9: o.ordered = true; break;
    case LONG + 10: o.coherent_count = atoi(optarg); break;
    case LONG + 11: o.payload = atoi(optarg); break;
    case LONG + 12: o.content_filter = optarg; break;
    case LONG + 13: o.size_modulo = atoi(optarg); break;
    case LONG + 14: o.liveliness = *optarg; break;
    case LONG + 15: o.lease_ms = atol(optarg); break;
    case LONG + 16: o.order = *optarg; break;
    case LONG + 17: o.budget_ms = atol(optarg); break;
    case LONG + 18: o.no_autodispose = true; break;
    case LONG + 19: o.user_data = optarg; break;
    case LONG + 20: o.topic_data = optarg; break;
    case LONG + 21: o.group_data = optarg; break;
    case LONG + 22: o.max_samples = atoi(optarg); break;
    case LONG + 23: o.max_instances = atoi(optarg); break;
    case LONG + 24: o.max_samples_per_instance = atoi(optarg); break;
    default: exit(EXIT_USAGE);
    }
  }
  if (o.publish == o.subscribe || !o.topic || optind != argc)
    fail(EXIT_USAGE, "usage: shapes -P|-S -t TOPIC [OPTION...]; see verify/interop/README.md");
  if (!o.color)
    o.color = "BLUE";
  return o;
}

static const char *shapes_color(const struct shapes_options *o, int instance, char buffer[140])
{
  if (instance)
    snprintf(buffer, 140, "%s%d", o->color, instance);
  else
    snprintf(buffer, 140, "%s", o->color);
  return buffer;
}

/* Position and velocity of the shape. It bounces off the borders of 240 x
 * 270. */
struct shapes_way {
  int x, y, size, vx, vy;
};

static void shapes_step(struct shapes_way *w, const struct shapes_options *o)
{
  w->x += w->vx, w->y += w->vy;
  if (w->x < 0 || w->x > 240)
    w->vx = -w->vx, w->x += 2 * w->vx;
  if (w->y < 0 || w->y > 270)
    w->vy = -w->vy, w->y += 2 * w->vy;
  if (o->size == 0)
    w->size = (o->size_modulo ? w->size % o->size_modulo : w->size) + 1;
}

static void say_shape(const char *topic, const char *color, int x, int y, int size, int length, int last)
{
  if (length)
    say("%-10s %-10s %03d %03d [%d] {%d}", topic, color, x, y, size, last);
  else
    say("%-10s %-10s %03d %03d [%d]", topic, color, x, y, size);
}

static void say_status(const char *name, const char *topic, const char *format, ...)
{
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  say("%s() topic: '%s'  type: 'ShapeType' : %s", name, topic, text);
}

#endif
