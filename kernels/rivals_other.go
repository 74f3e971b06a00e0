//go:build !amd64 || purego

package kernels

func twoLeast(p *Panels, c *Centroids, bias []float32, slack, window float32, labels []uint16, cells []uint32, gap []float32) {
	rivalsPortable(p, c, bias, slack, window, labels, cells, gap)
}
