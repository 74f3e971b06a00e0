package dataset

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// Write writes the records as CSV, with a header when the columns have names.
// Numbers are the shortest that read back as the same values.
func Write(w io.Writer, t *Table) error {
	if t == nil {
		return errNoTable
	}
	b := bufio.NewWriterSize(w, 1<<16)
	if t.Columns != nil {
		for j, name := range t.Columns {
			if j > 0 {
				b.WriteByte(',')
			}
			if strings.ContainsAny(name, ",;\t ") {
				name = `"` + name + `"`
			}
			b.WriteString(name)
		}
		b.WriteByte('\n')
	}
	var cell []byte
	for i := range t.N {
		for j, v := range t.Row(i) {
			cell = cell[:0]
			if j > 0 {
				cell = append(cell, ',')
			}
			cell = strconv.AppendFloat(cell, v, 'g', -1, 64)
			b.Write(cell)
		}
		b.WriteByte('\n')
	}
	return b.Flush()
}

// WriteLabels writes one label per row.
func WriteLabels(w io.Writer, labels []int32) error {
	b := bufio.NewWriterSize(w, 1<<16)
	var cell []byte
	for _, l := range labels {
		cell = append(strconv.AppendInt(cell[:0], int64(l), 10), '\n')
		b.Write(cell)
	}
	return b.Flush()
}
