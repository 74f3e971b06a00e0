// Three clients hold rows of their own and cluster them together without showing them: FastLloyd. A small class frees what the
// library hands over, and makes exceptions of its errors.
//
//     make libcohort
//     c++ -std=c++17 -Icmd/libcohort examples/cpp/clients.cpp -Lbin -lcohort -o clients && LD_LIBRARY_PATH=bin ./clients
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "cohort.h"

namespace {

class Engine {
public:
    Engine() {
        cohort_engine *e = nullptr;
        cohort_call call = COHORT_CALL;
        check(cohort_engine_new(0, &e, &call), call);
        engine_.reset(e);
    }

    // Centroids of what several clients hold, row by row.
    std::vector<double> centroids(const std::vector<std::vector<float>> &clients, int columns, const std::string &options) const {
        std::vector<cohort_data> data;
        for (const auto &rows : clients)
            data.push_back({COHORT_FLOAT32, 0, rows.data(), static_cast<int64_t>(rows.size()) / columns, columns, 0, 0, nullptr});
        cohort_call call = COHORT_CALL;
        cohort_model *m = nullptr;
        check(cohort_fit(engine_.get(), data.data(), static_cast<int32_t>(data.size()), nullptr, options.c_str(), &call, &m), call);
        std::unique_ptr<cohort_model, decltype(&cohort_model_free)> model(m, cohort_model_free);
        int64_t k = 0;
        check(cohort_model_shape(m, &k, nullptr, nullptr), call);
        std::vector<double> out(k * columns);
        check(cohort_model_centroids(m, out.data(), static_cast<int64_t>(out.size())), call);
        return out;
    }

private:
    static void check(int32_t status, const cohort_call &call) {
        if (status == COHORT_WRONG_REQUEST) throw std::invalid_argument(call.text);
        if (status != COHORT_OK) throw std::runtime_error(call.text);
    }

    std::unique_ptr<cohort_engine, decltype(&cohort_engine_free)> engine_{nullptr, cohort_engine_free};
};

} // namespace

int main() {
    std::mt19937 random(7);
    std::normal_distribution<float> spread(0, 3);
    const std::array<std::array<float, 2>, 3> groups{{{20, 20}, {50, 80}, {80, 30}}};
    std::vector<std::vector<float>> clients(3);
    for (auto &rows : clients)
        for (int i = 0; i < 3000; i++)
            for (float middle : groups[i % 3]) rows.push_back(middle + spread(random));

    const Engine engine;
    const auto found = engine.centroids(clients, 2, R"({"k": 3, "method": "fastlloyd", "epsilon": 2, "lower": [0], "upper": [100], "seed": 3})");
    int near = 0;
    for (size_t j = 0; j < found.size(); j += 2) {
        std::printf("around %.1f, %.1f\n", found[j], found[j + 1]);
        for (const auto &g : groups) near += std::hypot(found[j] - g[0], found[j + 1] - g[1]) < 8;
    }
    try {
        engine.centroids(clients, 2, R"({"k": 0})");
        return 1;
    } catch (const std::invalid_argument &e) {
        std::printf("refused as it should be: %s\n", e.what());
    }
    return near == 3 ? 0 : 1;
}
