/* What cohort.h promises, beyond what the examples show. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../types.h"

#define CHECK(what)                                                          \
    do {                                                                     \
        if (!(what)) {                                                       \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);       \
            exit(1);                                                         \
        }                                                                    \
    } while (0)

enum { N = 6000, D = 3, K = 4 };

static double rows[N][D];
static cohort_engine *engine;

static void fill(void) {
    unsigned x = 1;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < D; j++) {
            x = x * 1664525u + 1013904223u;
            rows[i][j] = (i % K >> (j % 2) & 1) * 60 + 10 + (x >> 24) / 25.6;
        }
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static cohort_model *fit(const cohort_data *data, int count, const char *options, int32_t want, const char *says) {
    cohort_call call = COHORT_CALL;
    cohort_model *model = (cohort_model *)1;
    int32_t status = cohort_fit(engine, data, count, NULL, options, &call, &model);
    if (status != want || call.status != want || strstr(call.text, says) == NULL || (status && model)) {
        fprintf(stderr, "%s: status %d, want %d, \"%s\" for \"%s\"\n", options, status, want, call.text, says);
        exit(1);
    }
    return model;
}

static const char *plain = "{\"k\": 4, \"lower\": [0], \"upper\": [100], \"start\": [[15,15,15],[75,15,75],[15,75,15],[75,75,75]]}";

static cohort_data whole(void) { return (cohort_data){COHORT_FLOAT64, 0, rows, N, D, 0, 0, NULL}; }

static void centroids_of(const cohort_model *m, double *out) { CHECK(cohort_model_centroids(m, out, K * D) == 0); }

/* The same records in every layout give the same centroids, to the last bit. */
static void layouts(void) {
    cohort_data d = whole();
    cohort_model *m = fit(&d, 1, plain, COHORT_OK, "");
    double want[K * D], got[K * D];
    centroids_of(m, want);
    int32_t *labels = malloc(N * sizeof *labels), *again = malloc(N * sizeof *again);
    double *distances = malloc(N * sizeof *distances);
    CHECK(cohort_model_labels(m, labels, N - 1) == COHORT_WRONG_REQUEST);
    CHECK(cohort_model_labels(m, labels, N) == COHORT_OK);
    int32_t *view = NULL;
    CHECK(cohort_model_labels_view(m, NULL) == COHORT_WRONG_REQUEST);
    CHECK(cohort_model_labels_view(m, &view) == COHORT_OK && memcmp(view, labels, sizeof *view * N) == 0);
    CHECK(cohort_model_labels_view(m, &view) == COHORT_OK && memcmp(view, labels, sizeof *view * N) == 0);
    CHECK(cohort_predict(engine, m, &d, again, distances, NULL) == COHORT_OK);
    CHECK(memcmp(labels, again, N * sizeof *labels) == 0);
    for (int i = 0; i < N; i++) CHECK(distances[i] >= 0 && distances[i] < 0.5);
    cohort_model_free(m);

    double *columns = malloc(sizeof rows), *backwards = malloc(sizeof rows);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < D; j++) {
            columns[j * N + i] = rows[i][j];
            backwards[(N - 1 - i) * D + D - 1 - j] = rows[i][j];
        }
    cohort_data others[] = {
        {COHORT_FLOAT64, 0, columns, N, D, 1, N, NULL},
        {COHORT_FLOAT64, 0, &backwards[N * D - 1], N, D, -D, -1, NULL},
    };
    for (int i = 0; i < 2; i++) {
        m = fit(&others[i], 1, plain, COHORT_OK, "");
        centroids_of(m, got);
        CHECK(memcmp(want, got, sizeof want) == 0);
        cohort_model_free(m);
    }
    cohort_data split[] = {whole(), whole()}; /* two holders of rows: their sums are the same */
    split[0].rows = 1001;
    split[1].data = rows[1001];
    split[1].rows = N - 1001;
    m = fit(split, 2, plain, COHORT_OK, "");
    centroids_of(m, got);
    CHECK(memcmp(want, got, sizeof want) == 0);
    int64_t k, d2, n;
    CHECK(cohort_model_shape(m, &k, &d2, &n) == 0 && k == K && d2 == D && n == N);
    cohort_model_free(m);

    cohort_records *records;
    CHECK(cohort_prepare(engine, &d, 1, NULL, "{\"lower\": [0], \"upper\": [100]}", NULL, &records) == 0);
    CHECK(cohort_records_shape(records, &n, &d2) == 0 && n == N && d2 == D);
    for (int i = 0; i < 3; i++) {
        CHECK(cohort_fit_records(engine, records, "{\"k\": 4, \"start\": [[15,15,15],[75,15,75],[15,75,15],[75,75,75]]}", NULL, &m) == 0);
        centroids_of(m, got);
        CHECK(memcmp(want, got, sizeof want) == 0);
        cohort_model_free(m);
    }
    CHECK(cohort_fit_records(engine, records, plain, NULL, &m) == COHORT_WRONG_REQUEST); /* bounds were said before */
    cohort_records_free(records);
    CHECK(cohort_fit_records(engine, records, "{\"k\": 4}", NULL, &m) == COHORT_BAD_HANDLE);
    free(labels), free(again), free(distances), free(columns), free(backwards);
}

/* Weights of private records count up to the cap: those of 7 as 2, together about 2 N. */
static void weights(void) {
    cohort_data d = whole();
    cohort_model *m = NULL;
    char *json = NULL;
    double *w = malloc(N * sizeof *w);
    for (int i = 0; i < N; i++) w[i] = 7;
    CHECK(cohort_fit(engine, &d, 1, w, "{\"k\": 4, \"epsilon\": 50, \"lower\": [0], \"upper\": [100], \"settings\": {\"weight-cap\": 2}}", NULL, &m) == COHORT_OK);
    CHECK(cohort_model_json(m, &json, NULL) == COHORT_OK);
    double sum = 0;
    for (char *at = strstr(json, "\"sizes\":") + 8; *at != ']'; ) sum += strtod(at + 1, &at);
    CHECK(sum > 1.98 * N && sum < 2.02 * N);
    cohort_free(json);
    cohort_model_free(m);
    CHECK(cohort_fit(engine, &d, 1, w, "{\"k\": 4, \"epsilon\": 1, \"method\": \"balcan\"}", NULL, &m) == COHORT_WRONG_REQUEST);
    free(w);
}

static void refusals(void) {
    cohort_data d = whole(), bad = whole();
    cohort_model *none = NULL;
    fit(NULL, 1, "{\"k\": 4}", COHORT_WRONG_REQUEST, "data");
    fit(&d, 0, "{\"k\": 4}", COHORT_WRONG_REQUEST, "data");
    fit(&d, 1, "", COHORT_WRONG_REQUEST, "k");
    fit(&d, 1, "{\"k\": 4, \"epsilom\": 1}", COHORT_WRONG_REQUEST, "epsilom");
    fit(&d, 1, "{\"k\": 4} x", COHORT_WRONG_REQUEST, "options");
    fit(&d, 1, "{", COHORT_WRONG_REQUEST, "options");
    fit(&d, 1, "{\"k\": 4, \"method\": \"no such\"}", COHORT_WRONG_REQUEST, "choose one of");
    fit(&d, 1, "{\"k\": 4, \"settings\": {\"branch\": \"tree\"}}", COHORT_WRONG_REQUEST, "branch");
    fit(&d, 1, "{\"k\": 4, \"settings\": {\"iterations\": [1]}}", COHORT_WRONG_REQUEST, "number");
    fit(&d, 1, "{\"k\": 4, \"ledger\": {}}", COHORT_WRONG_REQUEST, "path");
    for (int at = 0; at < 2; at++) { /* a long text is cut between characters, of two bytes here */
        char name[2001], options[2100];
        for (int i = 0; i < 1000; i++) memcpy(name + 2 * i, "\xc3\xbc", 3);
        snprintf(options, sizeof options, "{\"k\": 4, \"settings\": {\"%s%s\": 1}}", at ? "x" : "", name);
        cohort_call call = COHORT_CALL;
        CHECK(cohort_fit(engine, &d, 1, NULL, options, &call, &none) == COHORT_WRONG_REQUEST);
        size_t length = strlen(call.text);
        CHECK(length > 1000 && length < sizeof call.text && call.text[length - 1] == '\xbc');
    }
    bad.kind = 77;
    fit(&bad, 1, "{\"k\": 4}", COHORT_WRONG_REQUEST, "kind 77");
    bad = whole(), bad.rows = -5;
    fit(&bad, 1, "{\"k\": 4}", COHORT_WRONG_REQUEST, "records");
    bad = whole(), bad.columns = 0;
    fit(&bad, 1, "{\"k\": 4}", COHORT_WRONG_REQUEST, "columns");
    bad = whole(), bad.row_stride = INT64_MAX / 2;
    fit(&bad, 1, "{\"k\": 4}", COHORT_WRONG_REQUEST, "strides");
    bad = whole(), bad.rows = INT64_MAX, bad.row_stride = 0, bad.column_stride = 1;
    fit(&bad, 1, "{\"k\": 4}", COHORT_WRONG_REQUEST, "strides");
    double one = 1;
    CHECK(cohort_fit(engine, &bad, 1, &one, "{\"k\": 4}", NULL, &none) == COHORT_WRONG_REQUEST && none == NULL);
    bad = whole(), bad.data = (char *)rows + 1, bad.rows--;
    fit(&bad, 1, "{\"k\": 4}", COHORT_WRONG_REQUEST, "address");
    cohort_data file = {COHORT_FILE, 0, "/no/such/file.csv", 0, 0, 0, 0, NULL};
    fit(&file, 1, "{\"k\": 4}", COHORT_FAILED, "/no/such/file.csv");
    double nan[] = {1, 2, NAN, 4};
    cohort_data missing = {COHORT_FLOAT64, 0, nan, 2, 2, 0, 0, NULL};
    fit(&missing, 1, "{\"k\": 1}", COHORT_FAILED, "row 2");
    /* A budget that cannot pay, twice over: of a file, and of the method. */
    char path[] = "/tmp/cohort-ledger-XXXXXX", options[300];
    CHECK(mkdtemp(path) != NULL);
    snprintf(options, sizeof options, "{\"k\": 4, \"epsilon\": 1, \"lower\": [0], \"upper\": [100], \"ledger\": {\"path\": \"%s/l\"}}", path);
    cohort_model_free(fit(&d, 1, options, COHORT_OK, ""));
    fit(&d, 1, options, COHORT_BUDGET, "missing");
    snprintf(options, sizeof options, "%s/l", path);
    remove(options), rmdir(path);
    /* Handles. */
    cohort_model *m = NULL;
    CHECK(cohort_fit(NULL, &d, 1, NULL, plain, NULL, &m) == COHORT_BAD_HANDLE);
    CHECK(cohort_fit((cohort_engine *)m, &d, 1, NULL, plain, NULL, NULL) == COHORT_WRONG_REQUEST);
    CHECK(cohort_model_shape((cohort_model *)engine, NULL, NULL, NULL) == COHORT_BAD_HANDLE);
    CHECK(cohort_model_load("{}", NULL, &m) != COHORT_OK);
    cohort_model_free(NULL);
    cohort_model_free((cohort_model *)12345);
    cohort_model_free((cohort_model *)engine); /* goes on below */
    CHECK(cohort_abi_version() == COHORT_ABI_VERSION && strcmp(cohort_version(), COHORT_VERSION) == 0);
    char *json;
    CHECK(cohort_methods(&json, NULL) == 0 && strstr(json, "\"fastlloyd\"") != NULL);
    cohort_free(json);
}

static volatile int32_t flag;

static void *set_flag(void *unused) {
    (void)unused;
    usleep(100 * 1000);
    flag = 1;
    return NULL;
}

static int32_t after_three(void *user, int64_t done, int64_t total) {
    CHECK(total > 0 && done == ++*(int *)user);
    return done == 3;
}

/* A run that would take minutes ends when it is told to, and the library goes on as before. */
static void cancels(void) {
    enum { MANY = 400000 };
    double *noise = malloc(MANY * D * sizeof *noise);
    unsigned x = 3;
    for (int i = 0; i < MANY * D; i++) noise[i] = (x = x * 1664525u + 1013904223u) / 4294967296.0;
    cohort_data d = {COHORT_FLOAT64, 0, noise, MANY, D, 0, 0, NULL};
    const char *options = "{\"k\": 300, \"lower\": [0], \"upper\": [1], \"settings\": {\"iterations\": 100000, \"init\": \"random\"}}";
    cohort_model *m;
    cohort_call call = COHORT_CALL;
    call.cancel = &flag;
    pthread_t thread;
    pthread_create(&thread, NULL, set_flag, NULL);
    double begin = seconds();
    CHECK(cohort_fit(engine, &d, 1, NULL, options, &call, &m) == COHORT_CANCELLED && m == NULL && call.text[0] != 0);
    CHECK(seconds() - begin < 30);
    pthread_join(thread, NULL);
    begin = seconds();
    CHECK(cohort_fit(engine, &d, 1, NULL, options, &call, &m) == COHORT_CANCELLED); /* the flag is set from the start */
    CHECK(strcmp(call.text, "call: was cancelled: call again for a result") == 0);
    int rounds = 0;
    call = (cohort_call){NULL, after_three, &rounds, 0, ""};
    CHECK(cohort_fit(engine, &d, 1, NULL, options, &call, &m) == COHORT_CANCELLED && rounds >= 3);
    free(noise);
}

static void *worker(void *out) {
    for (int i = 0; i < 5; i++) {
        cohort_data d = whole();
        cohort_model *m = fit(&d, 1, plain, COHORT_OK, "");
        centroids_of(m, out);
        cohort_model_free(m);
    }
    return NULL;
}

static void threads(void) {
    double all[8][K * D];
    pthread_t t[8];
    for (int i = 0; i < 8; i++) CHECK(pthread_create(&t[i], NULL, worker, all[i]) == 0);
    for (int i = 0; i < 8; i++) CHECK(pthread_join(t[i], NULL) == 0);
    for (int i = 1; i < 8; i++) CHECK(memcmp(all[0], all[i], sizeof all[0]) == 0);
}

/* A producer of Arrow record batches: two of them, of a float and an integer column, the second batch with an offset. */
static int released, asked;
static float floats[300];
static int16_t integers[300];
static const void *float_buffers[] = {NULL, floats}, *integer_buffers[] = {NULL, integers}, *no_buffers[] = {NULL};

static void release_schema_of(struct ArrowSchema *s) { s->release = NULL, released++; }
static void release_array_of(struct ArrowArray *a) { a->release = NULL, released++; }
static void release_stream_of(struct ArrowArrayStream *s) { s->release = NULL, released++; }

static int give_schema(struct ArrowArrayStream *s, struct ArrowSchema *out) {
    (void)s;
    static struct ArrowSchema a = {.format = "f", .name = "x", .release = release_schema_of}, b = {.format = "s", .name = "y", .release = release_schema_of};
    static struct ArrowSchema *children[] = {&a, &b};
    *out = (struct ArrowSchema){.format = "+s", .name = "", .n_children = 2, .children = children, .release = release_schema_of};
    return 0;
}

static int give_batch(struct ArrowArrayStream *s, struct ArrowArray *out) {
    (void)s;
    static struct ArrowArray parts[2][2], *children[2][2];
    memset(out, 0, sizeof *out);
    if (asked == 2) return 0;
    if (asked == 3) return 5;
    int batch = asked++;
    int64_t first = batch ? 100 : 0, length = batch ? 200 : 100;
    for (int j = 0; j < 2; j++) {
        parts[batch][j] = (struct ArrowArray){.length = length, .offset = first, .n_buffers = 2, .buffers = j ? integer_buffers : float_buffers, .release = release_array_of};
        children[batch][j] = &parts[batch][j];
    }
    *out = (struct ArrowArray){.length = length, .n_buffers = 1, .n_children = 2, .buffers = no_buffers, .children = children[batch], .release = release_array_of};
    return 0;
}

static const char *give_error(struct ArrowArrayStream *s) {
    (void)s;
    return "the disk is on fire";
}

static void arrow(void) {
    for (int i = 0; i < 300; i++) floats[i] = i % 2 ? 90 : 10, integers[i] = i % 2 ? 5 : 95;
    struct ArrowArrayStream s = {give_schema, give_batch, give_error, release_stream_of, NULL};
    cohort_data d = {COHORT_ARROW_STREAM, 0, &s, 0, 0, 0, 0, NULL};
    asked = 0;
    cohort_model *m = fit(&d, 1, "{\"k\": 2, \"lower\": [0], \"upper\": [100], \"start\": [[1, 99], [99, 1]]}", COHORT_OK, "");
    double c[4];
    CHECK(cohort_model_centroids(m, c, 4) == 0);
    CHECK(fabs(c[0] - 10) < 0.1 && fabs(c[1] - 95) < 0.1 && fabs(c[2] - 90) < 0.1 && fabs(c[3] - 5) < 0.1);
    char *json;
    CHECK(cohort_model_json(m, &json, NULL) == 0 && strstr(json, "\"y\"") != NULL && strstr(json, "150") != NULL); /* the size of each */
    cohort_free(json);
    cohort_model_free(m);
    CHECK(released == 4 && s.release == NULL); /* schema, two batches, stream */
    fit(&d, 1, "{\"k\": 2}", COHORT_WRONG_REQUEST, "released");
    s = (struct ArrowArrayStream){give_schema, give_batch, give_error, release_stream_of, NULL};
    asked = 3, released = 0;
    fit(&d, 1, "{\"k\": 2}", COHORT_FAILED, "on fire");
    CHECK(released == 2 && s.release == NULL);
}

static void forks(void) {
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        cohort_data d = whole();
        cohort_call call = COHORT_CALL;
        cohort_model *m = NULL;
        alarm(20); /* if it hangs */
        if (cohort_fit(engine, &d, 1, NULL, plain, &call, &m) != COHORT_FORKED || strstr(call.text, "forked") == NULL) _exit(2);
        if (cohort_engine_new(1, &engine, NULL) != COHORT_FORKED) _exit(3);
        cohort_engine_free(engine);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    fill();
    CHECK(cohort_engine_new(-1, &engine, NULL) == COHORT_WRONG_REQUEST);
    CHECK(cohort_engine_new(2, &engine, NULL) == COHORT_OK);
    layouts();
    weights();
    refusals();
    arrow();
    cancels();
    threads();
    forks();
    layouts(); /* all is as before */
    cohort_engine_free(engine);
    cohort_model *m;
    cohort_data d = whole();
    CHECK(cohort_fit(engine, &d, 1, NULL, plain, NULL, &m) == COHORT_BAD_HANDLE);
    puts("the interface is as cohort.h says");
    return 0;
}
