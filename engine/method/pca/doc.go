// Package pca is k-means on principal components, without noise: a reference for
// what the random projections of Balcan et al. (ICML 2017) give away.
package pca
