// LEMON's network simplex and cost scaling on a transportation problem.
//   g++ -O3 -march=native lemon.cc -o lemon -llemon; ./lemon FILE
// FILE holds 64-bit integers: n, k, then k minimum and k maximum sizes, then n*k
// costs by rows. It prints the CPU milliseconds of the faster algorithm, to build
// and solve, and the least total cost.
#include <lemon/cost_scaling.h>
#include <lemon/network_simplex.h>
#include <lemon/smart_graph.h>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <vector>
typedef int64_t i64;
typedef lemon::SmartDigraph Graph;

static double now() {
  return 1e3 * double(std::clock()) / CLOCKS_PER_SEC;
}

template <class Algorithm>
static double solve(const std::vector<i64>& v, i64& total) {
  const i64 n = v[0], k = v[1], *lo = &v[2], *hi = lo + k, *cost = hi + k;
  double from = now();
  Graph g;
  g.reserveNode(n + k + 1);
  g.reserveArc(n * k + k);
  for (i64 i = 0; i < n + k + 1; i++) g.addNode();
  for (i64 i = 0; i < n; i++)
    for (i64 j = 0; j < k; j++) g.addArc(g.nodeFromId(i), g.nodeFromId(n + j));
  for (i64 j = 0; j < k; j++) g.addArc(g.nodeFromId(n + j), g.nodeFromId(n + k));
  Graph::ArcMap<i64> lower(g, 0), upper(g, 1), price(g, 0);
  Graph::NodeMap<i64> supply(g, 0);
  for (i64 a = 0; a < n * k; a++) price[g.arcFromId(a)] = cost[a];
  for (i64 j = 0; j < k; j++) lower[g.arcFromId(n * k + j)] = lo[j], upper[g.arcFromId(n * k + j)] = hi[j];
  for (i64 i = 0; i < n; i++) supply[g.nodeFromId(i)] = 1;
  supply[g.nodeFromId(n + k)] = -n;
  Algorithm algorithm(g);
  algorithm.lowerMap(lower).upperMap(upper).costMap(price).supplyMap(supply).run();
  total = algorithm.template totalCost<i64>();
  return now() - from;
}

int main(int, char** argv) {
  std::vector<i64> v;
  FILE* f = fopen(argv[1], "rb");
  for (i64 x; fread(&x, sizeof x, 1, f) == 1;) v.push_back(x);
  i64 a, b;
  double simplex = solve<lemon::NetworkSimplex<Graph, i64, i64> >(v, a);
  double scaling = solve<lemon::CostScaling<Graph, i64, i64> >(v, b);
  printf("%.3f %lld %lld\n", simplex < scaling ? simplex : scaling, (long long)a, (long long)b);
}
