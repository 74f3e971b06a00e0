// Package evolve is private evolution for clustering, the idea of PE-means (arXiv
// 2606.00342): a population of candidate centres; each generation one noisy histogram of
// which candidate is nearest to a record; heavy candidates split, their offspring moves by
// less and less, light ones go; at the end k-means on the candidates, weighted by the
// last histogram. The constants are Cohort's own. It is here to be compared with.
package evolve
