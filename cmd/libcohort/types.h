/* What the Go files need of C: the types of cohort.h, and calls through C's function pointers. */
#ifndef COHORT_TYPES_H
#define COHORT_TYPES_H

#include "cohort.h"

/* The Arrow C data interface (https://arrow.apache.org/docs/format/CStreamInterface.html). */
struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

static inline int32_t call_progress(cohort_progress p, void *user, int64_t done, int64_t total) { return p(user, done, total); }
static inline int stream_schema(struct ArrowArrayStream *s, struct ArrowSchema *out) { return s->get_schema(s, out); }
static inline int stream_next(struct ArrowArrayStream *s, struct ArrowArray *out) { return s->get_next(s, out); }
static inline const char *stream_error(struct ArrowArrayStream *s) { return s->get_last_error(s); }
static inline void release_stream(struct ArrowArrayStream *s) { if (s->release) s->release(s); }
static inline void release_schema(struct ArrowSchema *s) { if (s->release) s->release(s); }
static inline void release_array(struct ArrowArray *a) { if (a->release) a->release(a); }

#endif
