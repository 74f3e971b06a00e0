// Package eugkm is EUGkM of Su, Cao, Li, Bertino and Jin, "Differentially Private
// k-Means Clustering" (CODASPY 2016, arXiv:1504.05998), section 4: a uniform grid of
// (n epsilon/10)^(2/(2+d)) cells a side, one noisy count of each, and k-means on the centres
// of the cells, weighted by the counts; and section 6, the combination with noisy
// rounds of Lloyd's algorithm that start from there. It is here to be compared with.
package eugkm
