// Package ckks is vertical k-means under homomorphic encryption (CKKS-V): parties
// that hold different columns of the same records run Lloyd's algorithm on
// ciphertexts, and only noisy counts and sums of clusters are ever decrypted.
//
// Party 0 (Alice) holds her columns and the centroids in the clear and computes.
// A round is
//
//	compare   h(t_ij) ~ sign(|x-c_i|^2 - |x-c_j|^2)/2 for the pairs of clusters
//	          whose soft cells meet: t_ij is linear in x, so its encrypted part
//	          is a product with small integers, or with a polynomial of few; h is a composition of two minimax
//	          polynomials (sign.go, evaluator.go)
//	win       products of comparisons, one soft membership per record and cluster
//	sum       k (1 + d) totals over all records
//	noise     Alice adds hers to each total, the key holder his after decryption
//	divide    the key holder returns centroids
//
// A ciphertext of the conjugate-invariant ring holds N = 2^LogN real numbers,
// and the sum over all of them is N times coefficient 0 of the plaintext
// polynomial. So Alice sends of each total the re-randomised c1, switched to a
// smaller ring, and one number of c0: the receiver learns one aggregate and
// nothing else, and no rotations are needed. For few records several
// comparisons lie side by side in one ciphertext (layout, group).
//
// Ciphertexts are computed on in 32-bit residues (package rns), and secrets and
// errors drawn by samplers that steer no branch (small.go); Lattigo finds the primes,
// encodes, makes keys and shares, and is the oracle of the tests.
// What passes between two parties passes as bytes (wire.go, message.go) through a
// Transcript, which counts them and models their transfer time.
package ckks
