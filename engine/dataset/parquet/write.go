package parquet

import (
	"fmt"
	"io"
	"reflect"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"
)

// Column is a column of a file that is written: float64, int32 or text, by the one
// function that is set. Its name must not be empty.
type Column struct {
	Name     string
	Floats   func(i int) float64
	Integers func(i int) int32
	Texts    func(i int) string
}

// node is the type of the column.
func (c *Column) node() parquet.Node {
	switch {
	case c.Integers != nil:
		return parquet.Leaf(parquet.Int32Type)
	case c.Texts != nil:
		return parquet.String()
	}
	return parquet.Leaf(parquet.DoubleType)
}

// value is that of record i.
func (c *Column) value(i int) parquet.Value {
	switch {
	case c.Integers != nil:
		return parquet.Int32Value(c.Integers(i))
	case c.Texts != nil:
		return parquet.ByteArrayValue([]byte(c.Texts(i)))
	}
	return parquet.DoubleValue(c.Floats(i))
}

// groupRows is the number of records of a row group that is written.
const groupRows = 1 << 17

// Write writes n records.
func Write(w io.Writer, n int, columns []Column) error {
	schema := parquet.NewSchema("cohort", &record{columns: columns})
	out := parquet.NewGenericWriter[any](w, schema, parquet.Compression(&zstd.Codec{}))
	rows := make([]parquet.Row, 0, 1024)
	values := make([]parquet.Value, 0, cap(rows)*len(columns))
	for i := range n {
		for j := range columns {
			values = append(values, columns[j].value(i).Level(0, 0, j))
		}
		rows = append(rows, parquet.Row(values[len(values)-len(columns):]))
		if len(rows) == cap(rows) || i == n-1 {
			if _, err := out.WriteRows(rows); err != nil {
				return fmt.Errorf("parquet: %w", err)
			}
			rows, values = rows[:0], values[:0]
		}
		if i%groupRows == groupRows-1 {
			if err := out.Flush(); err != nil {
				return fmt.Errorf("parquet: %w", err)
			}
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	return nil
}

// record is the schema of the columns in their own order, where parquet.Group has
// them in that of their names.
type record struct {
	parquet.Group
	columns []Column
}

// Fields returns the columns.
func (r *record) Fields() []parquet.Field {
	fields := make([]parquet.Field, len(r.columns))
	for j := range r.columns {
		fields[j] = &field{r.columns[j].node(), r.columns[j].Name}
	}
	return fields
}

// field is one column.
type field struct {
	parquet.Node
	name string
}

// Name is the name of the column.
func (f *field) Name() string { return f.name }

// Value is not used: rows are written as values.
func (f *field) Value(base reflect.Value) reflect.Value { return base }
