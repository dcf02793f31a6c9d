// A Potts grid by the AD3 library (C++), for `python -m benchmarks potts`: reads side, states, coupling and the scores of all
// states from a file; writes the CPU milliseconds of the quickest of three calls, the value found, and AD3's status. How to build it: potts.py.
#include <cstdio>
#include <ctime>
#include <fstream>

#include "ad3/FactorGraph.h"

using namespace AD3;

int main(int argc, char **argv) {
  std::ifstream in(argv[1]);
  int side, states;
  double coupling;
  in >> side >> states >> coupling;
  std::vector<double> scores(side * side * states);
  for (double &score : scores) in >> score;
  std::vector<double> agree(states * states, 0.0);
  for (int k = 0; k < states; ++k) agree[k * states + k] = coupling;
  double least = 1e9, value = 0.0;
  int status = 0;
  for (int call = 0; call < 3; ++call) {
    FactorGraph graph;
    graph.SetVerbosity(0);
    std::vector<MultiVariable *> x(side * side);
    for (int i = 0; i < side * side; ++i) {
      x[i] = graph.CreateMultiVariable(states);
      for (int k = 0; k < states; ++k) x[i]->SetLogPotential(k, scores[i * states + k]);
    }
    for (int i = 0; i < side * side; ++i) {
      if (i + side < side * side) graph.CreateFactorDense({x[i], x[i + side]}, agree);
      if ((i + 1) % side) graph.CreateFactorDense({x[i], x[i + 1]}, agree);
    }
    graph.SetEtaAD3(0.1);
    graph.AdaptEtaAD3(true);
    graph.SetMaxIterationsAD3(1000);
    graph.SetResidualThresholdAD3(1e-6);
    std::vector<double> posteriors, additional;
    clock_t clock_before = clock();
    status = graph.SolveLPMAPWithAD3(&posteriors, &additional, &value);
    double spent = 1e3 * (clock() - clock_before) / CLOCKS_PER_SEC;
    if (spent < least) least = spent;
  }
  std::printf("%.3f %.6f %d\n", least, value, status);
}
