/*
 * Types of messages in C: the structs of rosidl_runtime_c, and the tables that
 * `pteros interface generate --c` writes beside each generated struct.
 *
 * A struct owns the memory of its strings and sequences, which is malloc's. `T__init`
 * makes a struct usable, `T__fini` frees what it owns. `T__create` and `T__destroy` do
 * both for a struct on the heap.
 */
#ifndef PTEROS_TYPES_H_
#define PTEROS_TYPES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Linkage of generated tables, which C compiles. */
#ifdef __cplusplus
#define PTEROS_EXTERN extern "C"
#else
#define PTEROS_EXTERN extern
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Linkage of the functions of the library. */
#define PTEROS_API __attribute__((visibility("default")))

/* --- strings and sequences, with the names of rosidl_runtime_c --- */

#ifndef ROSIDL_RUNTIME_C__STRING_H_
/* A string. `data` ends with NUL; `size` does not count it. All zeros: empty. */
typedef struct rosidl_runtime_c__String {
  char *data;
  size_t size;
  size_t capacity;
} rosidl_runtime_c__String;

typedef struct rosidl_runtime_c__String__Sequence {
  rosidl_runtime_c__String *data;
  size_t size;
  size_t capacity;
} rosidl_runtime_c__String__Sequence;
#define ROSIDL_RUNTIME_C__STRING_H_
#endif

#ifndef ROSIDL_RUNTIME_C__U16STRING_H_
/* A wide string: UTF-16 units. */
typedef struct rosidl_runtime_c__U16String {
  uint_least16_t *data;
  size_t size;
  size_t capacity;
} rosidl_runtime_c__U16String;

typedef struct rosidl_runtime_c__U16String__Sequence {
  rosidl_runtime_c__U16String *data;
  size_t size;
  size_t capacity;
} rosidl_runtime_c__U16String__Sequence;
#define ROSIDL_RUNTIME_C__U16STRING_H_
#endif

/* rosidl's headers may come first: then their structs and functions are used. */
#define PTEROS_SEQUENCES(DEFINE) \
  DEFINE(boolean, bool)          \
  DEFINE(octet, uint8_t)         \
  DEFINE(uint8, uint8_t)         \
  DEFINE(int8, int8_t)           \
  DEFINE(uint16, uint16_t)       \
  DEFINE(int16, int16_t)         \
  DEFINE(uint32, uint32_t)       \
  DEFINE(int32, int32_t)         \
  DEFINE(uint64, uint64_t)       \
  DEFINE(int64, int64_t)         \
  DEFINE(float, float)           \
  DEFINE(double, double)

/* A sequence of numbers. */
#define PTEROS_SEQUENCE(NAME, TYPE)                                                       \
  typedef struct rosidl_runtime_c__##NAME##__Sequence {                                   \
    TYPE *data;                                                                           \
    size_t size;                                                                          \
    size_t capacity;                                                                      \
  } rosidl_runtime_c__##NAME##__Sequence;

/*
 * Its functions. `__init` gives it `size` zeros and returns false without memory; `__fini`
 * frees them. A sequence inside a message is freed with the message.
 */
#define PTEROS_SEQUENCE_FUNCTIONS(NAME, TYPE)                                             \
  static inline bool rosidl_runtime_c__##NAME##__Sequence__init(                          \
      rosidl_runtime_c__##NAME##__Sequence *sequence, size_t size) {                      \
    sequence->data = size > 0 ? (TYPE *)calloc(size, sizeof(TYPE)) : NULL;                \
    sequence->size = sequence->data != NULL ? size : 0;                                   \
    sequence->capacity = sequence->size;                                                  \
    return sequence->size == size;                                                        \
  }                                                                                       \
  static inline void rosidl_runtime_c__##NAME##__Sequence__fini(                          \
      rosidl_runtime_c__##NAME##__Sequence *sequence) {                                   \
    free(sequence->data);                                                                 \
    sequence->data = NULL;                                                                \
    sequence->size = 0;                                                                   \
    sequence->capacity = 0;                                                               \
  }

#ifndef ROSIDL_RUNTIME_C__PRIMITIVES_SEQUENCE_H_
PTEROS_SEQUENCES(PTEROS_SEQUENCE)
#define ROSIDL_RUNTIME_C__PRIMITIVES_SEQUENCE_H_
#endif

#ifndef ROSIDL_RUNTIME_C__PRIMITIVES_SEQUENCE_FUNCTIONS_H_
PTEROS_SEQUENCES(PTEROS_SEQUENCE_FUNCTIONS)
#define ROSIDL_RUNTIME_C__PRIMITIVES_SEQUENCE_FUNCTIONS_H_
#endif

/* --- type tables --- */

/* Kinds of members: the numbers of rosidl_typesupport_introspection_c. */
enum {
  PTEROS_KIND_FLOAT = 1,
  PTEROS_KIND_DOUBLE = 2,
  PTEROS_KIND_BOOLEAN = 6,
  PTEROS_KIND_OCTET = 7,
  PTEROS_KIND_UINT8 = 8,
  PTEROS_KIND_INT8 = 9,
  PTEROS_KIND_UINT16 = 10,
  PTEROS_KIND_INT16 = 11,
  PTEROS_KIND_UINT32 = 12,
  PTEROS_KIND_INT32 = 13,
  PTEROS_KIND_UINT64 = 14,
  PTEROS_KIND_INT64 = 15,
  PTEROS_KIND_STRING = 16,
  PTEROS_KIND_WSTRING = 17,
  PTEROS_KIND_MESSAGE = 18
};

/* A member of a struct. */
typedef struct pteros_member {
  const char *name;
  const struct pteros_message_type *message; /* of a nested message, else NULL */
  uint32_t offset;
  uint32_t size;         /* elements of an array, bound of a sequence; 0 without */
  uint32_t string_bound; /* 0 without */
  uint8_t kind;          /* PTEROS_KIND_... */
  uint8_t collection;    /* 0 single, 1 array, 2 sequence */
  uint8_t reserved[2];   /* zeros */
} pteros_member_t;

/* A message type. Generated; must stay for the life of the process. */
typedef struct pteros_message_type {
  const char *name; /* "std_msgs/msg/String" */
  const pteros_member_t *members;
  uint32_t member_count;
  uint32_t size_of;
  const uint8_t *defaults; /* CDR of a message with default values; NULL: all zero */
  size_t defaults_size;
} pteros_message_type_t;

/* A service type. */
typedef struct pteros_service_type {
  const char *name;
  const pteros_message_type_t *request;
  const pteros_message_type_t *response;
  uint8_t hash[32]; /* RIHS01; zeros if unknown */
} pteros_service_type_t;

/* An action type. */
typedef struct pteros_action_type {
  const char *name;
  const pteros_service_type_t *send_goal;
  const pteros_service_type_t *get_result;
  const pteros_message_type_t *feedback_message;
  const pteros_message_type_t *goal;
  const pteros_message_type_t *result;
  const pteros_message_type_t *feedback;
} pteros_action_type_t;

/* --- functions for structs; generated ones call them --- */

/*
 * Makes `memory`, of the type's size, a message with the type's default values. What it
 * contained is overwritten and not freed. Returns 0 (PTEROS_OK) or a pteros_status_t.
 */
PTEROS_API int pteros_message_init(const pteros_message_type_t *type, void *memory);

/* Frees what an initialized message owns, and empties it. NULL is ignored. */
PTEROS_API void pteros_message_fini(const pteros_message_type_t *type, void *message);

/* Copies a message into another initialized one. Returns a pteros_status_t. */
PTEROS_API int pteros_message_copy(const pteros_message_type_t *type, const void *from, void *to);

/*
 * Writes the message as CDR with its header into `data`, which has `capacity` bytes, and
 * its length into `size`. With `data` NULL and `capacity` 0 it only computes the length.
 * Returns a pteros_status_t.
 */
PTEROS_API int pteros_message_serialize(const pteros_message_type_t *type, const void *message,
                                        uint8_t *data, size_t capacity, size_t *size);

/* Reads CDR with its header into an initialized message. Returns a pteros_status_t. */
PTEROS_API int pteros_message_deserialize(const pteros_message_type_t *type, const uint8_t *data,
                                          size_t size, void *message);

/*
 * Gives a `T__Sequence` of the message type `size` messages with default values, in memory of
 * malloc that belongs to it. What it contained is overwritten and not freed. Returns a
 * pteros_status_t; after a failure the sequence is empty. `size` costs no lock per element.
 */
PTEROS_API int pteros_sequence_init(const pteros_message_type_t *type, void *sequence,
                                    size_t size);

/* Frees the messages of such a sequence and what they own, and empties it. */
PTEROS_API void pteros_sequence_fini(const pteros_message_type_t *type, void *sequence);

/* Replaces the content of an initialized string with a copy. False without memory. */
PTEROS_API bool pteros_string_assign(rosidl_runtime_c__String *string, const char *value);

/* As pteros_string_assign, of `size` bytes. */
PTEROS_API bool pteros_string_assign_n(rosidl_runtime_c__String *string, const char *value,
                                       size_t size);

/*
 * As pteros_string_assign_n, of a wide string: `size` units of UTF-16. The memory that it
 * gets is malloc's and belongs to the string. False without memory, with an error text.
 */
PTEROS_API bool pteros_u16string_assign_n(rosidl_runtime_c__U16String *string,
                                          const uint_least16_t *value, size_t size);

/* As above, of a text in UTF-8. False also if it is not UTF-8. */
PTEROS_API bool pteros_u16string_assign_utf8(rosidl_runtime_c__U16String *string,
                                             const char *value);

#ifdef __cplusplus
}
#endif

/* rosidl's names of these functions. */
#ifndef ROSIDL_RUNTIME_C__STRING_FUNCTIONS_H_
static inline bool rosidl_runtime_c__String__assign(rosidl_runtime_c__String *string,
                                                    const char *value) {
  return pteros_string_assign(string, value);
}

static inline bool rosidl_runtime_c__String__assignn(rosidl_runtime_c__String *string,
                                                     const char *value, size_t size) {
  return pteros_string_assign_n(string, value, size);
}

/* Makes it an empty string. False without memory. */
static inline bool rosidl_runtime_c__String__init(rosidl_runtime_c__String *string) {
  string->data = NULL;
  string->size = 0;
  string->capacity = 0;
  return pteros_string_assign(string, "");
}

/* Frees its memory. */
static inline void rosidl_runtime_c__String__fini(rosidl_runtime_c__String *string) {
  free(string->data);
  string->data = NULL;
  string->size = 0;
  string->capacity = 0;
}

/* Gives the sequence `size` empty strings. False without memory. */
static inline bool rosidl_runtime_c__String__Sequence__init(
    rosidl_runtime_c__String__Sequence *sequence, size_t size) {
  sequence->data = size > 0
                       ? (rosidl_runtime_c__String *)calloc(size, sizeof(rosidl_runtime_c__String))
                       : NULL;
  sequence->size = sequence->data != NULL ? size : 0;
  sequence->capacity = sequence->size;
  return sequence->size == size;
}

/* Frees the strings and their memory. */
static inline void rosidl_runtime_c__String__Sequence__fini(
    rosidl_runtime_c__String__Sequence *sequence) {
  for (size_t at = 0; at < sequence->size; at++)
    rosidl_runtime_c__String__fini(&sequence->data[at]);
  free(sequence->data);
  sequence->data = NULL;
  sequence->size = 0;
  sequence->capacity = 0;
}
#define ROSIDL_RUNTIME_C__STRING_FUNCTIONS_H_
#endif

#ifndef ROSIDL_RUNTIME_C__U16STRING_FUNCTIONS_H_
/* Replaces the content with `size` units. False without memory. */
static inline bool rosidl_runtime_c__U16String__assignn(rosidl_runtime_c__U16String *string,
                                                        const uint_least16_t *value,
                                                        size_t size) {
  return pteros_u16string_assign_n(string, value, size);
}

/* As above, of units that end with a zero. */
static inline bool rosidl_runtime_c__U16String__assign(rosidl_runtime_c__U16String *string,
                                                       const uint_least16_t *value) {
  size_t size = 0;
  while (value != NULL && value[size] != 0) size++;
  return value != NULL && pteros_u16string_assign_n(string, value, size);
}

/* Makes it an empty string. False without memory. */
static inline bool rosidl_runtime_c__U16String__init(rosidl_runtime_c__U16String *string) {
  string->data = NULL;
  string->size = 0;
  string->capacity = 0;
  return pteros_u16string_assign_n(string, NULL, 0);
}

/* Frees its memory. */
static inline void rosidl_runtime_c__U16String__fini(rosidl_runtime_c__U16String *string) {
  free(string->data);
  string->data = NULL;
  string->size = 0;
  string->capacity = 0;
}

/* Gives the sequence `size` empty strings. False without memory. */
static inline bool rosidl_runtime_c__U16String__Sequence__init(
    rosidl_runtime_c__U16String__Sequence *sequence, size_t size) {
  sequence->data =
      size > 0 ? (rosidl_runtime_c__U16String *)calloc(size, sizeof(rosidl_runtime_c__U16String))
               : NULL;
  sequence->size = sequence->data != NULL ? size : 0;
  sequence->capacity = sequence->size;
  return sequence->size == size;
}

/* Frees the strings and their memory. */
static inline void rosidl_runtime_c__U16String__Sequence__fini(
    rosidl_runtime_c__U16String__Sequence *sequence) {
  for (size_t at = 0; at < sequence->size; at++)
    rosidl_runtime_c__U16String__fini(&sequence->data[at]);
  free(sequence->data);
  sequence->data = NULL;
  sequence->size = 0;
  sequence->capacity = 0;
}
#define ROSIDL_RUNTIME_C__U16STRING_FUNCTIONS_H_
#endif

/* Declares the table and the functions of a generated message. */
#define PTEROS_MESSAGE(T)                                                                 \
  PTEROS_EXTERN const pteros_message_type_t T##__type;                                    \
  static inline bool T##__init(T *message) {                                              \
    return pteros_message_init(&T##__type, message) == 0;                                 \
  }                                                                                       \
  static inline void T##__fini(T *message) { pteros_message_fini(&T##__type, message); }  \
  static inline bool T##__copy(const T *from, T *to) {                                    \
    return pteros_message_copy(&T##__type, from, to) == 0;                                \
  }                                                                                       \
  static inline T *T##__create(void) {                                                    \
    T *message = (T *)malloc(sizeof(T));                                                  \
    if (message != NULL && !T##__init(message)) {                                         \
      free(message);                                                                      \
      message = NULL;                                                                     \
    }                                                                                     \
    return message;                                                                       \
  }                                                                                       \
  static inline void T##__destroy(T *message) {                                           \
    T##__fini(message);                                                                   \
    free(message);                                                                        \
  }                                                                                       \
  static inline void T##__Sequence__fini(T##__Sequence *sequence) {                       \
    pteros_sequence_fini(&T##__type, sequence);                                           \
  }                                                                                       \
  static inline bool T##__Sequence__init(T##__Sequence *sequence, size_t size) {          \
    return pteros_sequence_init(&T##__type, sequence, size) == 0;                         \
  }

#endif /* PTEROS_TYPES_H_ */
