package dataset

import (
	"context"
	"strconv"

	"github.com/cohort-engine/cohort/internal/fault"
)

// Source is a set of records that is read from its beginning, in pieces that
// several workers decode at a time. Sources are made by OpenSource (files and
// built-in sets), FromMatrix, FromBatches, and the sub-packages parquet and arrow.
type Source interface {
	// Schema says what is known before any record is read.
	Schema() Schema
	// Chunks calls yield with consecutive runs of the records, in order, and
	// returns the first error of yield or of the source. A source that is not
	// Once may be asked again.
	Chunks(ctx context.Context, yield func(Chunk) error) error
}

// Schema describes the records of a source.
type Schema struct {
	Name    string
	N       int      // records; -1 if not known before they are read
	D       int      // coordinates of a record
	Columns []string // names of the D columns, or nil
	Numbers []int    // number of each column in its file, from 1; nil: 1 to D
	Header  bool     // row 1 of the file has names, so record 0 stands in row 2
	Counts  bool     // the first record counts upwards, and the second does not: it may be names of columns
	Bytes   bool     // unsigned bytes by the format: 0 and 255 are public bounds
	Once    bool     // Chunks can be called once only
	// Cheap says that reading again costs no more than keeping what was read.
	Cheap bool
	// Size is the number of bytes to be read, or 0 if unknown; RowBytes is what
	// one record takes of them, as far as the first ones tell.
	Size, RowBytes int64
	// Identity tells this source, as it is now, from every other; empty if nothing does.
	Identity string
	// BlockBytes is what the largest chunk takes when it is decoded, or 0 for little.
	BlockBytes int64
	Files      int // number of files, each of which is one client's; 0 or 1: one
}

// column names column j of the records for a person: its number, and its name, or as much of it as fits a line.
func (s Schema) column(j int) string {
	const most = 60
	number := strconv.Itoa(s.number(j))
	if s.Columns == nil || s.Columns[j] == "" {
		return number
	}
	name := []rune(s.Columns[j])
	if len(name) > most {
		name = append(name[:most-1], '…')
	}
	return number + " (" + string(name) + ")"
}

func (s Schema) number(j int) int {
	if s.Numbers == nil {
		return j + 1
	}
	return s.Numbers[j]
}

// place names the cell of a record for an error, or the record for no column, -1.
func (s Schema) place(record, j int) string {
	row, column := record+1, 0
	if s.Header {
		row++
	}
	if j >= 0 {
		column = s.number(j)
	}
	return place(s.Name, row, column)
}

// Chunk is a run of records. One worker decodes it, at any time before Chunks
// returns.
type Chunk interface {
	// Decode appends the records to b. A missing value is NaN.
	Decode(b *Block) error
}

// Block is decoded records.
type Block struct {
	Rows []float64 // row-major
	N    int
	File int // index of the file that they come from
	// Record is the index of the first record in its source, or -1 if only the
	// order of the chunks tells it.
	Record int
	// Texts has the label or id of each record, one after the other, if the source
	// was asked for a column of them; Ends[i] is the end of the i-th.
	Texts []byte
	Ends  []int
	// Labels has the class of each record instead, where the source has numbers.
	Labels []int32
	// Missing is how missing values are treated, for decoders that can tell them
	// from bad ones. Comments counts the comment lines that were left out.
	Missing  Missing
	Comments int

	schema *Schema // of the file that the records come from
	before int     // records of the files before it
	stats  blockStats
	grid   []float32 // the rows on the grid
	marks  []uint64  // of text (markOthers)
	packed bool      // they are in their panels
	digest *columnDigests
}

// reset empties the block and keeps its memory.
func (b *Block) reset(schema *Schema) {
	b.schema, b.before = schema, 0
	b.Rows, b.N, b.File, b.Record = b.Rows[:0], 0, 0, -1
	b.Texts, b.Ends, b.Comments = b.Texts[:0], b.Ends[:0], 0
	b.Labels, b.stats.dropped = b.Labels[:0], b.stats.dropped[:0]
	b.stats.filled, b.stats.clamped = 0, 0
}

// Grow makes room for n more records of d values and returns it, to be filled.
func (b *Block) Grow(n, d int) []float64 {
	at := len(b.Rows)
	if need := at + n*d; cap(b.Rows) < need {
		grown := make([]float64, at, need)
		copy(grown, b.Rows)
		b.Rows = grown
	}
	b.Rows = b.Rows[:at+n*d]
	b.N += n
	return b.Rows[at:]
}

// AddText appends the label or id of one record.
func (b *Block) AddText(text []byte) {
	b.Texts = append(b.Texts, text...)
	b.Ends = append(b.Ends, len(b.Texts))
}

// text returns the label or id of record i.
func (b *Block) text(i int) []byte {
	from := 0
	if i > 0 {
		from = b.Ends[i-1]
	}
	return b.Texts[from:b.Ends[i]]
}

// given refuses no context and no source.
func given(ctx context.Context, s Source) error {
	switch {
	case ctx == nil:
		return fault.Request("context", "is nil", "give context.Background()")
	case s == nil:
		return fault.Request("source", "is nil", "give one, such as that of a table or a file")
	}
	return nil
}
