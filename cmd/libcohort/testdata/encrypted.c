/* The method under homomorphic encryption, which libcohort-full has and libcohort has not: the argument says which of them this is
 * linked with. Two parties hold a column each, and cluster their records without showing them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cohort.h"

#define CHECK(what)                                                              \
    do {                                                                         \
        if (!(what)) {                                                           \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, call.text); \
            exit(1);                                                             \
        }                                                                        \
    } while (0)

enum { N = 600, ROUNDS = 3 };

static float first[N], second[N];

static int32_t count(void *user, int64_t done, int64_t total) {
    if (total == ROUNDS) *(int64_t *)user = done;
    return 0;
}

static void fit(cohort_engine *engine, int64_t *rounds, double *centroids) {
    cohort_call call = COHORT_CALL;
    call.progress = count, call.user = rounds;
    cohort_data parties[] = {{COHORT_FLOAT32, 0, first, N, 1, 0, 0, NULL}, {COHORT_FLOAT32, 0, second, N, 1, 0, 0, NULL}};
    cohort_model *m = NULL;
    char *json = NULL;
    int64_t k, columns;
    CHECK(cohort_fit(engine, parties, 2, NULL,
                     "{\"k\": 2, \"method\": \"ckks\", \"epsilon\": 30, \"lower\": [0], \"upper\": [100], \"start\": [[40, 60], [60, 40]], "
                     "\"settings\": {\"iterations\": 3}, \"seed\": 1}", &call, &m) == COHORT_OK);
    CHECK(cohort_model_shape(m, &k, &columns, NULL) == COHORT_OK && k == 2 && columns == 2);
    CHECK(cohort_model_centroids(m, centroids, 4) == COHORT_OK);
    CHECK(cohort_model_json(m, &json, &call) == COHORT_OK && strstr(json, "\"ledger\"") != NULL);
    cohort_free(json);
    cohort_model_free(m);
}

int main(int argc, char **argv) {
    int full = argc == 2 && strcmp(argv[1], "full") == 0;
    for (int i = 0; i < N; i++) first[i] = (i % 2 ? 80 : 20) + i % 7 - 3, second[i] = (i % 2 ? 30 : 70) + i % 5 - 2;
    cohort_call call = COHORT_CALL;
    cohort_engine *engine;
    char *json;
    CHECK(cohort_engine_new(0, &engine, &call) == COHORT_OK);
    CHECK(cohort_methods(&json, &call) == COHORT_OK && (strstr(json, "\"name\":\"ckks\"") != NULL) == full);
    cohort_free(json);
    if (full) {
        int64_t rounds = 0;
        double a[4], b[4], want[] = {20, 70, 80, 30};
        fit(engine, &rounds, a);
        CHECK(rounds == ROUNDS);
        for (int i = 0; i < 4; i++) CHECK(fabs(a[i] - want[i]) < 3);
        fit(engine, &rounds, b); /* the seed makes it a simulation */
        CHECK(memcmp(a, b, sizeof a) == 0);
        printf("around %.1f, %.1f and %.1f, %.1f\n", a[0], a[1], a[2], a[3]);
    } else {
        cohort_data d = {COHORT_FLOAT32, 0, first, N, 1, 0, 0, NULL};
        cohort_model *m;
        CHECK(cohort_fit(engine, &d, 1, NULL, "{\"k\": 2, \"method\": \"ckks\", \"epsilon\": 1}", &call, &m) == COHORT_WRONG_REQUEST);
        CHECK(m == NULL && strstr(call.text, "\"ckks\" is unknown") != NULL);
        printf("%s\n", call.text);
    }
    cohort_engine_free(engine);
    return 0;
}
