//go:build !amd64 || purego

package kernels

func twoLeast(p *Panels, c *Centroids, bias []float32, slack float32, labels, rivals []uint16, gap []float32) {
	rivalsPortable(p, c, bias, slack, labels, rivals, gap)
}
