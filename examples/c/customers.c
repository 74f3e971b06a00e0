/* Clusters customers by age and spending with a privacy budget, saves the model, and labels new customers with it.
 *
 *     make libcohort
 *     cc -Icmd/libcohort examples/c/customers.c -Lbin -lcohort -lm -o customers && LD_LIBRARY_PATH=bin ./customers
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cohort.h"

enum { CUSTOMERS = 4000, COLUMNS = 2, CLUSTERS = 2 };

/* Prints why a function failed, if it did, and ends the program. */
static void check(int32_t status, const cohort_call *call) {
    if (status != COHORT_OK) {
        fprintf(stderr, "cohort: %s\n", call->text);
        exit(status);
    }
}

static int32_t show(void *user, int64_t done, int64_t total) {
    (void)user;
    fprintf(stderr, "round %lld of %lld\n", (long long)done, (long long)total);
    return 0; /* go on */
}

int main(void) {
    static float rows[CUSTOMERS][COLUMNS];
    for (int i = 0; i < CUSTOMERS; i++) {
        float a = i / 2 % 13 - 6, b = i / 2 % 7 - 3;
        rows[i][0] = i % 2 ? 70 + b : 25 + a; /* age */
        rows[i][1] = i % 2 ? 20 + a : 80 + b; /* spending */
    }

    cohort_engine *engine;
    cohort_model *model, *loaded;
    cohort_call call = COHORT_CALL;
    call.progress = show;
    const char *names[COLUMNS] = {"age", "spending"};
    cohort_data data = {COHORT_FLOAT32, 0, rows, CUSTOMERS, COLUMNS, 0, 0, names};

    check(cohort_engine_new(0, &engine, &call), &call);
    /* Leave the seed out for real privacy: it makes the run a simulation, with the same noise every time. */
    check(cohort_fit(engine, &data, 1, NULL, "{\"k\": 2, \"epsilon\": 1, \"lower\": [0], \"upper\": [100], \"seed\": 1}", &call, &model), &call);

    double centroids[CLUSTERS][COLUMNS];
    check(cohort_model_centroids(model, &centroids[0][0], CLUSTERS * COLUMNS), &call);
    for (int j = 0; j < CLUSTERS; j++) printf("around age %.0f, spending %.0f\n", centroids[j][0], centroids[j][1]);

    char *saved;
    check(cohort_model_json(model, &saved, &call), &call);
    check(cohort_model_load(saved, &call, &loaded), &call);
    cohort_free(saved);

    double newcomers[] = {27, 77, 72, 18};
    cohort_data points = {COHORT_FLOAT64, 0, newcomers, 2, COLUMNS, 0, 0, NULL};
    int32_t labels[2];
    check(cohort_predict(engine, loaded, &points, labels, NULL, &call), &call);
    int apart = labels[0] != labels[1];
    int near = fabs(centroids[labels[0]][0] - 25) < 5 && fabs(centroids[labels[1]][1] - 20) < 5;
    printf("the two newcomers are in different clusters: %s\n", apart && near ? "yes" : "no");

    cohort_model_free(loaded);
    cohort_model_free(model);
    cohort_engine_free(engine);
    return apart && near ? 0 : 1;
}
