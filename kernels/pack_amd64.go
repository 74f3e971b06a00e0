//go:build amd64 && !purego

package kernels

// streamBytes is the size of panels from which packing writes past the caches:
// they would push out each other, and reading lines before they are overwritten
// costs a third of the traffic.
const streamBytes = 24 << 20

func pack(dst *Panels, rows []float32) {
	d := dst.D
	if current == generic || d == 1 {
		packPortable(dst, rows)
		return
	}
	columns := Lanes
	switch {
	case d <= 4:
		columns = 4
	case d <= 8:
		columns = 8
	}
	panels := dst.N / Lanes
	if d < max(columns, 8) {
		// The transpose reads and writes whole blocks of columns: it stops early
		// enough for the rows, and before the last panel.
		panels = max(0, min(panels, panelCount(dst.N)-1))
		for panels > 0 && (panels*Lanes-1)*d+max(columns, 8) > len(rows) {
			panels--
		}
	}
	// A line written twice would cost more than it saves.
	stream := panels*Lanes*d*4 >= streamBytes && (d >= Lanes || d == columns)
	step := panelsPerCall(8 * d)
	for at := 0; at < panels; at += step {
		packPanels(&dst.Data[at*Lanes*d], &rows[at*Lanes*d], min(step, panels-at), d, columns, stream)
	}
	if base := panels * Lanes; base < dst.N {
		rest := dst.Slice(base, dst.N)
		packPortable(&rest, rows[base*d:])
	}
}
