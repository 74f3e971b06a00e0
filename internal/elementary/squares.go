package elementary

// real is a number that vectors are made of.
type real interface{ ~float32 | ~float64 }

// SquaredDistance is the squared Euclidean distance of x to the first len(x) coordinates of y,
// added up in their order, portable to the bit.
func SquaredDistance[X, Y real](x []X, y []Y) float64 {
	y = y[:len(x)]
	sum := 0.0
	for i, v := range x {
		t := float64(v) - float64(y[i])
		sum += float64(t * t)
	}
	return sum
}

// SquaredLength is the squared Euclidean length of x, added up in the order of its coordinates,
// portable to the bit.
func SquaredLength[X real](x []X) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(float64(v) * float64(v))
	}
	return sum
}
